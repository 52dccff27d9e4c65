"""What a MariaDB server makes of the value of an expression: its type, and the column that CREATE ... SELECT gives it.

In:  columns, literals, results of other expressions.
Out: a Result; the column_type of its column.

Rules: sql/sql_type.cc and sql/item.cc of MariaDB (Type_handler, Type_std_attributes), checked against 10.11 and 11.4.
What a session's character set decides is Doubt where nobody told it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from tidegate.schema.model.charsets import bytes_per_character
from tidegate.schema.model.columns import Column
from tidegate.schema.model.types import enum_members
from tidegate.schema.select_collations import BINARY, COERCIBLE, IGNORABLE, IMPLICIT, NUMERIC, Collated, Session
from tidegate.schema.select_expressions import Doubt

DIGITS_MAX: Final = 65
SCALE_MAX: Final = 38
_INT_LENGTH_MAX: Final = 9  # a longer result of a function is a BIGINT
_VARCHAR_MAX: Final = 512  # characters; a longer result is a text or a blob
_RANKS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint")
_DIGITS: Final = (3, 5, 8, 10, 20)  # BIGINT: 19 when signed
_TEXTS: Final = ("tinytext", "text", "mediumtext", "longtext")
_BLOBS: Final = ("tinyblob", "blob", "mediumblob", "longblob")
LONGEST: Final = 4294967295
ADDRESSES: Final = {"uuid": 36, "inet4": 15, "inet6": 39}
_TEXT_BYTES: Final = {"tiny": 255, "": 65535, "medium": 16777215, "long": 4294967295}
_TEMPORALS: Final = {"date": 10, "time": 10, "datetime": 19, "timestamp": 19}
_COLUMN: Final = re.compile(r"([a-z]+[46]?)(?:\((\d+)(?:,(\d+))?\))?( unsigned)?( zerofill)?")


@dataclass(frozen=True, slots=True)
class Result:
    """kind: int, decimal, double, float, date, time, datetime, timestamp, year, bit, string, null, "address" (uuid,
    inet4, inet6), or "own": a type of a column that only passes by as it is. length: what is shown, sign and point
    included; of a string its characters. digits: of a number, the sign left out. scale: behind the point, or
    fractional digits of a second; UNFIXED of a float or double without. rank: of an int, 0 for TINYINT to 4 for BIGINT.
    charset: of a string, "" for a session's that isn't told. derivation: how strongly it holds (select_collations.py).
    ascii: of a string. text: the column_type as the server shows it, where a column has it already. boolean: of a
    condition. listed: of an ENUM or SET. large: a TEXT or BLOB, whatever its length. written: a column or a literal.
    narrow: an int that is one character shorter as a string; a string that has no digits behind the point as a number.
    literal: the text of one that is a string.
    """

    kind: str
    nullable: bool = False
    length: int = 0
    digits: int = 0
    scale: int = 0
    rank: int = 3
    unsigned: bool = False
    charset: str = ""
    collation: str = ""
    derivation: int = IMPLICIT
    ascii: bool = False
    text: str = ""
    boolean: bool = False
    listed: bool = False
    large: bool = False
    written: bool = False
    narrow: bool = False
    literal: str | None = None

    @property
    def weak(self) -> bool:
        """A string whose character set gives way to a column's."""
        return self.derivation >= COERCIBLE

    @property
    def binary(self) -> bool:
        """A string of bytes."""
        return self.charset == BINARY

    @property
    def collated(self) -> Collated:
        """How it takes part in making a string."""
        if self.kind == "string":
            return Collated(self.charset, self.collation, self.derivation, self.ascii)
        if self.kind == "bit":
            if not self.text:
                raise Doubt
            return Collated(BINARY, BINARY)
        if self.kind == "null":
            return Collated(BINARY, BINARY, IGNORABLE)
        return Collated("latin1", "latin1_swedish_ci", NUMERIC, ascii=True)

    def may_be_null(self, nullable: bool = True) -> Result:
        return replace(self, nullable=nullable)

    @property
    def numeric(self) -> bool:
        return self.kind in ("int", "decimal", "double", "float", "year", "bit")

    @property
    def temporal(self) -> bool:
        return self.kind in _TEMPORALS


NULL: Final = Result("null", nullable=True)
UNFIXED: Final = 39
_POINT_MAX: Final = 30  # a longer scale of a float or double isn't shown


def integer(
    length: int, *, unsigned: bool = False, nullable: bool = True, digits: int | None = None, rank: int = 0
) -> Result:
    """A function's whole number. length: as it is shown. rank: when it isn't by length."""
    rank = rank or (3 if length <= _INT_LENGTH_MAX else 4)
    known = max(length - (not unsigned), 1) if digits is None else digits
    return Result("int", nullable, length, known, rank=rank, unsigned=unsigned)


def boolean(*, nullable: bool) -> Result:
    return Result("int", nullable, 1, 1, boolean=True)


def decimal(digits: int, scale: int, *, unsigned: bool = False, nullable: bool = True) -> Result:
    """Of a function. Its scale may be more than a column's: the server cuts when it makes the column."""
    return Result("decimal", nullable, digits=min(digits, DIGITS_MAX), scale=scale, unsigned=unsigned)


def double(*, nullable: bool = True, scale: int = UNFIXED, length: int = 0) -> Result:
    """length: 0 for a function's usual."""
    scale = min(scale, UNFIXED)
    return Result("double", nullable, length or (23 if scale == UNFIXED else 17 + scale), scale=scale)


def made_string(part: Collated, length: int, *, nullable: bool) -> Result:
    """A function's string."""
    return Result(
        "string",
        nullable,
        min(length, LONGEST),
        charset=part.charset,
        collation=part.collation,
        derivation=part.derivation,
        ascii=part.ascii,
    )


def string_nullable(values: Iterable[Result], session: Session) -> bool:
    """Whether a function's string may be NULL: in a strict session any, since the server checks each. Raises Doubt."""
    if any(value.nullable for value in values):
        return True
    if session.told.strict is None:
        raise Doubt
    return session.told.strict


def moment(kind: str, scale: int = 0, *, nullable: bool = True) -> Result:
    """A date, time, datetime or timestamp."""
    return Result(kind, nullable, scale=scale, digits={"date": 8, "time": 7}.get(kind, 14) + scale)


def of_column(column: Column) -> Result:
    """The value of a column."""
    found = _COLUMN.fullmatch(column.type)
    base = found[1] if found else re.split(r"\W", column.type)[0]
    made = Result("own", column.nullable, charset=column.charset, collation=column.collation, text=column.type)
    if base in ("enum", "set"):
        return _of_members(made, base)
    if found is None:
        return made
    size, scale, unsigned = int(found[2] or 0), int(found[3] or 0), bool(found[4])
    if found[5] and base != "decimal":
        return made  # ZEROFILL goes its own ways
    if base in _RANKS:
        rank = _RANKS.index(base)
        digits = _DIGITS[rank] - (base == "bigint" and not unsigned)
        if size > digits + (not unsigned):
            return made
        return replace(
            made,
            kind="int",
            length=digits + (not unsigned),
            digits=digits,
            rank=rank,
            unsigned=unsigned,
            written=True,
        )
    if base == "decimal":
        return replace(made, kind="decimal", digits=size, scale=scale, unsigned=unsigned)
    if base in ("float", "double") and not unsigned:
        if not size:
            return replace(made, kind=base, length=12 if base == "float" else 22, scale=UNFIXED)
        return replace(made, kind=base, length=size, scale=scale)
    if base in ADDRESSES:
        return replace(made, kind="address", length=ADDRESSES[base])
    if base in _TEMPORALS:
        return replace(made, kind=base, scale=size, digits=moment(base, size).digits)
    if base == "year" and size == 4:
        return replace(made, kind="year", length=4, digits=4, unsigned=True)
    if base == "bit":
        return replace(made, kind="bit", length=size, digits=size, unsigned=True)
    return _of_string(made, base, size)


def _of_members(made: Result, base: str) -> Result:
    """ENUM and SET, whose text is a string for most functions."""
    lengths = [len(member) for member in enum_members(made.text)]
    length = max(lengths) if base == "enum" else sum(lengths) + len(lengths) - 1
    return replace(made, kind="string", length=length, listed=True)


def _of_string(made: Result, base: str, size: int) -> Result:
    if base in ("binary", "varbinary"):
        return replace(made, kind="string", length=size, charset=BINARY, collation=BINARY)
    if base in ("char", "varchar"):
        return replace(made, kind="string", length=size, written=True)
    for name, octets in _TEXT_BYTES.items():
        if base == f"{name}text":
            return replace(made, kind="string", length=octets, large=True)
        if base == f"{name}blob":
            return replace(made, kind="string", length=octets, large=True, charset=BINARY, collation=BINARY)
    return made


def _decimal_column(digits: int, scale: int, *, unsigned: bool) -> str:
    """The whole part stays, and what is behind the point gives way (Type_handler_newdecimal::make_table_field)."""
    shown, sign = min(scale, SCALE_MAX), not unsigned
    whole = (digits - scale) % 256  # eight bits, in the server
    wanted = min(whole + shown, DIGITS_MAX) + (shown > 0) + sign
    length = digits + (scale > 0) + sign
    if wanted > length:
        shown = max(0, shown - (wanted - length))
    else:
        length = wanted
    return f"decimal({length - (shown > 0) - sign},{shown})"


def column_type(value: Result) -> str:
    """Of the column that holds a value. Raises Doubt."""
    if value.text:
        return value.text
    match value.kind:
        case "null":
            return "binary(0)"
        case "int":
            return f"{_RANKS[value.rank]}({value.length})" + (" unsigned" if value.unsigned else "")
        case "decimal":
            shown = _decimal_column(value.digits, value.scale, unsigned=value.unsigned)
            return shown + (" unsigned" if value.unsigned else "")
        case "float" | "double":
            fixed = f"({min(value.length, 255)},{value.scale})" if value.scale <= _POINT_MAX else ""
            return value.kind + fixed + (" unsigned" if value.unsigned else "")
        case "date":
            return value.kind
        case "time" | "datetime" | "timestamp":
            return value.kind + (f"({value.scale})" if value.scale else "")
        case "year":
            return "year(4)"
        case "bit":
            return f"bit({value.length})"
        case "string":
            return _string_type(value)
    raise Doubt


def _string_type(value: Result) -> str:
    if not value.charset:
        raise Doubt  # of a session that isn't told
    octets = min(value.length * bytes_per_character(value.charset), LONGEST)
    if value.large or value.length > _VARCHAR_MAX:
        names = _BLOBS if value.binary else _TEXTS
        size = 0 if octets <= 255 else 1 if octets <= 65535 else 2 if octets <= 16777215 else 3
        return names[size]
    fixed, varying = ("binary", "varbinary") if value.binary else ("char", "varchar")
    return f"{varying}({value.length})" if value.length else f"{fixed}(0)"


def octets(value: Result) -> int:
    """Bytes of a value as a string: what isn't one is in ASCII. Raises Doubt."""
    if value.kind != "string":
        return shown_length(value)
    if not value.charset:
        raise Doubt
    if value.large and value.text:
        return value.length  # of a column they are bytes already
    return min(value.length * bytes_per_character(value.charset), LONGEST)


def shown_length(value: Result) -> int:
    """Characters of a value as a string. Raises Doubt."""
    match value.kind:
        case "string" | "year" | "bit" | "address" | "float" | "double":
            return value.length
        case "int":
            return value.length - value.narrow
        case "null":
            return 0
        case "decimal":
            return value.digits + (value.scale > 0) + (not value.unsigned)
        case "date" | "time" | "datetime" | "timestamp":
            return _TEMPORALS[value.kind] + (value.scale + 1 if value.scale else 0)
    raise Doubt
