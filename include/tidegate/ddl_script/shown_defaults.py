"""Defaults as information_schema.columns shows them.

In:  a Column, the server.
Out: column_default: MariaDB quotes strings and writes NULL, MySQL shows the bare value. A literal is shown as the
     column stores it ('2020-1-2' as 2020-01-02, 1 as 1.00); one that isn't understood stays as written.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from ipaddress import ip_address
from typing import Final

from tidegate.schema.model.columns import Column, Generated
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.type_table import BINARIES, INTEGERS
from tidegate.schema.model.types import COMPRESSED, TypeText, enum_members, parse_type

_NOW: Final = re.compile(r"CURRENT_TIMESTAMP(?:\((\d)\))?")
_DATE: Final = re.compile(r"(\d{1,4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[ T]+(.*))?")
_TIME: Final = re.compile(r"(-?)(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?")
_DIGITS: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d))?")
# A double is shown with an exponent from here on.
_EXPONENT_FROM: Final = 1e15


def shown_now(text: str, column: Column, server: ServerVersion) -> str:
    """CURRENT_TIMESTAMP(3) as each server writes it; in MariaDB it has as many digits as the column."""
    if not server.mariadb:
        return text
    digits = parse_type(column.type).numbers if column.type.startswith(("datetime", "timestamp")) else ()
    return f"current_timestamp({digits[0] if digits else ''})"


def shown_default(column: Column, server: ServerVersion) -> str | None:
    """column_default; None where it is SQL NULL."""
    if column.generated is not Generated.NO:
        return "NULL" if server.mariadb else None
    if column.default is None:
        if server.mariadb and _is_compressed(column) and not column.nullable:
            return "''"
        nothing = column.no_default or column.auto_increment or column.generation_expression
        return "NULL" if server.mariadb and column.nullable and not nothing else None
    if column.default_is_expression:
        now = _NOW.fullmatch(column.default) if server.mariadb else None
        return f"current_timestamp({now[1] or ''})" if now is not None else column.default
    try:
        return _literal(column, column.default, server)
    except (ValueError, InvalidOperation, OverflowError):
        return _quoted(column.default) if server.mariadb else column.default


def _is_compressed(column: Column) -> bool:
    """MariaDB gives a compressed column of bounded length the default '' when it has none."""
    return column.type.endswith(COMPRESSED) and column.type.startswith("var")


def _quoted(text: str, quote: str = "''") -> str:
    """As append_unescaped() of the server writes a string; TEXT's and BLOB's are expressions, with another quote."""
    shown = text.replace("\\", "\\\\").replace("\0", "\\0").replace("\n", "\\n").replace("\r", "\\r")
    return "'" + shown.replace("'", quote) + "'"


def _literal(column: Column, text: str, server: ServerVersion) -> str:
    kind = parse_type(column.type)
    base = kind.base
    zerofill = column.type.endswith("zerofill")
    if base in INTEGERS:
        number = str(int(_number(text).to_integral_value(ROUND_HALF_UP)))
        return number.zfill(kind.numbers[0]) if zerofill and kind.numbers else number
    if base == "decimal":
        return _decimal(kind, text, zerofill=zerofill)
    if base in ("float", "double"):
        return _real(kind, text, zerofill=zerofill)
    if base == "bit":
        return f"b'{_bits(text):b}'"
    if base == "year":
        return _year(text)
    if base in ("date", "datetime", "timestamp", "time"):
        shown = _temporal(base, kind.numbers[0] if kind.numbers else 0, text, rounds=not server.mariadb)
    elif base in ("inet4", "inet6"):
        shown = str(ip_address(text))
    elif base in ("enum", "set"):
        shown = _members(column.type, text, base)
    else:
        shown = _string(text, column)
        if base == "binary":
            shown = shown.ljust(kind.numbers[0], "\0")
        elif base == "char":
            shown = shown.rstrip(" ")
    if server.mariadb:
        return _quoted(shown, "\\'" if base.endswith(("text", "blob")) else "''")
    return "0x" + shown.encode().hex().upper() if base in BINARIES and shown else shown


def _string(text: str, column: Column) -> str:
    """Bytes are kept in hexadecimal digits; only ASCII is made readable."""
    low = text.lower()
    if low.startswith("0x") and len(low) % 2 == 0 and not column.charset:
        return bytes.fromhex(low[2:]).decode("ascii")
    return text


def _number(text: str) -> Decimal:
    low = text.strip().lower()
    if low.startswith(("0x", "0b")):
        return Decimal(int(low[2:], 16 if low[1] == "x" else 2))
    return Decimal(low)


def _bits(text: str) -> int:
    low = text.lower()
    if low in ("0b", "0x"):  # b''
        return 0
    if low.startswith(("0x", "0b")) or re.fullmatch(r"\d+(\.\d*)?", low):
        return int(_number(low).to_integral_value(ROUND_HALF_UP))
    return int.from_bytes(text.encode("latin1"), "big")


def _decimal(kind: TypeText, text: str, *, zerofill: bool) -> str:
    digits, scale = kind.numbers
    shown = f"{_number(text).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP):f}"
    return shown.zfill(digits + (1 if scale else 0)) if zerofill else shown


def _real(kind: TypeText, text: str, *, zerofill: bool) -> str:
    if len(kind.numbers) == 2:
        shown = f"{_number(text).quantize(Decimal(1).scaleb(-kind.numbers[1]), ROUND_HALF_UP):f}"
        return shown.zfill(kind.numbers[0]) if zerofill else shown
    value = float(_number(text))
    if value == int(value) and abs(value) < _EXPONENT_FROM:
        shown = str(int(value))
    else:
        shown = f"{value:.6g}" if kind.base == "float" else repr(value)
        shown = re.sub(r"e([+-]?)0*(\d+)", lambda exponent: f"e{exponent[1].replace('+', '')}{exponent[2]}", shown)
    width = 22 if kind.base == "double" else 12
    return shown.zfill(width) if zerofill else shown


def _year(text: str) -> str:
    number = int(_number(text).to_integral_value(ROUND_HALF_UP))
    if number < 100 and not (number == 0 and len(text) != 2):
        number += 2000 if number < 70 else 1900
    return f"{number:04d}"


def _temporal(base: str, digits: int, text: str, *, rounds: bool) -> str:
    if base == "time":
        parts = _DATE.fullmatch(text)
        text = parts[4] or "0" if parts else text
        return _time(text, digits, rounds=rounds)
    if text.strip("0.") == "" and text:
        year, month, day, rest = 0, 0, 0, ""
    elif plain := _DIGITS.fullmatch(text):
        year, month, day = int(plain[1]), int(plain[2]), int(plain[3])
        rest = ":".join(plain.group(4, 5, 6)) if plain[4] else ""
    elif parts := _DATE.fullmatch(text):
        year, month, day, rest = int(parts[1]), int(parts[2]), int(parts[3]), parts[4] or ""
        if len(parts[1]) <= 2:
            year += 2000 if year < 70 else 1900
    else:
        raise ValueError(text)
    date = f"{year:04d}-{month:02d}-{day:02d}"
    return date if base == "date" else f"{date} {_time(rest or '0:0:0', digits, rounds=rounds)}"


def _time(text: str, digits: int, *, rounds: bool) -> str:
    if re.fullmatch(r"\d+(\.\d+)?", text):
        text = str(int(_number(text).to_integral_value(ROUND_HALF_UP))) if rounds else text.partition(".")[0]
        padded = text.zfill(6)
        text = f"{padded[:-4]}:{padded[-4:-2]}:{padded[-2:]}"
    parts = _TIME.fullmatch(text.strip())
    if parts is None:
        raise ValueError(text)
    fraction = (parts[5] or "").ljust(6, "0")
    if rounds:  # MariaDB cuts off
        fraction = str(Decimal(f"0.{fraction}").quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
        if fraction[0] == "1":
            raise ValueError(text)
        fraction = fraction[2:]
    fraction = fraction[:digits]
    shown = f"{parts[1]}{int(parts[2]):02d}:{int(parts[3]):02d}:{int(parts[4] or 0):02d}"
    return f"{shown}.{fraction}" if digits else shown


def _members(type_text: str, text: str, base: str) -> str:
    """A default of ENUM or SET in the members' own spelling and order."""
    wanted = [part.lower() for part in (text.split(",") if base == "set" else [text.rstrip(" ")])]
    members = [member for member in enum_members(type_text) if member.lower() in wanted]
    if len(members) < len(set(wanted)) and text:
        raise ValueError(text)
    return ",".join(members)
