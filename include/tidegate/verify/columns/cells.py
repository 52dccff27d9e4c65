"""One column on both sides, brought to a form in which equal values are equal Python objects.

In:  the server's data_type and column_type of a column (information_schema).
Out: SQL for MySQL and MariaDB, SQL for DuckDB, and a converter for each side.

Forms: integers int (also BIT, booleans, YEAR), DECIMAL text with its scale, FLOAT and DOUBLE float (a FLOAT widened
exactly), DATE days and DATETIME, TIMESTAMP microseconds since 1970-01-01 as int, text str, binary bytes, VECTOR bytes
of little-endian float32. Impossible dates are None on the server's side: silver has null for them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from tidegate.errors import VerifyError
from tidegate.mysql.sql_text.sql import quote_name
from tidegate.query.duck import identifier
from tidegate.remedy import REPORT
from tidegate.silver_names import silver_column
from tidegate.verify.columns.forms import decimal_text

Convert = Callable[[Any], Any]

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
_BINARIES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_AS_TEXT: Final = frozenset({"time", "json", "uuid", "inet4", "inet6"})
_GEOMETRIES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geomcollection", "geometrycollection"}
)
_DATETIME: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?")
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Cell:
    """A column to compare: two SQL expressions, and what brings their values to one form (None: they are).

    shown: that form as people read it; None: as it is.
    """

    name: str
    source_sql: str
    silver_sql: str
    from_source: Convert | None = None
    from_silver: Convert | None = None
    shown: Convert | None = None


def cell(name: str, data_type: str, column_type: str, silver: str = "") -> Cell:
    """How to compare a column of this type. silver: its name there, where a rule gives one.

    Raises VerifyError for a type that isn't known.
    """
    kind = data_type.lower()
    here, in_silver = quote_name(name), identifier(silver or silver_column(name))
    if column_type.lower() == "year(2)":  # the server shows two digits of the year that it stores and logs
        return Cell(name, f"{here} + 0", f"CAST({in_silver} AS INTEGER) % 100", int)
    if kind in _INTEGERS:
        # Silver has booleans where the pipeline file asks for them, and decimal(20,0) for BIGINT UNSIGNED.
        return Cell(name, f"{here} + 0", f"CAST({in_silver} AS HUGEINT)", int)
    if kind == "bit":
        if column_type.lower() in ("bit", "bit(1)"):
            return Cell(name, f"{here} + 0", f"CAST({in_silver} AS INTEGER)", int)
        return Cell(name, f"{here} + 0", in_silver, int, _from_big_endian)
    if kind == "decimal":
        return Cell(name, here, decimal_text(in_silver), _fixed_point)
    if kind in ("float", "double"):
        return Cell(name, f"({here} + 0e0)", f"CAST({in_silver} AS DOUBLE)", _positive_zero, _positive_zero)
    if kind == "date":
        return Cell(
            name, f"CAST({here} AS CHAR)", f"date_diff('day', DATE '1970-01-01', {in_silver})", _days, shown=_date_text
        )
    if kind in ("datetime", "timestamp"):
        return Cell(name, f"CAST({here} AS CHAR)", f"epoch_us({in_silver})", _micros, shown=_moment_text)
    if kind in _TEXTS:
        return Cell(name, here, in_silver, _text)
    if kind in _AS_TEXT:
        return Cell(name, f"CAST({here} AS CHAR)", in_silver, _text)
    if kind in _BINARIES:
        return Cell(name, here, in_silver, _bytes)
    if kind in _GEOMETRIES:
        # The column's own bytes: ST_AsBinary would lose the SRID, and swap the axes of a geographic one.
        return Cell(name, f"HEX({here})", in_silver, _geometry)
    if kind == "vector":
        return Cell(name, f"HEX({here})", in_silver, bytes.fromhex, _packed)
    raise VerifyError(f"column {name} has type {column_type}, which verify doesn't know", remedy=REPORT)


def _fixed_point(value: Any) -> str:
    return format(value if isinstance(value, Decimal) else Decimal(str(value)), "f")


def _positive_zero(value: Any) -> float:
    """Minus zero is zero: servers differ in whether they show its sign."""
    return float(value) or 0.0


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:
    return value.encode("utf-8") if isinstance(value, str) else bytes(value)


def _geometry(value: Any) -> bytes:
    """SRID (four bytes) and WKB -> WKB, or PostGIS's EWKB where there is an SRID."""
    whole = bytes.fromhex(_text(value))
    wkb = whole[4:]
    srid = int.from_bytes(whole[:4], "little")
    if not srid:
        return wkb
    order, kind = struct.unpack_from("<BI", wkb)
    return struct.pack("<BII", order, kind | 0x20000000, srid) + wkb[5:]


def _from_big_endian(value: bytes) -> int:
    return int.from_bytes(value, "big")


def _packed(value: list[float]) -> bytes:
    return struct.pack(f"<{len(value)}f", *value)


def _parts(value: Any) -> tuple[int, int, int, int, int, int, int] | None:
    match = _DATETIME.fullmatch(_text(value))
    if match is None:
        raise VerifyError(f"the server shows a date as {value!r}", remedy=REPORT)
    fraction = (match[7] or "").ljust(6, "0")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    parts = (year, month, day, hour, minute, second, int(fraction))
    try:
        datetime(*parts)  # noqa: DTZ001  only whether the calendar has it
    except ValueError:
        return None
    return parts


def _date_text(days: int) -> str:
    return date.fromordinal(_EPOCH_DAY + days).isoformat()


def _moment_text(micros: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(microseconds=micros)).isoformat(" ")  # noqa: DTZ001  it has no zone here


def _days(value: Any) -> int | None:
    parts = _parts(value)
    return None if parts is None else date(*parts[:3]).toordinal() - _EPOCH_DAY


def _micros(value: Any) -> int | None:
    parts = _parts(value)
    if parts is None:
        return None
    days = date(*parts[:3]).toordinal() - _EPOCH_DAY
    hour, minute, second, micros = parts[3:]
    return ((days * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000 + micros
