"""The columns that CREATE TABLE ... SELECT takes from plain columns of one table.

In:  a cursor at the query, the columns of the tables that are known.
Out: the new table's columns: as their origin is, without its keys; auto-increment becomes DEFAULT 0. Any other query is
     a DDLError: types of expressions aren't inferred.

Rules: sql/sql_insert.cc, create_table_from_items; seen on MariaDB 11.4 and MySQL 9.7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from tidegate.errors import DDLError
from tidegate.schema.ddl.tokens import Cursor, TokenKind
from tidegate.schema.ddl.tree import TableName
from tidegate.schema.model.columns import Column, Generated
from tidegate.schema.replay.indexes import find

Columns = Callable[[TableName], Sequence[Column]]
_Item = tuple[str, str, str]  # (table or "", column or "*", name in the new table)

_REMEDY: Final = "write the columns' types into the statement"
_OPTIONS: Final = ("ALL", "HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "SQL_BIG_RESULT")
_CLAUSES: Final = frozenset({"WHERE", "ORDER", "LIMIT"})
# After the table, these words give columns other types, or take columns from another table.
_DOUBTS: Final = frozenset(
    {
        "CROSS", "EXCEPT", "FOR", "FROM", "GROUP", "INNER", "INTERSECT", "INTO", "JOIN", "LEFT", "MINUS", "NATURAL",
        "ON", "OUTER", "PARTITION", "PROCEDURE", "RIGHT", "ROLLUP", "SELECT", "STRAIGHT_JOIN", "UNION", "USING",
    }
)  # fmt: skip
# Unquoted, these words are no columns, even where the table has a column of that name.
_NO_COLUMNS: Final = frozenset(
    {
        "BINARY", "CASE", "CURRENT_DATE", "CURRENT_ROLE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER",
        "DEFAULT", "DISTINCT", "DISTINCTROW", "FALSE", "LOCALTIME", "LOCALTIMESTAMP", "NOT", "NULL", "ROWNUM",
        "STRAIGHT_JOIN", "SYSDATE", "TRUE", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP",
    }
)  # fmt: skip
# Defaults that aren't taken over: they use other columns, or give another value each time.
_LOST: Final = re.compile(r"`|\b(?:uuid|uuid_short|sys_guid|rand|sysdate|version)\(", re.IGNORECASE)


def query_columns(cursor: Cursor, database: str, columns: Columns) -> list[Column]:
    """columns: those of a table, in order; they keep their ids here. Raises DDLError for a query of anything else."""
    cursor.take_any("IGNORE", "REPLACE")
    cursor.take("AS")
    closing = cursor.take_mark("(")
    if not cursor.take("SELECT"):
        raise _unsure()
    while cursor.take_any(*_OPTIONS):
        pass
    items = [_item(cursor)]
    while cursor.take_mark(","):
        items.append(_item(cursor))
    if not cursor.take("FROM"):
        raise _unsure()
    table, alias = _source(cursor, database)
    _pass_clauses(cursor)
    if (closing and not cursor.take_mark(")")) or not cursor.ended:
        raise _unsure()
    if any(of and of.lower() != alias.lower() for of, _, _ in items):
        raise DDLError(f"the query has no table {items[0][0]!r}", remedy=_REMEDY)
    of_table = columns(table)
    chosen = [column for _, name, shown in items for column in _taken(of_table, name, shown)]
    if len({column.name.lower() for column in chosen}) != len(chosen):
        raise DDLError("CREATE TABLE ... SELECT gives two columns one name", remedy=_REMEDY)
    return chosen


def _unsure() -> DDLError:
    return DDLError("CREATE TABLE ... SELECT of more than plain columns of one table", remedy=_REMEDY)


def _item(cursor: Cursor) -> _Item:
    """`*`, `t.*`, or `[[database.]table.]column [[AS] alias]`."""
    of, token = "", cursor.now
    while not cursor.take_mark("*"):
        column = cursor.next()
        if column.kind not in (TokenKind.WORD, TokenKind.QUOTED):
            raise _unsure()
        if cursor.take_mark("."):
            of = column.text
            continue
        if cursor.is_mark("(") or token.upper in _NO_COLUMNS:
            raise _unsure()
        return of, column.text, _alias(cursor) or column.text
    return of, "*", ""


def _alias(cursor: Cursor) -> str:
    if cursor.take("AS"):
        return cursor.next().text
    # A string here may belong to a word before it, such as DATE or _latin1.
    plain = cursor.now.kind == TokenKind.QUOTED or (cursor.now.kind == TokenKind.WORD and cursor.now.upper != "FROM")
    return cursor.next().text if plain else ""


def _source(cursor: Cursor, database: str) -> tuple[TableName, str]:
    """The table of FROM, and the name that the query has for it."""
    table = cursor.table(database)
    if cursor.take("AS") or cursor.now.kind == TokenKind.QUOTED:
        return table, cursor.name()
    is_alias = cursor.now.kind == TokenKind.WORD and cursor.now.upper not in _CLAUSES | _DOUBTS
    return table, cursor.name() if is_alias else table[1]


def _pass_clauses(cursor: Cursor) -> None:
    """Step over WHERE, ORDER BY and LIMIT, which say nothing about columns."""
    if cursor.now.upper not in _CLAUSES:
        return
    while not (cursor.ended or cursor.is_mark(")")):
        if cursor.now.upper in _DOUBTS:
            raise _unsure()
        cursor.skip_one()


def _taken(of_table: Sequence[Column], name: str, shown: str) -> list[Column]:
    """The columns that an item names; `*`: all but the invisible ones."""
    if name == "*":
        return [_derived(column, column.name) for column in of_table if not column.invisible]
    column = find(of_table, name)
    if column is None:
        raise DDLError(f"the query has no column {name!r} that we know", remedy=_REMEDY)
    return [_derived(column, shown)]


def _derived(column: Column, name: str) -> Column:
    if column.generation_expression.startswith("ROW "):
        raise DDLError("CREATE TABLE ... SELECT takes the period of a system-versioned table", remedy=_REMEDY)
    default = "0" if column.auto_increment else column.default
    if column.generated is not Generated.NO or (column.default_is_expression and _LOST.search(default or "")):
        default = None
    return replace(
        column,
        name=name,
        default=default,
        default_is_expression=column.default_is_expression and default is not None,
        generated=Generated.NO,
        generation_expression="",
        auto_increment=False,
        invisible=False,
    )
