"""Canonical types: the same from the binlog and from a SELECT.

In:  a column of a table version: its column_type text as information_schema shows it.
Out: its Arrow type, its Delta (Spark SQL) type text and its kind, which says how values are to be read.

A type that isn't understood is an error, never a string "to be safe": no value is changed silently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

import pyarrow as pa

from tidegate.errors import UnsupportedValue
from tidegate.limits import DECIMAL_DIGITS_MAX
from tidegate.remedy import REPORT
from tidegate.schema.model.columns import Column
from tidegate.schema.model.type_table import TYPES, Kind


class ZeroDates(StrEnum):
    """The policy for zero and impossible dates: '0000-00-00', '2024-00-00', '2024-02-31'."""

    NULL = "null"  # and counted in the ledger
    ERROR = "error"  # which stops the table


@dataclass(frozen=True, slots=True)
class TypeText:
    """A column_type text taken apart: base name, numbers in parentheses, unsigned, members of enum and set.

    compressed: values are stored and logged compressed (MariaDB's COMPRESSED attribute).
    """

    base: str
    numbers: tuple[int, ...] = ()
    unsigned: bool = False
    members: tuple[str, ...] = ()
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class CanonicalType:
    """A column's type in Arrow and in Delta.

    arrow: its pyarrow type. delta: Spark SQL type text, e.g. "decimal(20,0)", "timestamp_ntz", "string".
    kind: how values are read. text: the server's type text, taken apart.
    """

    kind: Kind
    arrow: pa.DataType
    delta: str
    text: TypeText


# MariaDB marks columns in the temporal format of before 5.6 with such a comment; the type itself is the same.
_OLD_FORMAT: Final = re.compile(r"\s*/\* mariadb-5\.3 \*/")
# MariaDB's attribute COMPRESSED, as it shows it; 10.3.1 was the first version that had it.
COMPRESSED: Final = " /*M!100301 COMPRESSED*/"
_SHAPE: Final = re.compile(r"(?s)\s*([a-z0-9]+)\s*(?:\((.*)\))?\s*((?:(?:unsigned|signed|zerofill)\s*)*)")
_MEMBER: Final = re.compile(r"(?s)\s*'((?:[^'\\]|''|\\.)*)'\s*(,|$)")
# What the servers' append_unescaped() writes (sql/sql_show.cc), and what a DDL's author may have written.
_ESCAPES: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}
_ESCAPED: Final = re.compile(r"(?s)''|\\(.)")


@lru_cache(maxsize=4096)
def integer_range(kind: CanonicalType) -> tuple[int, int]:
    """The smallest and the largest number of an integer type."""
    bits = 8 * TYPES[kind.text.base].width
    return (0, 2**bits - 1) if kind.text.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def parse_type(text: str) -> TypeText:
    """A column_type text in lower case (members keep theirs), e.g. "int(10) unsigned zerofill",
    "enum('a','b''c')".

    Raises UnsupportedValue when the text hasn't the shape of a type.
    """
    bare = text.removesuffix(COMPRESSED)
    shape = _SHAPE.fullmatch(_OLD_FORMAT.sub("", bare))
    if shape is None:
        raise UnsupportedValue(
            f"column type {text!r} is not understood", remedy=f"leave the column's table out, or {REPORT}"
        )
    base, inside, words = shape[1], shape[2], shape[3].split()
    if base in {"enum", "set"}:
        return TypeText(base, members=_members(inside or "", text))
    pieces = [piece.strip() for piece in (inside or "").split(",")] if inside is not None else []
    if not all(piece.isdigit() for piece in pieces):
        raise UnsupportedValue(
            f"column type {text!r} is not understood", remedy=f"leave the column's table out, or {REPORT}"
        )
    numbers, unsigned = tuple(int(piece) for piece in pieces), "unsigned" in words or "zerofill" in words
    return TypeText(base, numbers, unsigned, compressed=bare != text)


def _members(inside: str, text: str) -> tuple[str, ...]:
    members, at = [], 0
    while at < len(inside):
        member = _MEMBER.match(inside, at)
        if member is None or (member[2] == "," and member.end() == len(inside)):
            raise UnsupportedValue(f"members of column type {text!r} are not understood", remedy=REPORT)
        members.append(_ESCAPED.sub(lambda m: "'" if m[1] is None else _ESCAPES.get(m[1], m[1]), member[1]))
        at = member.end()
    return tuple(members)


# Stands in members of a baseline's enum or set for what information_schema shows as '?': its text has three bytes per
# character, so a '?' is that, or any character beyond the basic plane.
UNKNOWN: Final = "\ufffd"
_BEYOND: Final = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})


def type_as_known(type_text: str, charset: str) -> str:
    """A column_type text of information_schema, with UNKNOWN where it may show less than there is."""
    listed = type_text.startswith(("enum(", "set("))
    return type_text.replace("?", UNKNOWN) if listed and charset in _BEYOND else type_text


def default_as_known(text: str, type_text: str, charset: str, *, mariadb: bool) -> str:
    """A literal default of information_schema, with UNKNOWN where it may show less than there is.

    For a binary column MySQL shows hexadecimal digits up to the first zero byte, MariaDB '?' for what is no text.
    """
    binary = type_text.startswith(("binary", "varbinary"))
    if binary and not mariadb:
        return text + UNKNOWN
    return text.replace("?", UNKNOWN) if binary or charset in _BEYOND else text


def enum_members(type_text: str) -> tuple[str, ...]:
    """Members of an enum or set type text, in order: "enum('a','b''c')" -> ("a", "b'c")."""
    return parse_type(type_text).members


def members_text(members: tuple[str, ...]) -> str:
    """The inverse: members -> "'a','b''c'", as information_schema writes them between the parentheses."""
    written = {"\0": "\\0", "\n": "\\n", "\r": "\\r", "\\": "\\\\", "'": "''"}
    return ",".join("'" + "".join(written.get(c, c) for c in member) + "'" for member in members)


@lru_cache(maxsize=4096)
def _canonical(type_text: str, charset: str) -> CanonicalType:
    text = parse_type(type_text)
    row = TYPES.get(text.base)
    if row is None:
        raise UnsupportedValue(
            f"column type {type_text!r} is not supported", remedy=f"leave the table out, or {REPORT}"
        )
    if row.kind is Kind.DECIMAL:
        return _decimal(text)
    if row.unsigned is not None and text.unsigned:
        return CanonicalType(*row.unsigned, text)
    if row.kind is Kind.BIT and text.numbers in ((), (1,)):
        return CanonicalType(Kind.BOOLEAN, pa.bool_(), "boolean", text)
    if row.kind is Kind.TEXT and charset == "binary":
        return CanonicalType(Kind.BINARY, pa.binary(), "binary", text)
    return CanonicalType(row.kind, row.arrow, row.delta, text)


def _decimal(text: TypeText) -> CanonicalType:
    digits, scale = (*text.numbers, 10, 0)[:2] if len(text.numbers) != 1 else (text.numbers[0], 0)
    if digits < 1 or scale > digits:
        raise UnsupportedValue(f"{digits} digits with {scale} after the point are no decimal", remedy=REPORT)
    if digits > DECIMAL_DIGITS_MAX:
        return CanonicalType(Kind.DECIMAL_TEXT, pa.string(), "string", text)
    return CanonicalType(Kind.DECIMAL, pa.decimal128(digits, scale), f"decimal({digits},{scale})", text)


def canonical(column: Column) -> CanonicalType:
    """The canonical type of a column. Raises UnsupportedValue naming column and type; the caller adds the place."""
    try:
        return _canonical(column.type, column.charset)
    except UnsupportedValue as error:
        raise UnsupportedValue(f"column {column.name}: {error.what}", remedy=error.remedy) from None
