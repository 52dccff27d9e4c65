"""The value the server gives to existing rows when a column is added.

In:  the added column, and when the statement ran.
Out: a Python value that pa.scalar(value, canonical(column).arrow) takes; None for NULL.

The server writes these values itself, without a row event. If the statement alone doesn't give the
value (an expression, a generated column, a time in a time zone that the log doesn't give), that is
UnsupportedValue: the table waits for a snapshot. Rules: MySQL Reference Manual, "Data Type Default
Values".
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final
from uuid import UUID

from tidegate.errors import UnsupportedValue
from tidegate.remedy import REFILL
from tidegate.schema.ddl.statement import StatementTime
from tidegate.schema.model.columns import Column, Generated
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import UNKNOWN, CanonicalType, canonical

_DATE: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DATETIME: Final = re.compile(_DATE.pattern + r"(?:[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?)?")
_ZERO: Final = "0"  # DEFAULT 0: the zero date, or no time
_DIGITS: Final = Context(prec=100)  # a server's DECIMAL has up to 65 digits; Python's own context has 28
_UTC: Final = "+00:00"  # follows a TIMESTAMP literal whose zone is known
_NOT_SAID: Final = "whose offset isn't known"
_NOW: Final = re.compile(r"(?:CURRENT_TIMESTAMP|NOW|LOCALTIME|LOCALTIMESTAMP)(?:\((\d?)\))?", re.IGNORECASE)
_SECOND: Final = 1_000_000  # microseconds
_TIME: Final = re.compile(r"(-?)(\d{1,3}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?")


def existing_row_value(column: Column, ran: StatementTime | None = None) -> Any:
    """The value of an added column in older rows.

    ran: when the statement ran; None if it isn't known.
    Raises UnsupportedValue if the value can't be known.
    """
    if column.generated is not Generated.NO or column.generation_expression or column.auto_increment:
        raise _unknown(column, "the server computed it for each row")
    kind = canonical(column)
    if column.default_is_expression:
        return _now(column, kind, ran)
    if column.default is not None:
        if UNKNOWN in column.default:
            raise _unknown(column, "information_schema doesn't show its default as it is")
        if kind.kind is Kind.TIMESTAMP:
            return _literal_timestamp(column, kind, ran)
        try:
            return _LITERALS[kind.kind](column, kind, column.default)
        except (KeyError, ValueError, InvalidOperation):
            raise _unknown(column, f"the default {column.default!r} isn't understood for this type") from None
    return None if column.nullable else _implicit(column, kind)


def _unknown(column: Column, why: str) -> UnsupportedValue:
    return UnsupportedValue(
        f"value of the added column {column.name} ({column.type}) in existing rows: {why}", remedy=REFILL
    )


def _now(column: Column, kind: CanonicalType, ran: StatementTime | None) -> datetime:
    """CURRENT_TIMESTAMP in a TIMESTAMP column. In a DATETIME column it is in the session's time zone."""
    match = _NOW.fullmatch(column.default or "") if kind.kind in (Kind.TIMESTAMP, Kind.DATETIME) else None
    if match is None:
        raise _unknown(column, f"the default is the expression {column.default}")
    if ran is None:
        raise _unknown(column, "nobody knows when the statement ran")
    digits, step = int(match[1] or 0), 10 ** (6 - _fraction_digits(kind))
    unix_us = ran.unix_us - ran.unix_us % 10 ** (6 - digits)
    # MySQL rounds further digits. Without a number it means none of them; MariaDB's CURRENT_TIMESTAMP was
    # recorded so by earlier releases, and means the column's (default_texts.py).
    if unix_us % step or (not digits and step < _SECOND and unix_us != ran.unix_us):
        raise _unknown(column, f"the digits of {column.default} aren't the column's")
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=unix_us)
    if kind.kind is Kind.TIMESTAMP:
        return moment
    if ran.offset is None:
        raise _unknown(column, f"CURRENT_TIMESTAMP is in the session's time zone, {_NOT_SAID}")
    return (moment + ran.offset).replace(tzinfo=None)


def _literal_timestamp(column: Column, kind: CanonicalType, ran: StatementTime | None) -> datetime | None:
    """A literal without a zone is in the session's."""
    text = column.default or ""
    try:
        value = _literal_datetime(column, kind, text.removesuffix(_UTC))
    except ValueError:
        raise _unknown(column, f"the default {text!r} isn't understood for this type") from None
    if value is None or text.endswith(_UTC):
        return value
    if ran is None or ran.offset is None:
        raise _unknown(column, f"a TIMESTAMP literal is in the session's time zone, {_NOT_SAID}")
    return value - ran.offset


def _implicit(column: Column, kind: CanonicalType) -> Any:
    """The value of NOT NULL without a default. Silver has null for the zero date."""
    match kind.kind:
        case Kind.INT | Kind.YEAR:
            return 0
        case Kind.UNSIGNED_BIGINT | Kind.DECIMAL:
            return Decimal(0)
        case Kind.DECIMAL_TEXT:
            return _literal_decimal_text(column, kind, "0")
        case Kind.FLOAT | Kind.DOUBLE:
            return 0.0
        case Kind.BOOLEAN:
            return False
        case Kind.BIT:
            return bytes((kind.text.numbers[0] + 7) // 8)
        case Kind.DATE | Kind.DATETIME | Kind.TIMESTAMP:
            return None
        case Kind.TIME:
            return _literal_time(column, kind, "00:00:00")
        case Kind.TEXT | Kind.SET:
            return ""
        case Kind.ENUM:
            return kind.text.members[0]
        case Kind.BINARY:
            return bytes(kind.text.numbers[0]) if kind.text.base == "binary" else b""
        case Kind.JSON:
            return "null"
        case Kind.UUID:
            return str(UUID(int=0))
        case Kind.INET:
            return str(IPv4Address(0) if kind.text.base == "inet4" else IPv6Address(0))
    raise _unknown(column, "this type has no implicit default that we know")


def _fraction_digits(kind: CanonicalType) -> int:
    return kind.text.numbers[0] if kind.text.numbers else 0


def _number(text: str) -> Decimal:
    """A numeric literal; 0x and 0b as integers, also b'101', as information_schema shows it."""
    low = text.lower()
    if low.startswith(("b'", "x'")) and low.endswith("'"):
        low = text = "0" + low[:-1].replace("'", "", 1)
    if low.startswith(("0x", "0b")):
        return Decimal(int(low[2:], 16 if low[1] == "x" else 2))
    return Decimal(text.strip())


def _literal_int(_: Column, __: CanonicalType, text: str) -> int:
    return int(_number(text).to_integral_value(ROUND_HALF_UP))


def _literal_unsigned(column: Column, kind: CanonicalType, text: str) -> Decimal:
    return Decimal(_literal_int(column, kind, text))


def _literal_decimal(_: Column, kind: CanonicalType, text: str) -> Decimal:
    return _number(text).quantize(Decimal(1).scaleb(-kind.arrow.scale), ROUND_HALF_UP, _DIGITS)


def _literal_decimal_text(_: Column, kind: CanonicalType, text: str) -> str:
    number = _number(text).quantize(Decimal(1).scaleb(-kind.text.numbers[1]), ROUND_HALF_UP, _DIGITS)
    return f"{number or abs(number):f}"


def _literal_float(_: Column, kind: CanonicalType, text: str) -> float:
    """FLOAT(M,D) and DOUBLE(M,D) are rounded with the arithmetic of doubles (Field_real::truncate)."""
    number = float(_number(text))
    if len(kind.text.numbers) != 2:
        return number
    whole, step = math.floor(number), 10.0 ** kind.text.numbers[1]
    return whole + round((number - whole) * step) / step


def _literal_boolean(_: Column, __: CanonicalType, text: str) -> bool:
    return _number(text).to_integral_value(ROUND_HALF_UP) != 0


def _literal_bit(_: Column, kind: CanonicalType, text: str) -> bytes:
    number = int(_number(text).to_integral_value(ROUND_HALF_UP))
    return number.to_bytes((kind.text.numbers[0] + 7) // 8, "big")


def _literal_date(_: Column, __: CanonicalType, text: str) -> date | None:
    if text == _ZERO:
        return None
    match = _DATETIME.fullmatch(text)
    if match is None or match[7]:
        raise ValueError(text)  # a fraction may be rounded up to the next day
    year, month, day = (int(part) for part in match.groups()[:3])
    return date(year, month, day) if year and month and day else None


def _literal_datetime(_: Column, kind: CanonicalType, text: str) -> datetime | None:
    if text == _ZERO:
        return None
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    if not (year and month and day):
        return None
    fraction = (match[7] or "").ljust(6, "0")
    if any(digit != "0" for digit in fraction[_fraction_digits(kind) :]):
        raise ValueError(text)  # the server rounds here, or cuts, depending on sql_mode
    zone = UTC if kind.kind is Kind.TIMESTAMP else None
    return datetime(year, month, day, hour, minute, second, int(fraction), zone)


def _literal_time(_: Column, kind: CanonicalType, text: str) -> str:
    match = _TIME.fullmatch("00:00:00" if text == _ZERO else text)
    if match is None:
        raise ValueError(text)
    digits = _fraction_digits(kind)
    fraction = (match[5] or "").ljust(6, "0")
    if any(digit != "0" for digit in fraction[digits:]):
        raise ValueError(text)
    sign = match[1] if text.strip("-0:.") else ""
    return f"{sign}{int(match[2]):02}:{match[3]}:{match[4]}" + (f".{fraction[:digits]}" if digits else "")


def _literal_year(_: Column, __: CanonicalType, text: str) -> int:
    year = int(text)
    if 0 < year < 100:  # 7, '07', 007: two digits are shown, whatever was written
        return 2000 + year if year < 70 else 1900 + year
    return year


def _literal_text(_: Column, kind: CanonicalType, text: str) -> str:
    """A text longer than its column is refused: if it is a number, the server writes it in a
    shorter form.
    """
    if kind.text.base not in ("char", "varchar"):
        return text
    kept, more = text[: kind.text.numbers[0]], text[kind.text.numbers[0] :]
    if more.strip(" "):
        raise ValueError(text)
    return kept.rstrip(" ") if kind.text.base == "char" else kept


def _literal_enum(column: Column, kind: CanonicalType, text: str) -> str:
    return _member(column, kind, text.rstrip(" "))


def _literal_set(column: Column, kind: CanonicalType, text: str) -> str:
    wanted = {_member(column, kind, part) for part in text.split(",") if part}
    return ",".join(member for member in kind.text.members if member in wanted)


def _member(column: Column, kind: CanonicalType, text: str) -> str:
    """The member this text stands for in the column's collation, if there is no doubt."""
    members = kind.text.members
    if column.collation.endswith(("_bin", "binary")):
        alike = [member for member in members if member == text]
    else:
        alike = [member for member in members if _folded(member) == _folded(text)]
    if len(alike) != 1 or alike[0].lower() != text.lower():
        raise ValueError(text)
    return alike[0]


def _folded(text: str) -> str:
    """The text without case and accents: two texts that differ in anything else are never the same
    to a collation.
    """
    letters = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()


def _literal_binary(_: Column, kind: CanonicalType, text: str) -> bytes:
    value = bytes.fromhex(text[2:]) if re.match(r"0[xX]", text) else text.encode("ascii")
    if kind.text.numbers and len(value) > kind.text.numbers[0]:
        raise ValueError(text)
    return value.ljust(kind.text.numbers[0], b"\0") if kind.text.base == "binary" else value


_LITERALS: Final[dict[Kind, Callable[[Column, CanonicalType, str], Any]]] = {
    Kind.INT: _literal_int,
    Kind.UNSIGNED_BIGINT: _literal_unsigned,
    Kind.DECIMAL: _literal_decimal,
    Kind.DECIMAL_TEXT: _literal_decimal_text,
    Kind.FLOAT: _literal_float,
    Kind.DOUBLE: _literal_float,
    Kind.BOOLEAN: _literal_boolean,
    Kind.BIT: _literal_bit,
    Kind.DATE: _literal_date,
    Kind.DATETIME: _literal_datetime,
    Kind.TIME: _literal_time,
    Kind.YEAR: _literal_year,
    Kind.TEXT: _literal_text,
    Kind.ENUM: _literal_enum,
    Kind.SET: _literal_set,
    Kind.BINARY: _literal_binary,
}
