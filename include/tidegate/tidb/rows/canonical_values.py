"""TiDB's cells as canonical values.

In:  a column of a table version beside TiDB's own description of it, and what a row has in it.
Out: Python values for the column's Arrow type. UnsupportedValue for what silver can't hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from tidegate.errors import DecodeError, UnsupportedValue
from tidegate.remedy import REPORT
from tidegate.schema.model.columns import Column
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import ZeroDates, canonical
from tidegate.tidb.codec.datum import Json, Value
from tidegate.tidb.jobs import ColumnInfo
from tidegate.tidb.values.cells import cell_text, moment

Cell: TypeAlias = Value | str
Convert: TypeAlias = Callable[[Cell], Any]


class Converter:
    """One column's. nulls: zero and impossible dates that became NULL so far. in_key: they are an error."""

    def __init__(self, column: Column, info: ColumnInfo, zero_dates: ZeroDates, *, in_key: bool = False) -> None:
        self._info = info
        self._in_key = in_key
        self._zero_dates = zero_dates
        self._kind = canonical(column)
        self.name = column.silver
        self.nulls = 0
        self._convert = self._by_kind()

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self._kind.arrow)

    def array(self, cells: Sequence[Cell]) -> pa.Array:
        """Raises UnsupportedValue, DecodeError."""
        convert = self._convert
        try:
            return pa.array([None if cell is None else convert(cell) for cell in cells], self._kind.arrow)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
            raise DecodeError(f"column {self._info.name} ({self._info.type_text}): {error}", remedy=REPORT) from None

    def _by_kind(self) -> Convert:
        kind = self._kind.kind
        if convert := _PLAIN.get(kind):
            return convert
        match kind:
            case Kind.DATE | Kind.DATETIME | Kind.TIMESTAMP:
                return self._moment
            case Kind.BIT:
                size = (self._kind.text.numbers[0] + 7) // 8
                return lambda cell: _number(cell).to_bytes(size, "big")
            case Kind.BINARY:
                return self._bytes
        return self._text

    def _text(self, cell: Cell) -> str | None:
        return cell if isinstance(cell, str) else cell_text(self._info, cell)

    def _bytes(self, cell: Cell) -> bytes:
        if not isinstance(cell, bytes) or isinstance(cell, Json):
            raise DecodeError(f"column {self._info.name} has no bytes", remedy=REPORT)
        width = self._info.length if self._kind.text.base == "binary" else 0
        return cell.ljust(width, b"\0")

    def _moment(self, cell: Cell) -> date | datetime | None:
        at = moment(_number(cell))
        try:
            if self._kind.kind is Kind.DATE:
                return date(at.year, at.month, at.day)
            return datetime(*at, tzinfo=UTC if self._kind.kind is Kind.TIMESTAMP else None)
        except ValueError:
            if self._in_key or self._zero_dates is ZeroDates.ERROR:
                raise self._refused(cell_text(self._info, _number(cell))) from None
            self.nulls += 1
            return None

    def _refused(self, shown: str | None) -> UnsupportedValue:
        if self._in_key:
            return UnsupportedValue(
                f"column {self._info.name} of the key holds {shown}, which no calendar has: NULL would stand for all"
                " such keys",
                remedy="repair the row at the source, or leave the table out",
            )
        return UnsupportedValue(
            f"column {self._info.name} holds a date that no calendar has", remedy="set apply.zero_dates: null"
        )


def _number(cell: Cell) -> int:
    if not isinstance(cell, int):
        raise DecodeError(f"a {type(cell).__name__} where a number should be", remedy=REPORT)
    return cell


_PLAIN: Final[dict[Kind, Convert]] = {
    Kind.INT: _number,
    Kind.YEAR: _number,
    Kind.UNSIGNED_BIGINT: lambda cell: Decimal(_number(cell)),
    Kind.BOOLEAN: lambda cell: bool(_number(cell)),
    Kind.FLOAT: lambda cell: cell,
    Kind.DOUBLE: lambda cell: cell,
    Kind.DECIMAL: lambda cell: cell,
}
