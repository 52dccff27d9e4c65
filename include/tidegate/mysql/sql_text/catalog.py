"""Questions to information_schema about many tables, in parts.

In:  a cursor, a SELECT whose first two columns are table_schema and table_name, names of tables.
Out: rows of these tables.

A server answers after it has looked at all tables, and MariaDB opens each one not excluded by its
name. For a hundred thousand tables this takes longer than any reader waits. Names alone come from
its dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidegate.limits import CATALOG_TABLES_MAX

Name = tuple[str, str]
Ask = Callable[[str, Sequence[str]], Sequence[Sequence[Any]]]

BASE_TABLES: Final = "table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
NAMES: Final = "SELECT table_schema, table_name FROM information_schema.tables"


@dataclass(frozen=True, slots=True)
class Part:
    """The tables one question asks about: any of the databases with any of the names. The answer may
    have more tables, since the server's collation may ignore case.
    """

    databases: Sequence[str]
    tables: Sequence[str]

    @property
    def sql(self) -> str:
        return f"table_schema IN ({_in(self.databases)}) AND table_name IN ({_in(self.tables)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The values for the placeholders of `sql`, in order."""
        return (*self.databases, *self.tables)


def asked_by(cursor: Any) -> Ask:
    """A function that runs a statement on the cursor and returns all its rows."""

    def ask(statement: str, values: Sequence[str]) -> Sequence[Sequence[Any]]:
        cursor.execute(statement, values)
        rows: Sequence[Sequence[Any]] = cursor.fetchall()
        return rows

    return ask


def names_there(ask: Ask, among: Iterable[Name] | None = None) -> list[Name]:
    """All tables and views, or those of some names."""
    return names_of(ask(NAMES, ()) if among is None else rows_of(ask, NAMES, among))


def names_of(rows: Iterable[Sequence[Any]]) -> list[Name]:
    """(table_schema, table_name) of each row."""
    return [(str(row[0]), str(row[1])) for row in rows]


def rows_of(
    ask: Ask, select: str, names: Iterable[Name], *, where: str = "", order: str = ""
) -> Iterator[Sequence[Any]]:
    """Rows of these tables alone. where: one more condition. order: more columns for ORDER BY, with a
    comma before each; "" leaves the rows in any order.
    """
    for part, wanted in parts_of(names):
        conditions = part.sql + (f" AND {where}" if where else "")
        ordered = f" ORDER BY table_schema, table_name{order}" if order else ""
        for row in ask(f"{select} WHERE {conditions}{ordered}", part.names):
            if (str(row[0]), str(row[1])) in wanted:
                yield row


def parts_of(names: Iterable[Name]) -> Iterator[tuple[Part, set[Name]]]:
    """The names in parts of at most CATALOG_TABLES_MAX: each part, and the names it was made from."""
    in_order = sorted(names)
    for begin in range(0, len(in_order), CATALOG_TABLES_MAX):
        wanted = {*in_order[begin : begin + CATALOG_TABLES_MAX]}
        databases, tables = ({name[at] for name in wanted} for at in (0, 1))
        yield Part(sorted(databases), sorted(tables)), wanted


def _in(names: Sequence[str]) -> str:
    """The list of an IN, as placeholders. Where all names of a list are equal by collation, MariaDB looks
    for the first alone; the empty text in the list prevents this, as it is equal to no name.
    """
    marks = ", ".join(["%s"] * len(names))
    return f"'', {marks}" if len(names) > 1 else marks
