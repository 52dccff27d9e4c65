"""The data types of the servers, a row for each: its form in silver, and its name in the log.

In:  nothing.
Out: TYPES, and lists of names derived from it. docs/inside/extend.md has the steps for a new type;
     tests/unit/binlog/test_type_table.py names each place that lacks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

import pyarrow as pa


class Kind(StrEnum):
    """How a column's values are read; several server types share a kind."""

    INT = "int"
    UNSIGNED_BIGINT = "unsigned bigint"  # decimal(20,0): Spark has no unsigned 64-bit integer
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DECIMAL_TEXT = "decimal text"  # more than 38 digits
    BOOLEAN = "boolean"  # bit(1)
    BIT = "bit"  # bit(n): big-endian bytes, (n + 7) // 8 of them
    DATE = "date"
    DATETIME = "datetime"
    TIMESTAMP = "timestamp"
    TIME = "time"
    YEAR = "year"
    TEXT = "text"
    ENUM = "enum"
    SET = "set"
    BINARY = "binary"
    JSON = "json"  # MySQL's binary JSON; MariaDB's json is a longtext
    GEOMETRY = "geometry"
    VECTOR = "vector"
    UUID = "uuid"
    INET = "inet"


class Wire(IntEnum):
    """Column types on the wire (enum_field_types)."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    TYPED_ARRAY = 244
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A data type. kind, arrow, delta: what silver makes of it, before its numbers, signs and character sets count.

    wire: its forms in the log, the usual one first. width: bytes of a value, if always the same. capacity: bytes of a
    text or blob with a size of its own. shown: display widths of an integer, signed and unsigned. unsigned: (kind,
    arrow, delta) of an integer without a sign. as_binary: the result of CHARACTER SET binary on a text.
    """

    base: str
    kind: Kind
    arrow: pa.DataType
    delta: str
    wire: tuple[Wire, ...]
    width: int = 0
    capacity: int = 0
    shown: tuple[int, int] = (0, 0)
    unsigned: tuple[Kind, pa.DataType, str] | None = None
    as_binary: str = ""

    @property
    def length_bytes(self) -> int:
        """How many bytes the length of a value has, of a type with a capacity."""
        return (self.capacity.bit_length() + 7) // 8


_STRING: Final = (pa.string(), "string")
_BYTES: Final = (pa.binary(), "binary")
_TINY: Final = (pa.int8(), "tinyint")
_SMALL: Final = (pa.int16(), "smallint")
_INT: Final = (pa.int32(), "int")
_BIG: Final = (pa.int64(), "bigint")
_FIXED: Final = (Wire.STRING,)
_VARYING: Final = (Wire.VARCHAR, Wire.VAR_STRING, Wire.VARCHAR_COMPRESSED)
_SIZED: Final = (Wire.BLOB, Wire.BLOB_COMPRESSED)
_SIZES: Final = {"tiny": 255, "": 65535, "medium": 16777215, "long": 4294967295}
# In the order of their numbers on the wire (Field::geometry_type); the last one has two names.
_SHAPES: Final = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection",
    "geomcollection",
)  # fmt: skip

_ROWS: Final = (
    ColumnType("tinyint", Kind.INT, *_TINY, (Wire.TINY,), 1, shown=(4, 3), unsigned=(Kind.INT, *_SMALL)),
    ColumnType("smallint", Kind.INT, *_SMALL, (Wire.SHORT,), 2, shown=(6, 5), unsigned=(Kind.INT, *_INT)),
    ColumnType("mediumint", Kind.INT, *_INT, (Wire.INT24,), 3, shown=(9, 8), unsigned=(Kind.INT, *_INT)),
    ColumnType("int", Kind.INT, *_INT, (Wire.LONG,), 4, shown=(11, 10), unsigned=(Kind.INT, *_BIG)),
    ColumnType("bigint", Kind.INT, *_BIG, (Wire.LONGLONG,), 8, shown=(20, 20),
               unsigned=(Kind.UNSIGNED_BIGINT, pa.decimal128(20, 0), "decimal(20,0)")),
    ColumnType("float", Kind.FLOAT, pa.float32(), "float", (Wire.FLOAT,), 4),
    ColumnType("double", Kind.DOUBLE, pa.float64(), "double", (Wire.DOUBLE,), 8),
    ColumnType("decimal", Kind.DECIMAL, pa.decimal128(10, 0), "decimal(10,0)", (Wire.NEWDECIMAL,)),
    ColumnType("bit", Kind.BIT, *_BYTES, (Wire.BIT,)),
    ColumnType("date", Kind.DATE, pa.date32(), "date", (Wire.DATE,), 3),
    ColumnType("datetime", Kind.DATETIME, pa.timestamp("us"), "timestamp_ntz", (Wire.DATETIME2, Wire.DATETIME)),
    ColumnType("timestamp", Kind.TIMESTAMP, pa.timestamp("us", tz="UTC"), "timestamp",
               (Wire.TIMESTAMP2, Wire.TIMESTAMP)),
    ColumnType("time", Kind.TIME, *_STRING, (Wire.TIME2, Wire.TIME)),
    ColumnType("year", Kind.YEAR, *_SMALL, (Wire.YEAR,), 1),
    ColumnType("char", Kind.TEXT, *_STRING, _FIXED, as_binary="binary"),
    ColumnType("varchar", Kind.TEXT, *_STRING, _VARYING, as_binary="varbinary"),
    ColumnType("binary", Kind.BINARY, *_BYTES, _FIXED),
    ColumnType("varbinary", Kind.BINARY, *_BYTES, _VARYING),
    *(ColumnType(f"{size}text", Kind.TEXT, *_STRING, _SIZED, capacity=count, as_binary=f"{size}blob")
      for size, count in _SIZES.items()),
    *(ColumnType(f"{size}blob", Kind.BINARY, *_BYTES, _SIZED, capacity=count) for size, count in _SIZES.items()),
    ColumnType("enum", Kind.ENUM, *_STRING, (Wire.ENUM,)),
    ColumnType("set", Kind.SET, *_STRING, (Wire.SET,)),
    ColumnType("json", Kind.JSON, *_STRING, (Wire.JSON,)),
    ColumnType("vector", Kind.VECTOR, pa.list_(pa.float32()), "array<float>", (Wire.VECTOR, Wire.VARCHAR)),
    ColumnType("uuid", Kind.UUID, *_STRING, _FIXED, 16),
    ColumnType("inet4", Kind.INET, *_STRING, _FIXED, 4),
    ColumnType("inet6", Kind.INET, *_STRING, _FIXED, 16),
    *(ColumnType(shape, Kind.GEOMETRY, *_BYTES, (Wire.GEOMETRY,)) for shape in _SHAPES),
)  # fmt: skip
TYPES: Final = {row.base: row for row in _ROWS}


def _named(kind: Kind) -> tuple[str, ...]:
    return tuple(row.base for row in _ROWS if row.kind is kind)


INTEGERS: Final = _named(Kind.INT)
TEXTS: Final = _named(Kind.TEXT)
BINARIES: Final = _named(Kind.BINARY)
GEOMETRIES: Final = _named(Kind.GEOMETRY)
# Names of a geometry's type, by its number on the wire.
GEOMETRY_NAMES: Final = (*((shape,) for shape in _SHAPES[:-2]), _SHAPES[-2:])
# Bits of a SET's number. A MariaDB without strict mode takes a longer list that names members twice:
# those beyond have no bit.
SET_MEMBERS_MAX: Final = 64
# What each text and blob that has a size of its own holds, smallest first.
TEXT_BYTES: Final = {row.base: row.capacity for row in _ROWS if row.capacity}
# Numbers without a length: as information_schema names them, without their sign.
NUMBER_NAMES: Final = {
    row.wire[0]: row.base for row in _ROWS if row.kind in (Kind.INT, Kind.FLOAT, Kind.DOUBLE)
}  # fmt: skip
# Bytes of a length -> the text and the blob that has it.
SIZED_NAMES: Final = {
    TYPES[f"{size}text"].length_bytes: (f"{size}text", f"{size}blob") for size in _SIZES
}  # fmt: skip
