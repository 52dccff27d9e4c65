"""information_schema, asked for the tables that are wanted.

In:  a cursor, databases, and names of tables where few are wanted.
Out: the server's word on them, by (database, table).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidegate.schema.model.unlogged import SEQUENCE, engine_kept

Name = tuple[str, str]

_BASE: Final = frozenset({"BASE TABLE", "SYSTEM VERSIONED"})


@dataclass(frozen=True, slots=True)
class Where:
    """Which tables information_schema is asked for: in these databases, and by these names if there are any.

    The collation may bring more: names that differ in case alone.
    """

    databases: Sequence[str]
    tables: Sequence[str] = ()

    @property
    def sql(self) -> str:
        condition = f"table_schema IN ({self._in(self.databases)})"
        return condition + (f" AND table_name IN ({self._in(self.tables)})" if self.tables else "")

    @property
    def names(self) -> tuple[str, ...]:
        """The values for the text's places."""
        return (*self.databases, *self.tables)

    @staticmethod
    def _in(names: Sequence[str]) -> str:
        return ", ".join(["%s"] * len(names)) or "NULL"


def names_there(cursor: Any, where: Where | None) -> list[Name]:
    """Names alone come from the dictionary; any other column makes MariaDB open every table that is asked for."""
    asked = "SELECT table_schema, table_name FROM information_schema.tables"
    cursor.execute(asked if where is None else f"{asked} WHERE {where.sql}", () if where is None else where.names)
    return [(str(database), str(table)) for database, table in cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table's row in information_schema.tables."""

    collation: str
    engine: str


def listed_tables(cursor: Any, where: Where) -> dict[Name, ListedTable]:
    """Every base table, and MariaDB's sequences; no views."""
    cursor.execute(
        "SELECT table_schema, table_name, table_collation, table_type, engine FROM information_schema.tables"
        f" WHERE {where.sql}",
        where.names,
    )
    return {
        (str(row[0]), str(row[1])): ListedTable(
            str(row[2] or ""), engine_kept(str(row[4] or "")) if row[3] in _BASE else SEQUENCE
        )
        for row in cursor.fetchall()
        if row[3] in _BASE or row[3] == "SEQUENCE"
    }


def partitioned_tables(cursor: Any, where: Where) -> set[Name]:
    cursor.execute(
        f"SELECT DISTINCT table_schema, table_name FROM information_schema.partitions"
        f" WHERE partition_name IS NOT NULL AND {where.sql}",
        where.names,
    )
    return {(str(row[0]), str(row[1])) for row in cursor.fetchall()}


def columns_of(cursor: Any, where: Where) -> dict[Name, list[Mapping[str, Any]]]:
    names: tuple[str, ...] = ("column_name", "column_type", "is_nullable", "character_set_name", "collation_name")
    names += ("column_default", "extra", "generation_expression", "column_comment")
    asked = ", ".join(names)
    if not _knows_generated(cursor):
        asked = asked.replace("generation_expression", "'' AS generation_expression")
    cursor.execute(
        f"SELECT table_schema, table_name, {asked} FROM information_schema.columns"
        f" WHERE {where.sql} ORDER BY table_schema, table_name, ordinal_position",
        where.names,
    )
    columns: dict[Name, list[Mapping[str, Any]]] = defaultdict(list)
    for row in cursor.fetchall():
        cells = (cell.decode() if isinstance(cell, bytes) else cell for cell in row[2:])
        columns[str(row[0]), str(row[1])].append(dict(zip(names, cells, strict=True)))
    return columns


def _knows_generated(cursor: Any) -> bool:
    """MySQL 5.6 and MariaDB before 10.2.5 can't say what a generated column is made from; 5.6 has none."""
    cursor.execute(
        "SELECT 1 FROM information_schema.columns WHERE table_schema = 'information_schema'"
        " AND table_name = 'COLUMNS' AND column_name = 'GENERATION_EXPRESSION'"
    )
    return cursor.fetchone() is not None


def indexes_of(cursor: Any, where: Where) -> dict[Name, dict[str, list[tuple[Any, ...]]]]:
    """(database, table) -> index name -> [(non_unique, column or None, prefix or None), ...] in key order."""
    cursor.execute(
        "SELECT table_schema, table_name, index_name, non_unique, column_name, sub_part"
        f" FROM information_schema.statistics WHERE {where.sql}"
        " ORDER BY table_schema, table_name, index_name, seq_in_index",
        where.names,
    )
    indexes: dict[Name, dict[str, list[tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(list))
    for database, table, index, *part in cursor.fetchall():
        indexes[str(database), str(table)][str(index)].append(tuple(part))
    return indexes
