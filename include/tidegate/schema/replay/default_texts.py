"""A column's default as text: the meaning of a literal in the column's type.

In:  a Default from a statement; the column's type and character set.
Out: its text. A number isn't the string of the same characters: not in text, in bits, in a year, or
     in members.

Rules (sql/field.cc of either server): a number becomes text as the server writes numbers; a number
with an exponent is a double; a string in BIT is its bytes; '0' in YEAR is 2000; a number in ENUM or
SET counts members (MariaDB).
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from tidegate.errors import UnsupportedValue
from tidegate.schema.ddl.tree import Default
from tidegate.schema.ddl.types import octets
from tidegate.schema.model.charset_text import decode_member
from tidegate.schema.model.columns import Column
from tidegate.schema.model.type_table import BINARIES, INTEGERS
from tidegate.schema.model.types import UNKNOWN, parse_type

_LITERAL: Final = re.compile(r"0[xXbB]")
_WITHOUT_DEFAULT: Final = ("tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob")
_NOW: Final = re.compile(r"(?:CURRENT_TIMESTAMP|NOW|LOCALTIME|LOCALTIMESTAMP)(?:\((\d?)\))?", re.IGNORECASE)
_MOMENTS: Final = ("datetime", "timestamp")
_YEAR_DIGITS: Final = 4  # of a year that is written whole
# Doubles beyond have an exponent as text (strings/dtoa.c, MAX_DECPT_FOR_F_FORMAT).
_PLAIN_FROM: Final = Decimal("1e-15")
_PLAIN_BELOW: Final = Decimal("1e15")


def default_text(default: Default, kind: str, charset: str, *, mariadb: bool) -> str | None:
    """In a column of bytes, or in a number, a literal of bytes stays 0x and digits. A string with
    the same characters is never taken for one.
    """
    text = default.text
    if text is None or UNKNOWN in text:
        return text
    if default.is_expression:
        now = _NOW.fullmatch(text) if mariadb and kind.startswith(_MOMENTS) else None
        return _now(now[1], kind) if now is not None else text
    if not (mariadb or text or default.is_bytes) and kind.startswith(_WITHOUT_DEFAULT):
        return None  # not in strict mode, with a warning
    is_binary = kind.startswith(BINARIES)
    if default.is_wide and not charset:
        return text + UNKNOWN
    if not default.is_bytes:
        if default.is_number and mariadb and kind.startswith(("enum(", "set(")):
            return _members(text, kind)
        text = _number(text, kind, charset) if default.is_number else _string(text, kind, charset)
        looks_like_bytes = text.isascii() and _LITERAL.match(text)
        return "0x" + text.encode().hex() if is_binary and looks_like_bytes else text
    if not (charset or is_binary or kind.startswith(("enum(", "set("))):
        return text
    literal = octets(text)
    if is_binary:
        return f"0x{literal.hex().upper()}"
    try:
        return decode_member(charset or "binary", literal)
    except UnsupportedValue:
        return text + UNKNOWN


def stays(column: Column, *, mariadb: bool) -> bool:
    """Whether an added column keeps its default, though its statement sets another one: MariaDB keeps its moment."""
    is_moment = column.default_is_expression and column.type.startswith(_MOMENTS)
    return mariadb and is_moment and _NOW.fullmatch(column.default or "") is not None


def _now(written: str | None, kind: str) -> str:
    """MariaDB's CURRENT_TIMESTAMP has the column's digits, unless fewer are written."""
    most = (*parse_type(kind).numbers, 0)[0]
    digits = min(int(written or 0) or most, most)
    return f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP"


def _string(text: str, kind: str, charset: str) -> str:
    if kind.startswith("bit") and text.isascii() and text:
        return "0x" + text.encode().hex()
    if not charset and not kind.startswith(BINARIES) and _LITERAL.match(text):
        return text + UNKNOWN  # no number to a server
    if kind.startswith("year") and not text.strip(" 0") and len(text) != _YEAR_DIGITS:
        return "2000"
    return text


def _number(text: str, kind: str, charset: str) -> str:
    base = parse_type(kind).base
    is_double = "e" in text.lower()
    if base in ("bit", "year"):
        return str(int(float(text))) if is_double else text
    if base in INTEGERS:
        return str(round(float(text))) if is_double else text
    if base == "decimal":
        return repr(float(text)) if is_double else text
    if not (charset or base in BINARIES):
        return text
    return _double(float(text)) if is_double else _decimal(text)


def _members(text: str, kind: str) -> str:
    members = parse_type(kind).members
    if not text.isdecimal():
        return text
    number = int(text)
    if kind.startswith("set("):
        return ",".join(member for at, member in enumerate(members) if number >> at & 1)
    return members[number - 1] if 0 < number <= len(members) else text


def _double(value: float) -> str:
    exact = Decimal(repr(value)).normalize()
    if not exact:
        return "-0" if math.copysign(1, value) < 0 else "0"
    if _PLAIN_FROM <= abs(exact) < _PLAIN_BELOW:
        return f"{exact:f}"
    shift = exact.adjusted()
    return f"{exact.scaleb(-shift):f}e{shift}"


def _decimal(text: str) -> str:
    """-00.50 is -0.50: one zero in front, no negative one, and no point at the end."""
    whole, point, fraction = text.lstrip("-").partition(".")
    shown = (whole.lstrip("0") or "0") + (point + fraction if fraction else "")
    return f"-{shown}" if text.startswith("-") and shown.strip("0.") else shown
