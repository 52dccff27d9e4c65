"""The value of a cell that a table's row doesn't name.

In:  a row's cells, a column.
Out: the cell's value: the stored one, the column's origin default, or a virtual column's result.
"""

from __future__ import annotations

from decimal import Decimal

from tidegate.errors import UnsupportedValue
from tidegate.tidb.codec.datum import Cells, Json, Value
from tidegate.tidb.codec.json_binary import json_text
from tidegate.tidb.jobs import MOMENTS, ColumnInfo, TableInfo, Tp
from tidegate.tidb.values.cells import Moment, packed
from tidegate.tidb.values.evaluate import evaluate, parsed
from tidegate.tidb.values.sql_value import Sql, cell_value, refuse, sql_value

_ZERO_MOMENT = packed(Moment(0, 0, 0))


def cell(column: ColumnInfo, cells: Cells) -> Value | str:
    """A cell of a column that is no virtual one."""
    if column.id in cells:
        return cells[column.id]
    return origin_default(column)


def origin_default(column: ColumnInfo) -> Value | str:
    """The value of rows that were there before their column was; TIMESTAMP literals are in UTC."""
    text = column.origin_default
    if text is None:
        return None
    if column.tp in MOMENTS and text.startswith("0000-00-00"):
        return _ZERO_MOMENT
    if column.tp is Tp.BIT:
        return int.from_bytes(text.encode("latin-1"), "big")
    if column.tp in (Tp.ENUM, Tp.SET) and text.isdigit() and text not in column.members:
        return int(text)
    if not text and column.tp in (Tp.ENUM, Tp.SET):
        return 0
    return cell_value(column, text)


def computed(table: TableInfo, cells: Cells) -> dict[int, Value | str]:
    """Every cell of a row, by column id. Raises UnsupportedValue for a virtual column that isn't known here."""
    by_id = {column.id: cell(column, cells) for column in table.columns if not column.is_virtual}
    for column in table.columns:
        if column.is_virtual and not column.hidden:
            by_id[column.id] = _virtual(table, column, by_id)
    return by_id


def _virtual(table: TableInfo, column: ColumnInfo, by_id: dict[int, Value | str]) -> Value | str:
    def value(name: str) -> Sql:
        other = table.column(name)
        if other is None:
            refuse(column, name)
        if other.id not in by_id:
            by_id[other.id] = _virtual(table, other, by_id)
        return sql_value(other, by_id[other.id])

    try:
        return cell_value(column, evaluate(parsed(column.expression), value))
    except UnsupportedValue as error:
        raise UnsupportedValue(
            f"virtual column {column.name} AS ({column.expression}): {error.what}", remedy=error.remedy
        ) from None


def comparable(value: Value | str) -> object:
    """Two cells are one value if these are equal."""
    if isinstance(value, Json):
        return json_text(value)
    if isinstance(value, float | Decimal):
        return value + 0  # -0 is 0
    return value
