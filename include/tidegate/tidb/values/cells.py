"""A cell as text: what the server's text protocol shows, in UTC.

In:  a column and a datum's value.
Out: text; None for NULL. Bytes and bits are shown as HEX() shows them. DecodeError for a value that no such column has.

Source: DumpTextRow in pkg/server/internal/column, AppendFormatFloat in pkg/server/internal/util.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

import numpy as np

from tidegate.errors import DecodeError
from tidegate.remedy import REPORT
from tidegate.tidb.codec.datum import Json, Value
from tidegate.tidb.codec.json_binary import duration_text, json_text
from tidegate.tidb.jobs import INTEGERS, MOMENTS, STRINGS, ColumnInfo, Tp

_EXPONENT_FROM: Final = 1e15
_EXPONENT_BELOW: Final = 1e-15
_FLOAT_DIGITS: Final = 5  # after the point of a FLOAT with an exponent


class Moment(NamedTuple):
    """A date or a time of day as the server has it, which no calendar need know: 2024-00-00."""

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    microsecond: int = 0


def moment(packed: int) -> Moment:
    """The moment in TiDB's packed 64 bits."""
    whole, microsecond = packed >> 24, packed & 0xFFFFFF
    months, day = whole >> 22, whole >> 17 & 31
    return Moment(months // 13, months % 13, day, whole >> 12 & 31, whole >> 6 & 63, whole & 63, microsecond)


def packed(at: Moment) -> int:
    """The inverse."""
    whole = ((at.year * 13 + at.month) << 5 | at.day) << 17 | at.hour << 12 | at.minute << 6 | at.second
    return whole << 24 | at.microsecond


def moment_text(at: Moment, *, is_date: bool, digits: int) -> str:
    day = f"{at.year:04}-{at.month:02}-{at.day:02}"
    if is_date:
        return day
    fraction = f".{at.microsecond:06}"[: digits + 1] if digits > 0 else ""
    return f"{day} {at.hour:02}:{at.minute:02}:{at.second:02}{fraction}"


def cell_text(column: ColumnInfo, value: Value) -> str | None:
    if value is None:
        return None
    tp = column.tp
    if tp in STRINGS and isinstance(value, bytes):
        return value.hex().upper() if column.is_binary else _utf8(column, value)
    if tp is Tp.DECIMAL and isinstance(value, Decimal):
        return f"{value:f}"
    if tp is Tp.JSON and isinstance(value, Json):
        return json_text(value)
    if tp in (Tp.FLOAT, Tp.DOUBLE) and isinstance(value, float):
        return float_text(value, is_float=tp is Tp.FLOAT)
    if not isinstance(value, int):
        raise _wrong(column, value)
    if tp in INTEGERS:
        return str(value)
    if tp in MOMENTS:
        return moment_text(moment(value), is_date=tp is Tp.DATE, digits=column.digits)
    match tp:
        case Tp.TIME:
            return duration_text(value, max(column.digits, 0))
        case Tp.YEAR:
            return f"{value:04}"
        case Tp.BIT:
            return f"{value:X}"
        case Tp.ENUM:
            return enum_text(column, value)
        case Tp.SET:
            return set_text(column, value)
    raise _wrong(column, value)


def enum_text(column: ColumnInfo, index: int) -> str:
    if not 0 <= index <= len(column.members):
        raise _wrong(column, index)
    return column.members[index - 1] if index else ""


def set_text(column: ColumnInfo, mask: int) -> str:
    if mask >> len(column.members):
        raise _wrong(column, mask)
    return ",".join(member for n, member in enumerate(column.members) if mask >> n & 1)


def float_text(value: float, *, is_float: bool) -> str:
    """The shortest digits that read as this number again; from 1e15 on with an exponent."""
    number = np.float32(value) if is_float else np.float64(value)
    size = abs(float(number))
    if not np.isfinite(number):
        return "0"
    if not size or (_EXPONENT_BELOW <= size < _EXPONENT_FROM):
        return str(np.format_float_positional(number, unique=True, trim="-"))
    if is_float:
        mantissa, _, exponent = f"{float(number):.{_FLOAT_DIGITS}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
    else:
        mantissa, _, exponent = str(np.format_float_scientific(number, unique=True, trim="-", exp_digits=2)).partition(
            "e"
        )
    return f"{mantissa}e{exponent.removeprefix('+')}"


def _utf8(column: ColumnInfo, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise DecodeError(f"column {column.name}: a text isn't UTF-8", remedy=REPORT) from None


def _wrong(column: ColumnInfo, value: object) -> DecodeError:
    kind = type(value).__name__
    return DecodeError(f"column {column.name} ({column.type_text}) has a {kind} that it can't have", remedy=REPORT)
