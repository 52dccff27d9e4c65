"""TABLE_MAP: the shape of the rows that follow it.

In:  the body of a TABLE_MAP event after its table id and flags.
Out: a TableMap: types and metadata of every column, and the optional metadata the server wrote
     (nothing, MINIMAL or FULL). Values it didn't write are None.

Layout (mysql-server libs/mysql/binlog/event/rows_event.h, Table_map_event; MariaDB
sql/log_event.h): table id u48, flags u16 | database length u8, name, NUL, table length u8, name,
NUL, column count packed, type per column u8, metadata length packed, metadata, nullable bitmap,
then optional metadata fields: type u8, length packed, value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from tidegate.columnar.cursor import ByteCursor
from tidegate.errors import DecodeError
from tidegate.remedy import REPORT
from tidegate.schema.model.charset_text import charset_of_collation
from tidegate.schema.model.type_table import Wire

# Type -> bytes of its metadata (Table_map_event, "metadata"). Other types have none.
_METADATA_BYTES: Final = {
    Wire.FLOAT: 1,
    Wire.DOUBLE: 1,
    Wire.VARCHAR: 2,
    Wire.BIT: 2,
    Wire.TIMESTAMP2: 1,
    Wire.DATETIME2: 1,
    Wire.TIME2: 1,
    Wire.BLOB_COMPRESSED: 1,
    Wire.VARCHAR_COMPRESSED: 2,
    Wire.VECTOR: 1,
    Wire.JSON: 1,
    Wire.NEWDECIMAL: 2,
    Wire.ENUM: 2,
    Wire.SET: 2,
    Wire.BLOB: 1,
    Wire.VAR_STRING: 2,
    Wire.STRING: 2,
    Wire.GEOMETRY: 1,
}
_NUMERIC: Final = frozenset(
    {Wire.TINY, Wire.SHORT, Wire.INT24, Wire.LONG, Wire.LONGLONG, Wire.NEWDECIMAL, Wire.FLOAT, Wire.DOUBLE, Wire.YEAR}
)
# Types with a collation in the optional metadata. A VECTOR has one (random tables on MySQL 9.7 show it).
_CHARACTER: Final = frozenset(
    {Wire.STRING, Wire.VAR_STRING, Wire.VARCHAR, Wire.BLOB, Wire.VECTOR, Wire.VARCHAR_COMPRESSED, Wire.BLOB_COMPRESSED}
)


class _Field(IntEnum):
    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SET_MEMBERS = 5
    ENUM_MEMBERS = 6
    GEOMETRY_TYPE = 7
    SIMPLE_PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9
    ENUM_AND_SET_DEFAULT_CHARSET = 10
    ENUM_AND_SET_COLUMN_CHARSET = 11
    COLUMN_VISIBILITY = 12
    VECTOR_DIMENSIONALITY = 13


@dataclass(frozen=True, slots=True)
class WireColumn:
    """One column as the server describes it. From `unsigned` on, None means that the server didn't
    say it.

    type: the real type (of a STRING that is an ENUM or SET, this one). length: the most bytes of a
    STRING, VARCHAR, ENUM or SET; bits of a BIT; digits of a NEWDECIMAL; bytes of a BLOB's length
    prefix. decimals: scale, or digits of a second's fraction. charset: by name, "binary" for bytes.
    members: of ENUM and SET, raw bytes in their character set. geometry: number of its subtype
    (GEOMETRY_NAMES). dimensions: the most a VECTOR may have.
    """

    type: Wire
    length: int
    decimals: int
    nullable: bool
    unsigned: bool | None = None
    charset: str | None = None
    name: str | None = None
    members: tuple[bytes, ...] | None = None
    visible: bool | None = None
    geometry: int | None = None
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class TableMap:
    """primary_key: column numbers; None if the server didn't say it. prefixed: of some, only a
    prefix is in the key.
    """

    database: str
    table: str
    columns: tuple[WireColumn, ...]
    primary_key: tuple[int, ...] | None = None
    prefixed: bool = False

    @property
    def name(self) -> str:
        return f"{self.database}.{self.table}"


def read_name(body: bytes) -> tuple[str, str]:
    """Database and table of a TABLE_MAP body."""
    cursor = ByteCursor(body)
    return _name(cursor), _name(cursor)


def _name(cursor: ByteCursor) -> str:
    name = cursor.text(cursor.unsigned(1))
    cursor.take(1)
    return name


def parse_table_map(body: bytes, *, mariadb: bool = False) -> TableMap:
    """body: the event after table id and flags, without its checksum. Raises DecodeError,
    UnsupportedValue.

    mariadb: its geometries count as character columns (with the collation binary); MySQL's don't.
    """
    cursor = ByteCursor(body)
    database, table = _name(cursor), _name(cursor)
    count = cursor.packed()
    codes = cursor.take(count)
    metadata = ByteCursor(cursor.take(cursor.packed()))
    bitmap = cursor.take((count + 7) // 8)
    shapes = [_shape(code, metadata) for code in codes]
    if metadata:
        raise DecodeError(f"TABLE_MAP of {database}.{table} has metadata left over", remedy=REPORT)
    optional: dict[int, bytes] = {}
    while cursor:
        kind = cursor.unsigned(1)
        optional[kind] = cursor.take(cursor.packed())
    extras = _extras([shape[0] for shape in shapes], optional, _CHARACTER | {Wire.GEOMETRY} if mariadb else _CHARACTER)
    columns = tuple(
        WireColumn(*shape, nullable=bool(bitmap[i >> 3] >> (i & 7) & 1), **extras[i]) for i, shape in enumerate(shapes)
    )
    prefixed = _Field.PRIMARY_KEY_WITH_PREFIX in optional
    return TableMap(database, table, columns, _primary_key(optional), prefixed)


def _wire(code: int) -> Wire:
    try:
        return Wire(code)
    except ValueError:
        raise DecodeError(f"column type {code} in TABLE_MAP is not known", remedy=REPORT) from None


def _shape(code: int, metadata: ByteCursor) -> tuple[Wire, int, int]:
    kind = _wire(code)
    width = _METADATA_BYTES.get(kind, 0)
    if kind in (Wire.STRING, Wire.ENUM, Wire.SET):
        # real type, length; a length over 255 hides its two high bits, inverted, in the type byte
        # (Field_string::do_save_field_metadata)
        first, second = metadata.unsigned(1), metadata.unsigned(1)
        if first & 0x30 != 0x30:
            return _wire(first | 0x30), second | ((first & 0x30) ^ 0x30) << 4, 0
        return _wire(first), second, 0
    if kind == Wire.NEWDECIMAL:
        return kind, metadata.unsigned(1), metadata.unsigned(1)
    if kind == Wire.BIT:
        bits, whole = metadata.unsigned(1), metadata.unsigned(1)
        return kind, whole * 8 + bits, 0
    value = metadata.unsigned(width)
    if kind in (Wire.TIMESTAMP2, Wire.DATETIME2, Wire.TIME2):
        return kind, 0, value
    return kind, value, 0


def _extras(types: list[Wire], optional: dict[int, bytes], with_charset: frozenset[Wire]) -> list[dict[str, Any]]:
    extras: list[dict[str, Any]] = [{} for _ in types]
    numeric = [i for i, kind in enumerate(types) if kind in _NUMERIC]
    character = [i for i, kind in enumerate(types) if kind in with_charset]
    listed = [i for i, kind in enumerate(types) if kind in (Wire.ENUM, Wire.SET)]
    if _Field.SIGNEDNESS in optional:
        _set_bits(extras, numeric, "unsigned", optional[_Field.SIGNEDNESS])
    _set_charsets(extras, character, optional, (_Field.DEFAULT_CHARSET, _Field.COLUMN_CHARSET))
    _set_charsets(extras, listed, optional, (_Field.ENUM_AND_SET_DEFAULT_CHARSET, _Field.ENUM_AND_SET_COLUMN_CHARSET))
    for kind, field, name, read in _PER_COLUMN:
        if field in optional:
            cursor = ByteCursor(optional[field])
            for extra, column in zip(extras, types, strict=True):
                if kind in (None, column):
                    extra[name] = read(cursor)
            _end(cursor, name)
    if _Field.COLUMN_VISIBILITY in optional:
        _set_bits(extras, list(range(len(types))), "visible", optional[_Field.COLUMN_VISIBILITY])
    return extras


def _text(cursor: ByteCursor) -> str:
    return cursor.text(cursor.packed())


def _members(cursor: ByteCursor) -> tuple[bytes, ...]:
    return tuple(cursor.take(cursor.packed()) for _ in range(cursor.packed()))


# Fields with one value per column of a type (None: per column): type, field, attribute, its reader.
_PER_COLUMN: Final[tuple[tuple[Wire | None, _Field, str, Callable[[ByteCursor], Any]], ...]] = (
    (None, _Field.COLUMN_NAME, "name", _text),
    (Wire.ENUM, _Field.ENUM_MEMBERS, "members", _members),
    (Wire.SET, _Field.SET_MEMBERS, "members", _members),
    (Wire.GEOMETRY, _Field.GEOMETRY_TYPE, "geometry", ByteCursor.packed),
    (Wire.VECTOR, _Field.VECTOR_DIMENSIONALITY, "dimensions", ByteCursor.packed),
)


def _end(cursor: ByteCursor, name: str) -> None:
    """Refuse a field with values for more columns than there are: then the columns weren't
    understood, either.
    """
    if cursor:
        raise DecodeError(f"TABLE_MAP says {name} for more columns than it has of that kind", remedy=REPORT)


def _set_bits(extras: list[dict[str, Any]], columns: list[int], name: str, bitmap: bytes) -> None:
    """One bit per column in the list, from the highest bit of the first byte on."""
    if len(bitmap) != (len(columns) + 7) // 8:
        raise DecodeError(f"TABLE_MAP's {name} bitmap isn't one of {len(columns)} columns", remedy=REPORT)
    for n, i in enumerate(columns):
        extras[i][name] = bool(bitmap[n >> 3] >> (7 - (n & 7)) & 1)


def _set_charsets(
    extras: list[dict[str, Any]], columns: list[int], optional: dict[int, bytes], fields: tuple[_Field, _Field]
) -> None:
    """Either a default, and the columns that differ (counted among these columns), or one collation
    for each.
    """
    default_field, column_field = fields
    if default_field in optional:
        cursor = ByteCursor(optional[default_field])
        collations = [cursor.packed()] * len(columns)
        while cursor:
            n = cursor.packed()
            if n >= len(columns):
                raise DecodeError(f"TABLE_MAP gives a collation to column {n} of {len(columns)}", remedy=REPORT)
            collations[n] = cursor.packed()
    elif column_field in optional:
        cursor = ByteCursor(optional[column_field])
        collations = [cursor.packed() for _ in columns]
        _end(cursor, "charset")
    else:
        return
    for i, collation in zip(columns, collations, strict=True):
        extras[i]["charset"] = charset_of_collation(collation)


def _primary_key(optional: dict[int, bytes]) -> tuple[int, ...] | None:
    if _Field.SIMPLE_PRIMARY_KEY in optional:
        cursor = ByteCursor(optional[_Field.SIMPLE_PRIMARY_KEY])
        key = []
        while cursor:
            key.append(cursor.packed())
        return tuple(key)
    if _Field.PRIMARY_KEY_WITH_PREFIX in optional:
        cursor = ByteCursor(optional[_Field.PRIMARY_KEY_WITH_PREFIX])
        key = []
        while cursor:
            key.append(cursor.packed())
            cursor.packed()  # length of the prefix; 0 means the whole column
        return tuple(key)
    return None
