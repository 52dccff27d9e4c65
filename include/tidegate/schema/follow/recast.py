"""How the server converts existing values when a column's type changes, if this is certain.

In:  a column before and after the statement.
Out: a Recast, two texts of Spark SQL: the new value, and the values for which it isn't certain.
     None if it isn't certain for any value.

The log doesn't show these values. A value that fits gets the form of the new type. For any other
value the result depends on sql_mode (strict: the statement fails, so it isn't in the log; else the
value is cut): it is never certain. Compared with real servers over random values:
tests/integration/road/test_rewritten.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tidegate.schema.model.columns import Column
from tidegate.schema.model.type_table import TEXT_BYTES, Kind
from tidegate.schema.model.types import CanonicalType, canonical, integer_range

VALUE: Final = "{v}"  # stands for the old column in both texts


@dataclass(frozen=True, slots=True)
class Recast:
    """value: the new value. doubt: a condition, true for values that may have become something else.

    only_nulls: every other value stays, and only NULLs are in doubt.
    """

    value: str
    doubt: str
    only_nulls: bool = False


def recast(was: Column, now: Column) -> Recast | None:
    """How values of `was` look in `now`; None if nobody can know."""
    old, new = canonical(was), canonical(now)
    if "zerofill" in was.type or old.text.compressed != new.text.compressed:
        return None
    how: Recast | None = Recast(VALUE, "false")
    if (was.type, was.charset) != (now.type, now.charset):
        rule = _RULES.get((old.kind, new.kind))
        how = rule(old, new, was, now) if rule else None
    if how is not None and was.nullable and not now.nullable:
        return Recast(how.value, f"({how.doubt}) OR {VALUE} IS NULL", only_nulls=how == Recast(VALUE, "false"))
    return how


def _outside(value: str, low: int, high: int) -> str:
    wide = f"CAST({value} AS DECIMAL(38,0))"
    return f"{wide} < {low} OR {wide} > {high}"


def _integer(_: CanonicalType, new: CanonicalType, __: Column, ___: Column) -> Recast:
    return Recast(VALUE, _outside(VALUE, *integer_range(new)))


def _integer_to_decimal(_: CanonicalType, new: CanonicalType, __: Column, ___: Column) -> Recast:
    high = 10 ** (new.arrow.precision - new.arrow.scale) - 1
    return Recast(VALUE, _outside(VALUE, 0 if new.text.unsigned else -high, high))


def _decimal(old: CanonicalType, new: CanonicalType, _: Column, __: Column) -> Recast | None:
    if new.arrow.scale < old.arrow.scale:
        return None  # rounded
    digits = new.arrow.precision - new.arrow.scale
    # A literal of 39 digits isn't valid, and no value has that many.
    large = f"abs({VALUE}) >= {10**digits}" if digits < old.arrow.precision - old.arrow.scale else "false"
    negative = f" OR {VALUE} < 0" if new.text.unsigned else ""
    return Recast(VALUE, f"{large}{negative}")


def _number_to_text(old: CanonicalType, new: CanonicalType, _: Column, now: Column) -> Recast | None:
    if old.kind is Kind.DECIMAL and old.arrow.scale > 6:
        return None  # Spark writes small values with an exponent
    text = f"CAST({VALUE} AS STRING)"
    return Recast(text, _too_long(text, new)) if now.charset not in ("", "binary") else None


def _too_long(text: str, new: CanonicalType) -> str:
    """SQL: whether a text may not fit, counted in characters, or in bytes with four per character."""
    size = TEXT_BYTES.get(new.text.base)
    if size is not None:
        return f"length({text}) > {size // 4}"
    return f"length({text}) > {new.text.numbers[0] if new.text.numbers else 1}"


def _text(_: CanonicalType, new: CanonicalType, was: Column, now: Column) -> Recast | None:
    foreign = _foreign(was.charset, now.charset)
    if foreign is None:
        return None
    text = f"rtrim({VALUE})" if new.text.base == "char" else VALUE
    return Recast(text, f"{_too_long(VALUE, new)} OR {foreign}")


# In these sets ASCII characters have their own bytes. Nothing is said of the other characters.
_ASCII_BELOW: Final = frozenset(
    ["ascii", "latin1", "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1256", "cp1257", "koi8r", "koi8u"]
)


def _foreign(old: str, new: str) -> str | None:
    """SQL for texts that may have a character which the new character set lacks."""
    if old == new or new in ("utf8mb4", "utf32", "utf16"):
        return "false"
    if new in ("utf8mb3", "utf8", "ucs2"):
        return f"{VALUE} RLIKE '[^\\\\x{{0}}-\\\\x{{FFFF}}]'"
    if new in _ASCII_BELOW:
        return f"{VALUE} RLIKE '[^\\\\x00-\\\\x7E]'"
    return None


def _member(_: CanonicalType, new: CanonicalType, __: Column, ___: Column) -> Recast | None:
    if any("'" in member or "\\" in member for member in new.text.members):
        return None
    known = ", ".join(f"'{member}'" for member in new.text.members)
    return Recast(VALUE, f"{VALUE} NOT IN ({known})")


def _binary(old: CanonicalType, new: CanonicalType, _: Column, __: Column) -> Recast | None:
    if "binary" in (old.text.base, new.text.base):
        return None  # padded with zeros
    size = TEXT_BYTES.get(new.text.base) or new.text.numbers[0]
    return Recast(VALUE, f"octet_length({VALUE}) > {size}")


def _fewer_digits(_: CanonicalType, new: CanonicalType, __: Column, ___: Column) -> Recast:
    """The server and its mode decide whether digits are rounded or cut."""
    step = 10 ** (6 - (new.text.numbers[0] if new.text.numbers else 0))
    return Recast(VALUE, f"CAST(date_format({VALUE}, 'SSSSSS') AS INT) % {step} <> 0")


def _date(_: CanonicalType, __: CanonicalType, ___: Column, ____: Column) -> Recast:
    return Recast(f"CAST({VALUE} AS DATE)", f"date_format({VALUE}, 'HHmmssSSSSSS') <> '000000000000'")


def _midnight(_: CanonicalType, __: CanonicalType, ___: Column, ____: Column) -> Recast:
    return Recast(f"CAST({VALUE} AS TIMESTAMP_NTZ)", "false")


_Rule = Callable[[CanonicalType, CanonicalType, Column, Column], Recast | None]

_RULES: Final[dict[tuple[Kind, Kind], _Rule]] = {
    (Kind.INT, Kind.INT): _integer,
    (Kind.INT, Kind.UNSIGNED_BIGINT): _integer,
    (Kind.UNSIGNED_BIGINT, Kind.INT): _integer,
    (Kind.INT, Kind.DECIMAL): _integer_to_decimal,
    (Kind.UNSIGNED_BIGINT, Kind.DECIMAL): _integer_to_decimal,
    (Kind.DECIMAL, Kind.DECIMAL): _decimal,
    (Kind.INT, Kind.TEXT): _number_to_text,
    (Kind.UNSIGNED_BIGINT, Kind.TEXT): _number_to_text,
    (Kind.DECIMAL, Kind.TEXT): _number_to_text,
    (Kind.TEXT, Kind.TEXT): _text,
    (Kind.ENUM, Kind.TEXT): _text,
    (Kind.SET, Kind.TEXT): _text,
    (Kind.ENUM, Kind.ENUM): _member,
    (Kind.BINARY, Kind.BINARY): _binary,
    (Kind.DATETIME, Kind.DATETIME): _fewer_digits,
    (Kind.TIMESTAMP, Kind.TIMESTAMP): _fewer_digits,
    (Kind.DATETIME, Kind.DATE): _date,
    (Kind.DATE, Kind.DATETIME): _midnight,
}
