"""A key's columns as the server compares them, and the facts of a definition that decide their
order.

In:  a table version.
Out: columns for conditions; SQL for a value as a literal; a text per column about its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.mysql.sql_text.sql import ByNumber, quote_name
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical, enum_members

_NUMBERED_MAX: Final = 1024  # so long a list of numbers may be in a condition
_LISTED: Final = frozenset({Kind.ENUM, Kind.SET})
_NUMBERS: Final = frozenset({Kind.INT, Kind.UNSIGNED_BIGINT, Kind.YEAR, Kind.BOOLEAN, Kind.BIT})
_DECIMALS: Final = frozenset({Kind.DECIMAL, Kind.DECIMAL_TEXT})
_QUOTED: Final = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP, Kind.TIME, Kind.UUID, Kind.INET})


def key_of(version: TableVersion) -> list[Column]:
    """The columns of its key, in the key's order."""
    by_id = {column.id: column for column in version.columns}
    return [by_id[column_id] for column_id in version.key]


def compared_key(version: TableVersion) -> list[str | ByNumber]:
    """The parts of conditions on a table's key. A TiDB finds ranges of an ENUM as of any other type."""
    return [column.name if version.origin else compared_as(column) for column in key_of(version)]


def compared_as(column: Column) -> str | ByNumber:
    """How MySQL and MariaDB compare a column: their index finds a value of an ENUM, but no range."""
    kind = canonical(column).kind
    if kind not in _LISTED:
        return column.name
    members = len(enum_members(column.type))
    # And one more than it has: of rows that it knows to have one value MySQL sorts all, to give the first of them.
    last = members + 1 if kind is Kind.ENUM else 2 ** min(members, 64)
    return ByNumber(column.name, last) if last < _NUMBERED_MAX else column.name


def literal_sql(column: Column, charset: str = "") -> str:
    """SQL for a value as a literal, as reading/result/literals.py makes it of bytes; "" for values of no
    key of ours.

    charset: in which the server has all text, if it isn't the column's own.
    """
    name, kind = quote_name(column.name), canonical(column).kind
    if kind in _LISTED:  # + 0 would be a DOUBLE to MySQL, which has 17 digits
        return f"CAST(CAST({name} AS UNSIGNED) AS CHAR)"
    if kind in _NUMBERS:
        return f"CAST({name} + 0 AS CHAR)"
    if kind in _DECIMALS:
        return f"CAST({name} AS CHAR)"
    if kind in (Kind.FLOAT, Kind.DOUBLE):  # without an exponent it would be a DECIMAL
        text = f"CAST({name} + 0e0 AS CHAR)"
        return f"CONCAT({text}, IF(INSTR({text}, 'e') > 0, '', 'e0'))"
    if kind in _QUOTED:
        return f"CONCAT('\\'', {name}, '\\'')"
    if kind is Kind.BINARY:
        return f"CONCAT('x\\'', HEX({name}), '\\'')"
    if kind is Kind.TEXT and charset:
        return f"CONCAT('_{charset} x\\'', HEX(CONVERT({name} USING {charset})), '\\'')"
    if kind is Kind.TEXT:
        return f"CONCAT('_{column.charset} x\\'', HEX({name}), '\\'')"
    return ""


def ordered_as(version: TableVersion) -> tuple[str, ...]:
    """A text per column of the key that shows how the server orders it. Columns with the same text,
    or with a continued one, have the same order.
    """
    return tuple(_order(column) for column in key_of(version))


def is_ordered_alike(before: Sequence[str], now: Sequence[str]) -> bool:
    """Whether keys ordered by `before` are also ordered by `now`. An ENUM may have got new members
    at its end.
    """
    return len(before) == len(now) and all(new.startswith(old) for old, new in zip(before, now, strict=True))


def _order(column: Column) -> str:
    kind = canonical(column).kind
    if kind in (Kind.INT, Kind.UNSIGNED_BIGINT):
        return "integer"
    if kind in _DECIMALS:
        return "decimal"
    if kind is Kind.TEXT:
        return f"text {column.charset} {column.collation}."
    if kind in (Kind.FLOAT, Kind.DOUBLE) or column.type.startswith("binary"):  # with more of it values are other ones
        return f"{kind} {column.type}."
    return f"{kind} {column.type.rstrip(')')}"
