"""How the kernel reads a column: the cell for each kind of type.

In:  a column of a TABLE_MAP, the same column of schema_history, its canonical type.
Out: the number of the kernel's cell, bytes of a value (or of its length), and parameters; None if
     the two disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidegate.binlog.format.table_map import WireColumn
from tidegate.columnar.column_plan import INTEGER_CELLS
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.schema.model.charset_text import WIDEST
from tidegate.schema.model.columns import Column
from tidegate.schema.model.type_table import SET_MEMBERS_MAX, TEXT_BYTES, TEXTS, TYPES, Kind, Wire
from tidegate.schema.model.types import CanonicalType

_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)

Cell = tuple[int, int, tuple[int, ...]]  # CELL_*, width, parameters


def cell_of(wire: WireColumn, column: Column, kind: CanonicalType) -> Cell | None:
    """None if the event's column can't have the type that schema_history says."""
    row = TYPES[kind.text.base]
    return _CELLS[row.kind](wire, column, kind) if wire.type in row.wire else None


def _integer(_: WireColumn, __: Column, kind: CanonicalType) -> Cell:
    width = TYPES[kind.text.base].width
    return INTEGER_CELLS[width][kind.text.unsigned], width, ()


def _plain(cell: int) -> _Reader:
    return lambda _wire, _column, kind: (cell, TYPES[kind.text.base].width, ())


def _bit(wire: WireColumn, _: Column, kind: CanonicalType) -> Cell | None:
    if wire.length != (kind.text.numbers or (1,))[0]:
        return None
    return L.CELL_BIT if kind.kind is Kind.BOOLEAN else L.CELL_BITS, (wire.length + 7) // 8, ()


def _temporal(wire: WireColumn, _: Column, kind: CanonicalType) -> Cell | None:
    decimals = (kind.text.numbers or (0,))[0]
    new = {
        "datetime": (Wire.DATETIME2, L.CELL_DATETIME, 5),
        "timestamp": (Wire.TIMESTAMP2, L.CELL_TIMESTAMP, 4),
        "time": (Wire.TIME2, L.CELL_TIME, 3),
    }
    old = {
        "datetime": (Wire.DATETIME, L.CELL_OLD_DATETIME, 8),
        "timestamp": (Wire.TIMESTAMP, L.CELL_OLD_TIMESTAMP, 4),
        "time": (Wire.TIME, L.CELL_OLD_TIME, 3),
    }
    code, cell, width = new[kind.text.base]
    if wire.type == code and wire.decimals == decimals:
        fraction = (decimals + 1) // 2
        unit = 100 ** (3 - fraction)
        # P3 of a datetime is the day that the kernel has seen last; -1: none yet
        return cell, width + fraction, (fraction, unit, decimals if cell == L.CELL_TIME else -1)
    code, cell, width = old[kind.text.base]
    if wire.type != code:
        return None
    return _hires(kind.text.base, decimals) if decimals else (cell, width, ())


def _hires(base: str, decimals: int) -> Cell:
    """MariaDB's temporal types with a fraction, in its format of before 10.1
    (mysql56_temporal_format=OFF).

    The event doesn't say how many digits the fraction has. The table's definition does, and it
    can't have changed without a DDL. Widths: MariaDB sql/sql_type.cc (m_hires_bytes,
    m_sec_part_bytes).
    """
    units, micros = 10**decimals, 10 ** (6 - decimals)
    if base == "timestamp":
        fraction = (decimals + 1) // 2
        return L.CELL_TIMESTAMP, 4 + fraction, (fraction, micros, -1)
    if base == "datetime":
        return L.CELL_HIRES_DATETIME, (0, 6, 6, 7, 7, 7, 8)[decimals], (units, micros, -1)
    return L.CELL_HIRES_TIME, (0, 4, 4, 5, 5, 5, 6)[decimals], (units, micros, decimals)


def _decimal(wire: WireColumn, _: Column, kind: CanonicalType) -> Cell | None:
    digits, scale = (*kind.text.numbers, 0)[:2] if kind.text.numbers else (10, 0)
    if (wire.length, wire.decimals) != (digits, scale):
        return None
    lead, whole = (digits - scale) % 9, (digits - scale) // 9
    groups, tail = scale // 9, scale % 9
    width = _DIGIT_BYTES[lead] + 4 * whole + 4 * groups + _DIGIT_BYTES[tail]
    cell = L.CELL_DECIMAL_SMALL if width <= 8 and digits <= 18 else L.CELL_DECIMAL
    if kind.kind is Kind.DECIMAL_TEXT:
        cell = L.CELL_DECIMAL_TEXT
    return cell, width, (lead, whole, groups, tail)


def _listed(wire: WireColumn, _: Column, kind: CanonicalType) -> Cell | None:
    count = len(kind.text.members)
    if kind.text.base == "enum":
        width = 1 if count < 256 else 2
        return (L.CELL_ENUM, width, (count,)) if wire.length == width else None
    count = min(count, SET_MEMBERS_MAX)
    width = (count + 7) // 8
    width = 8 if width > 4 else width
    mask = (1 << count) - 1
    signed = mask - (1 << 64) if mask >> 63 else mask
    return (L.CELL_SET, width, (signed,)) if wire.length == width else None


def _string(wire: WireColumn, column: Column, kind: CanonicalType) -> Cell | None:
    """CHAR, VARCHAR and TEXT, and the types of bytes among them."""
    base, compressed = kind.text.base, kind.text.compressed
    if compressed != (wire.type in (Wire.VARCHAR_COMPRESSED, Wire.BLOB_COMPRESSED)):
        return None
    if base in TEXT_BYTES:
        prefix = TYPES[base].length_bytes
        return (L.CELL_BYTES, prefix, ()) if wire.length == prefix else None
    length = (kind.text.numbers or (1,))[0]
    if base in TEXTS:
        length *= WIDEST.get(column.charset, 1)
    length += compressed  # the byte of its header
    pad = (length if kind.kind is Kind.BINARY else 0,) if wire.type == Wire.STRING else ()
    return (L.CELL_BYTES, 1 if length < 256 else 2, pad) if wire.length == length else None


def _address(wire: WireColumn, _: Column, kind: CanonicalType) -> Cell | None:
    size = TYPES[kind.text.base].width
    return (L.CELL_BYTES, 1, (size,)) if wire.length == size else None


def _prefixed(*parameters: int) -> _Reader:
    """Bytes after a length. The event says how many bytes the length has."""
    return lambda wire, _column, _kind: (L.CELL_BYTES, wire.length, parameters) if 1 <= wire.length <= 4 else None


def _vector(wire: WireColumn, column: Column, kind: CanonicalType) -> Cell | None:
    """A VECTOR. MariaDB logs it as a VARBINARY with four bytes per number."""
    if wire.type == Wire.VECTOR:
        return _prefixed()(wire, column, kind)
    length = 4 * (kind.text.numbers or (0,))[0]
    return (L.CELL_BYTES, 1 if length < 256 else 2, ()) if wire.length == length else None


_Reader = Callable[[WireColumn, Column, CanonicalType], Cell | None]
# Kind in the type's row, so before its numbers and its character set count -> the reader of its cell.
_CELLS: Final[dict[Kind, _Reader]] = {
    Kind.INT: _integer,
    Kind.FLOAT: _plain(L.CELL_COPY32),
    Kind.DOUBLE: _plain(L.CELL_COPY64),
    Kind.YEAR: _plain(L.CELL_YEAR),
    Kind.DATE: _plain(L.CELL_DATE),
    Kind.DATETIME: _temporal,
    Kind.TIMESTAMP: _temporal,
    Kind.TIME: _temporal,
    Kind.DECIMAL: _decimal,
    Kind.BIT: _bit,
    Kind.ENUM: _listed,
    Kind.SET: _listed,
    Kind.TEXT: _string,
    Kind.BINARY: _string,
    Kind.UUID: _address,
    Kind.INET: _address,
    Kind.JSON: _prefixed(),
    Kind.VECTOR: _vector,
    Kind.GEOMETRY: _prefixed(0, 1),
}
