"""What a MariaDB server makes of the value of an expression: its type, and the column that CREATE ... SELECT gives it.

In:  columns, literals, results of other expressions.
Out: a Result; the column_type of its column.

Rules: sql/sql_type.cc and sql/item.cc of MariaDB (Type_handler, Type_std_attributes), checked against 10.11 and 11.4.
What a session's character set decides is Doubt: the statement doesn't say it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidegate.schema.charsets import UNICODE, bytes_per_character
from tidegate.schema.columns import Column
from tidegate.schema.select_expressions import Doubt
from tidegate.schema.types import enum_members

DIGITS_MAX: Final = 65
SCALE_MAX: Final = 38
_INT_LENGTH_MAX: Final = 9  # a longer result of a function is a BIGINT
_VARCHAR_MAX: Final = 512  # characters; a longer result is a text or a blob
_RANKS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint")
_DIGITS: Final = (3, 5, 8, 10, 20)  # BIGINT: 19 when signed
_TEXTS: Final = ("text", "mediumtext", "longtext")
_BLOBS: Final = ("blob", "mediumblob", "longblob")
_TEXT_BYTES: Final = {"tiny": 255, "": 65535, "medium": 16777215, "long": 4294967295}
_TEMPORALS: Final = {"date": 10, "time": 10, "datetime": 19, "timestamp": 19}
_COLUMN: Final = re.compile(r"([a-z]+)(?:\((\d+)(?:,(\d+))?\))?( unsigned)?( zerofill)?")


@dataclass(frozen=True, slots=True)
class Result:
    """kind: int, decimal, double, float, date, time, datetime, timestamp, year, bit, string, null, or "own": a type of
    a column that only passes by as it is. length: of an int what is shown, sign included; of a string its characters.
    digits: of a number, the sign left out. scale: behind the point, or fractional digits of a second. rank: of an
    int, 0 for TINYINT to 4 for BIGINT. weak: a string whose character set gives way to a column's; charset is "" then.
    text: the column_type as the server shows it, where a column has it already. boolean: of a condition.
    listed: of an ENUM or SET. written: a column or a literal, whose length as a string is known.
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
    weak: bool = False
    binary: bool = False
    text: str = ""
    boolean: bool = False
    listed: bool = False
    written: bool = False

    def may_be_null(self, nullable: bool = True) -> Result:
        return replace(self, nullable=nullable)

    @property
    def numeric(self) -> bool:
        return self.kind in ("int", "decimal", "double", "float", "year", "bit")

    @property
    def temporal(self) -> bool:
        return self.kind in _TEMPORALS


NULL: Final = Result("null", nullable=True)


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


def double(*, nullable: bool = True) -> Result:
    return Result("double", nullable)


def moment(kind: str, scale: int = 0, *, nullable: bool = True) -> Result:
    """A date, time, datetime or timestamp."""
    return Result(kind, nullable, scale=scale, digits={"date": 8, "time": 7}.get(kind, 14) + scale)


def of_column(column: Column) -> Result:
    """The value of a column."""
    found = _COLUMN.fullmatch(column.type)
    base = found[1] if found else re.split(r"\W", column.type)[0]
    made = Result("own", column.nullable, charset=column.charset, collation=column.collation, text=column.type)
    if found is None:
        return made
    size, scale, unsigned = int(found[2] or 0), int(found[3] or 0), bool(found[4])
    if found[5]:
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
    if base in ("float", "double") and not size and not unsigned:
        return replace(made, kind=base)
    if base in _TEMPORALS:
        return replace(made, kind=base, scale=size, digits=moment(base, size).digits)
    if base == "year" and size == 4:
        return replace(made, kind="year", length=4, digits=4, unsigned=True)
    if base == "bit":
        return replace(made, kind="bit", length=size, digits=size, unsigned=True)
    if base in ("enum", "set"):
        return _of_members(made, base)
    return _of_string(made, base, size, column)


def _of_members(made: Result, base: str) -> Result:
    """ENUM and SET, whose text is a string for most functions."""
    lengths = [len(member) for member in enum_members(made.text)]
    length = max(lengths) if base == "enum" else sum(lengths) + len(lengths) - 1
    return replace(made, kind="string", length=length, listed=True)


def _of_string(made: Result, base: str, size: int, column: Column) -> Result:
    binary = base in ("binary", "varbinary")
    if base in ("char", "varchar") or binary:
        return replace(made, kind="string", length=size, binary=binary)
    for name, octets in _TEXT_BYTES.items():
        if base in (f"{name}text", f"{name}blob"):
            blob = base.endswith("blob")
            if blob or single_byte(column.charset) or name == "long":
                return replace(made, kind="string", length=octets, binary=blob)
    return made


def _decimal_column(digits: int, scale: int) -> str:
    """The whole part stays, and what is behind the point gives way (Field_new_decimal::create_from_item)."""
    shown = min(scale, SCALE_MAX)
    return f"decimal({min(digits - scale + shown, DIGITS_MAX)},{shown})"


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
            return _decimal_column(value.digits, value.scale) + (" unsigned" if value.unsigned else "")
        case "float" | "double" | "date":
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
    if value.weak and not value.binary:
        raise Doubt
    if value.length <= _VARCHAR_MAX:
        fixed, varying = ("binary", "varbinary") if value.binary else ("char", "varchar")
        return f"{varying}({value.length})" if value.length else f"{fixed}(0)"
    width = 1 if value.binary else bytes_per_character(value.charset)
    octets, names = value.length * width, _BLOBS if value.binary else _TEXTS
    return names[0] if octets <= 65535 else names[1] if octets <= 16777215 else names[2]


def single_byte(charset: str) -> bool:
    return bool(charset) and bytes_per_character(charset) == 1


def shown_length(value: Result) -> int:
    """Characters of a value as a string. Raises Doubt."""
    match value.kind:
        case "string" | "year":
            return value.length
        case "int" if value.written:
            return value.length
        case "decimal":
            return value.digits + (value.scale > 0) + (not value.unsigned)
        case "date" | "time" | "datetime" | "timestamp":
            return _TEMPORALS[value.kind] + (value.scale + 1 if value.scale else 0)
    raise Doubt


def together(values: Sequence[Result]) -> Result:
    """Of values that stand for one another, as in COALESCE, CASE or a UNION; NULL when any may be.

    Raises Doubt.
    """
    nullable = any(value.nullable for value in values)
    known = [value for value in values if value.kind != "null"]
    if not known:
        return NULL
    kinds = {value.kind for value in known}
    first = known[0]
    if len({(value.text, value.charset, value.collation) for value in known}) == 1 and _keeps(first):
        return first.may_be_null(nullable)
    if any(value.text.startswith("tiny") and value.kind == "string" for value in known):
        raise Doubt
    if "own" in kinds:
        raise Doubt
    if all(value.numeric for value in known):
        return _numbers(known, kinds).may_be_null(nullable)
    if all(value.temporal for value in known):
        kind = kinds.pop() if len(kinds) == 1 else "datetime"
        return moment(kind, max(value.scale for value in known), nullable=nullable)
    length = max(shown_length(value) for value in known)
    return strings(known, length).may_be_null(nullable)


def _keeps(value: Result) -> bool:
    """Whether a type stays as it is among its like."""
    if value.text in ("uuid", "inet4", "inet6", "longtext"):
        return True
    return value.text.endswith("blob") or (value.text.endswith("text") and single_byte(value.charset))


def _numbers(known: Sequence[Result], kinds: set[str]) -> Result:
    signs = {value.unsigned for value in known}
    if kinds == {"year"}:
        return Result("year", length=4, digits=4, unsigned=True)
    if kinds == {"bit"}:
        bits = max(value.length for value in known)
        return Result("bit", length=bits, digits=bits, unsigned=True)
    if "float" in kinds and len(kinds) > 1:
        raise Doubt
    if kinds & {"float", "double"}:
        return Result("float" if kinds == {"float"} else "double")
    if kinds == {"int"} and len(signs) == 1:
        digits, unsigned = max(value.digits for value in known), signs == {True}
        rank = max(value.rank for value in known)
        return Result("int", length=digits + (not unsigned), digits=digits, rank=rank, unsigned=unsigned)
    if kinds & {"bit", "year"} and signs == {True}:
        raise Doubt
    scale = max(value.scale for value in known)
    if scale > SCALE_MAX:
        raise Doubt
    whole = max(value.digits - value.scale for value in known)
    return decimal(whole + scale, scale, unsigned=signs == {True})


def strings(values: Sequence[Result], length: int, *, nullable: bool = True) -> Result:
    """A string of this many characters, in the character set that these values come to. Raises Doubt."""
    texts = [value for value in values if value.kind == "string"]
    if any(value.binary for value in texts):
        if any(not value.binary and (value.weak or not single_byte(value.charset)) for value in texts):
            raise Doubt
        weak = [value.weak for value in texts if value.binary]
        if any(weak) and len(weak) < len(texts):
            raise Doubt
        return Result("string", nullable, length, binary=True)
    sets = {(value.charset, value.collation) for value in texts if not value.weak}
    if not sets:
        return Result("string", nullable, length, weak=True)
    if len(sets) > 1:
        wide = {pair for pair in sets if pair[0] in UNICODE}
        if len(wide) != 1:
            raise Doubt
        sets = wide
    charset, collation = sets.pop()
    return Result("string", nullable, length, charset=charset, collation=collation)
