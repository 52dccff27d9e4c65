"""Cells as SQL sees them, and back: what a value becomes in a column of another type.

In:  a column and a datum's value; or an SQL value and the column that takes it.
Out: an SQL value: None, int, Decimal, float, str, bytes, Dated, Span, JsonText. A datum's value.
     UnsupportedValue where it isn't certain what TiDB makes of it.

In strict mode a statement that would lose a part of a value fails, so it isn't in the stream. Other
losses are refused.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from tidegate.errors import UnsupportedValue
from tidegate.remedy import REFILL
from tidegate.tidb.codec.datum import Json, Value
from tidegate.tidb.codec.json_binary import duration_text, json_text, number_text, quoted
from tidegate.tidb.jobs import INTEGERS, MOMENTS, STRINGS, ColumnInfo, Tp
from tidegate.tidb.values.cells import Moment, enum_text, moment, moment_text, packed, set_text


@dataclass(frozen=True, slots=True)
class Dated:
    """A date, or a time with a date. digits: of its second."""

    at: Moment
    is_date: bool = False
    digits: int = 0

    def __str__(self) -> str:
        return moment_text(self.at, is_date=self.is_date, digits=self.digits)


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A TIME."""

    nanoseconds: int
    digits: int = 0

    def __str__(self) -> str:
        return duration_text(self.nanoseconds, self.digits)


class JsonText(str):
    """A JSON value in TiDB's own spelling."""

    __slots__ = ()


Sql: TypeAlias = int | float | Decimal | str | bytes | Dated | TimeSpan | JsonText | None

_DATETIME: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?")
_DIGITS: Final = re.compile(r"^(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d))?$")
_TIME: Final = re.compile(r"(-?)(\d{1,3}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?")
_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*")
_TIME_MAX: Final = (838 * 3600 + 59 * 60 + 59) * 10**9


def sql_value(column: ColumnInfo, value: Value | str) -> Sql:
    """The value of a cell in an expression."""
    if value is None or isinstance(value, str):
        return None if value is None else JsonText(value)
    if isinstance(value, Json):
        return JsonText(json_text(value))
    if isinstance(value, bytes):
        return value if column.is_binary else value.decode()
    if isinstance(value, int):
        match column.tp:
            case Tp.DATE | Tp.DATETIME | Tp.TIMESTAMP:
                return Dated(moment(value), column.tp is Tp.DATE, max(column.digits, 0))
            case Tp.TIME:
                return TimeSpan(value, max(column.digits, 0))
            case Tp.ENUM:
                return enum_text(column, value)
            case Tp.SET:
                return set_text(column, value)
    return value


def refuse(column: ColumnInfo, value: object) -> NoReturn:
    shown = repr(value if not isinstance(value, Dated | TimeSpan) else str(value))[:60]
    raise UnsupportedValue(f"what {shown} becomes in column {column.name} ({column.type_text})", remedy=REFILL)


def cell_value(column: ColumnInfo, value: Sql) -> Value | str:
    """The stored form of an SQL value in a column; a str is JSON's text."""
    if value is None:
        return None
    try:
        stored = _stored(column, value)
    except (InvalidOperation, ValueError, OverflowError):
        refuse(column, value)
    return stored


def _stored(column: ColumnInfo, value: Sql) -> Value | str:
    tp = column.tp
    if tp in INTEGERS:
        return _ranged(column, whole(value))
    if tp in STRINGS:
        return _text(column, value)
    if tp in MOMENTS:
        return packed(_fitted(column, dated(value)))
    match tp:
        case Tp.DECIMAL:
            return _decimal(column, number(value))
        case Tp.FLOAT | Tp.DOUBLE:
            return _float(column, value)
        case Tp.TIME:
            return _span(column, value)
        case Tp.YEAR:
            return _year(column, value)
        case Tp.BIT:
            bits = int.from_bytes(value, "big") if isinstance(value, bytes) else whole(value)
            return bits if 0 <= bits < 1 << column.length else refuse(column, value)
        case Tp.ENUM | Tp.SET:
            return _member(column, value)
        case Tp.JSON:
            return json_of(value)
    refuse(column, value)


# --- numbers ---------------------------------------------------------------------------------------


def number(value: Sql) -> Decimal:
    """A number of any kind. ValueError for a text that is none."""
    if isinstance(value, bool | int):
        return Decimal(int(value))
    if isinstance(value, Decimal):
        return value
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Dated | TimeSpan):
        return Decimal(re.sub(r"[-: ]", "", str(value).lstrip("-"))) * (-1 if str(value).startswith("-") else 1)
    if isinstance(value, JsonText):
        return number(json.loads(value, parse_float=Decimal))
    text = value.decode() if isinstance(value, bytes) else value or ""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return Decimal(match[1])


def whole(value: Sql) -> int:
    """Rounded as TiDB rounds: a float to the even neighbour, anything else away from zero."""
    if isinstance(value, float):
        return round(value)
    return int(number(value).to_integral_value(ROUND_HALF_UP))


def _ranged(column: ColumnInfo, integer: int) -> int:
    bits = INTEGERS[column.tp]
    low, high = (0, (1 << bits) - 1) if column.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return integer if low <= integer <= high else refuse(column, integer)


def _decimal(column: ColumnInfo, exact: Decimal) -> Decimal:
    digits = max(column.digits, 0)
    sign, figures, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + digits
    units = int("".join(map(str, figures)))
    if shift >= 0:
        units *= 10**shift
    else:
        units, rest = divmod(units, 10**-shift)
        units += int(2 * rest >= 10**-shift)
    if units >= 10**column.length or (column.unsigned and sign and units):
        refuse(column, exact)
    return Decimal((sign if units else 0, tuple(map(int, str(units))), -digits))


def _float(column: ColumnInfo, value: Sql) -> float:
    real = value if isinstance(value, float) else float(number(value))
    if column.digits >= 0:
        real = float(_decimal(ColumnInfo(0, column.name, Tp.DECIMAL, 0, 65, column.digits), Decimal(repr(real))))
    if column.unsigned and real < 0:
        refuse(column, value)
    return float(np.float32(real)) if column.tp is Tp.FLOAT else real


def _year(column: ColumnInfo, value: Sql) -> int:
    year = value.at.year if isinstance(value, Dated) else whole(value)
    if isinstance(value, str) and len(value) <= 2:
        return year + (2000 if year < 70 else 1900)
    if 1 <= year <= 99:
        year += 2000 if year < 70 else 1900
    return year if not year or 1901 <= year <= 2155 else refuse(column, value)


def _member(column: ColumnInfo, value: Sql) -> int:
    if isinstance(value, int):
        return value if 0 <= value <= len(column.members) or column.tp is Tp.SET else refuse(column, value)
    text = plain_text(value)
    low = [member.lower() for member in column.members]
    if column.tp is Tp.ENUM:
        return low.index(text.lower()) + 1
    mask = 0
    for part in text.lower().split(","):
        mask |= 1 << low.index(part) if part else 0
    return mask


# --- texts -----------------------------------------------------------------------------------------


def plain_text(value: Sql) -> str:
    """As CONCAT shows it."""
    if isinstance(value, float):
        return str(np.format_float_positional(value, unique=True, trim="-"))
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return value.decode()
    return str(int(value)) if isinstance(value, bool) else str(value)


def _text(column: ColumnInfo, value: Sql) -> bytes:
    data = value if isinstance(value, bytes) else plain_text(value).encode()
    if column.is_binary:
        if column.length >= 0 and len(data) > column.length:
            refuse(column, value)
        return data.ljust(column.length, b"\0") if column.tp is Tp.STRING else data
    text = data.decode()
    if column.tp is Tp.STRING:
        text = text.rstrip(" ")
    in_characters = column.tp in (Tp.STRING, Tp.VARCHAR, Tp.VARSTRING)
    if column.length >= 0 and (len(text) if in_characters else len(data)) > column.length:
        refuse(column, value)
    return text.encode()


# --- dates and times -------------------------------------------------------------------------------


def dated(value: Sql) -> Dated:
    """A date, or ValueError."""
    if isinstance(value, Dated):
        return value
    text = plain_text(value) if isinstance(value, str | bytes) else ""
    if isinstance(value, int):  # 20200102, 20200102030405
        text = _DIGITS.sub(r"\1-\2-\3 \4:\5:\6", str(value)).removesuffix(" ::")
    match = _DATETIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction = match[7] or ""
    at = Moment(year, month, day, hour, minute, second, int(fraction.ljust(6, "0")))
    return Dated(at, match[4] is None, len(fraction))


def _fitted(column: ColumnInfo, value: Dated) -> Moment:
    """With as many digits as the column has, rounded. ValueError for a date that has no next second."""
    at = value.at
    if column.tp is Tp.DATE:
        return Moment(at.year, at.month, at.day)
    step = 10 ** (6 - max(column.digits, 0))
    rounded = (2 * at.microsecond + step) // (2 * step) * step
    if rounded < 10**6:
        return at._replace(microsecond=rounded)
    return moment_of(datetime(*at[:6]) + timedelta(seconds=1))  # noqa: DTZ001  a DATETIME has no zone


def moment_of(at: datetime) -> Moment:
    return Moment(at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)


def _span(column: ColumnInfo, value: Sql) -> int:
    step: int = 10 ** (9 - max(column.digits, 0))
    if isinstance(value, Dated):
        at = value.at
        nanoseconds = ((at.hour * 3600 + at.minute * 60 + at.second) * 10**6 + at.microsecond) * 1000
    elif isinstance(value, TimeSpan):
        nanoseconds = value.nanoseconds
    else:
        read = _TIME.fullmatch(plain_text(value))
        if read is None:
            raise ValueError(value)
        seconds = int(read[2]) * 3600 + int(read[3]) * 60 + int(read[4])
        nanoseconds = (seconds * 10**6 + int((read[5] or "").ljust(6, "0"))) * 1000 * (-1 if read[1] else 1)
    size = (2 * abs(nanoseconds) + step) // (2 * step) * step
    return (size if nanoseconds >= 0 else -size) if size <= _TIME_MAX else refuse(column, value)


# --- JSON ------------------------------------------------------------------------------------------


def json_of(value: Sql) -> str:
    """A column's value as JSON: a text is read, anything else is a value of JSON."""
    if isinstance(value, JsonText):
        return value
    if isinstance(value, str):
        return json_shown(json.loads(value))
    if isinstance(value, bool | int):
        return str(int(value))
    if isinstance(value, Decimal | float):
        return json_shown(float(value))
    raise ValueError(value)


def json_shown(tree: Any) -> str:
    """TiDB's spelling: keys in order of their bytes, one space after commas and colons."""
    if isinstance(tree, dict):
        members = sorted(tree.items(), key=lambda member: member[0].encode())
        return "{" + ", ".join(f"{quoted(key)}: {json_shown(inner)}" for key, inner in members) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(json_shown, tree)) + "]"
    if isinstance(tree, str):
        return quoted(tree)
    if isinstance(tree, float):
        return number_text(tree)
    return json.dumps(tree)
