"""A column's type, from a TABLE_MAP alone.

In:  a WireColumn.
Out: its column_type text as in information_schema. If the event lacks a fact, the smallest meaning
     is taken: bytes without a character set, signed without a sign. A caller that must not guess
     checks before.
"""

from __future__ import annotations

from typing import Final

from tidegate.binlog.format.table_map import WireColumn
from tidegate.errors import UnsupportedValue
from tidegate.schema.model.charset_text import WIDEST, decode_member
from tidegate.schema.model.type_table import GEOMETRY_NAMES, NUMBER_NAMES, SIZED_NAMES, Wire
from tidegate.schema.model.types import COMPRESSED, members_text

_TEMPORALS: Final = {
    Wire.DATE: "date",
    Wire.NEWDATE: "date",
    Wire.YEAR: "year",
    Wire.TIME: "time",
    Wire.TIME2: "time",
    Wire.DATETIME: "datetime",
    Wire.DATETIME2: "datetime",
    Wire.TIMESTAMP: "timestamp",
    Wire.TIMESTAMP2: "timestamp",
}


def type_text(wire: WireColumn) -> str:
    """Raises UnsupportedValue for a type without a name in SQL."""
    unsigned = " unsigned" if wire.unsigned else ""
    if wire.type in NUMBER_NAMES:
        return NUMBER_NAMES[wire.type] + unsigned
    if wire.type == Wire.NEWDECIMAL:
        return f"decimal({wire.length},{wire.decimals}){unsigned}"
    if wire.type in _TEMPORALS:
        return _TEMPORALS[wire.type] + (f"({wire.decimals})" if wire.decimals else "")
    if wire.type == Wire.BIT:
        return f"bit({wire.length})"
    if wire.type == Wire.JSON:
        return "json"
    if wire.type == Wire.GEOMETRY:
        return GEOMETRY_NAMES[min(wire.geometry or 0, len(GEOMETRY_NAMES) - 1)][0]
    if wire.type == Wire.VECTOR:
        return "vector" if wire.dimensions is None else f"vector({wire.dimensions})"
    if wire.type in (Wire.ENUM, Wire.SET):
        return f"{wire.type.name.lower()}({members_text(_members(wire))})"
    text = wire.charset not in (None, "binary")
    if wire.type in (Wire.BLOB, Wire.BLOB_COMPRESSED) and wire.length in SIZED_NAMES:
        suffix = COMPRESSED if wire.type == Wire.BLOB_COMPRESSED else ""
        return SIZED_NAMES[wire.length][0 if text else 1] + suffix
    if wire.type == Wire.VARCHAR_COMPRESSED:  # one byte longer than its values, for their header
        return _string("varchar", wire.length - 1, wire) + COMPRESSED
    if wire.type in (Wire.STRING, Wire.VARCHAR, Wire.VAR_STRING):
        return _string("char" if wire.type == Wire.STRING else "varchar", wire.length, wire)
    raise UnsupportedValue(
        f"column {wire.name or ''} has type {wire.type.name}, which the log alone doesn't explain",
        remedy="give the table's definition (--schema)",
    )


def _string(base: str, length: int, wire: WireColumn) -> str:
    if wire.charset not in (None, "binary"):
        return f"{base}({length // WIDEST.get(wire.charset or '', 1)})"
    return f"{base.replace('char', 'binary')}({length})"


def _members(wire: WireColumn) -> tuple[str, ...]:
    """The members; or, if the event lacks them, as many stand-ins as give the same width."""
    if wire.members is not None:
        return tuple(decode_member(wire.charset or "utf8mb4", member) for member in wire.members)
    if wire.type == Wire.ENUM:
        return tuple(map(str, range(1 if wire.length == 1 else 256)))
    return tuple(map(str, range(8 * wire.length)))
