"""The type of values that stand for one another: COALESCE, IF, CASE, LEAST, GREATEST, as MariaDB gives it.

In:  the Results of the arguments.
Out: a Result. Raises Doubt where the type isn't certain.

Rules: Item_hybrid_func_fix_attributes, Item_func_min_max_fix_attributes in MariaDB's sql/sql_type.cc.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from tidegate.schema.select_collations import BINARY, Session, aggregate
from tidegate.schema.select_expressions import Doubt
from tidegate.schema.select_types import (
    DIGITS_MAX,
    NULL,
    UNFIXED,
    Result,
    decimal,
    double,
    made_string,
    moment,
    octets,
    shown_length,
)

_INT_RANK: Final = 3
# Of each kind of address, what is one beyond doubt; and characters that are in none.
_ADDRESS: Final = {
    "uuid": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "inet4": re.compile(r"(\d|[1-9]\d|1\d\d)(\.(\d|[1-9]\d|1\d\d)){3}"),
    "inet6": re.compile(r"::[0-9a-f]{0,4}|([1-9a-f][0-9a-f]{0,3}:){7}[1-9a-f][0-9a-f]{0,3}"),
}
# A text that is a moment without a fraction, whatever it is compared with.
_WHOLE_SECONDS: Final = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?")
_NO_ADDRESS: Final = re.compile(r"[g-z ]|^$")


def together(values: Sequence[Result], session: Session, *, null_is_signed: bool = False) -> Result:
    """As in COALESCE and CASE; NULL when any may be. null_is_signed: a NULL counts among unsigned numbers.

    Raises Doubt.
    """
    nullable = any(value.nullable for value in values)
    known = [value for value in values if value.kind != "null"]
    if not known:
        return NULL
    kinds = {value.kind for value in known}
    if "own" in kinds:
        raise Doubt
    if "address" in kinds:
        return addresses(known).may_be_null(nullable)
    if all(value.numeric for value in known):
        null_counts = null_is_signed and len(known) < len(values)
        return _numbers(known, kinds, null_counts=null_counts).may_be_null(nullable)
    if all(value.temporal for value in known):
        kind = kinds.pop() if len(kinds) == 1 else "datetime"
        return moment(kind, max(value.scale for value in known), nullable=nullable)
    if any(value.text == "tinyint(1)" for value in known):
        raise Doubt  # it has its digits here, not its room
    part = aggregate([value.collated for value in values], session)
    length = max((octets if part.charset == BINARY else shown_length)(value) for value in known)
    made = made_string(part, length, nullable=nullable)
    return replace(made, large=any(value.large for value in known))


def as_addresses(values: Sequence[Result]) -> list[Result]:
    """Texts beside a UUID or INET are made one, or NULL. Raises Doubt."""
    kinds = {value.text: value for value in values if value.kind == "address"}
    if not kinds:
        return list(values)
    if len(kinds) > 1:
        raise Doubt
    kind, model = kinds.popitem()
    found = []
    for value in values:
        if value.kind == "string":
            found.append(replace(model, nullable=_may_fail(kind, value)))
        elif value.kind in ("address", "null"):
            found.append(value)
        else:
            raise Doubt
    return found


def _may_fail(kind: str, value: Result) -> bool:
    if value.binary and value.literal is not None:
        return len(value.literal) != (4 if kind == "inet4" else 16)
    if value.literal is None:
        if value.written and not value.text:
            raise Doubt
        return True
    if _ADDRESS[kind].fullmatch(value.literal):
        return False
    if _NO_ADDRESS.search(value.literal):
        return True
    raise Doubt


def addresses(values: Sequence[Result]) -> Result:
    """One of a kind. Raises Doubt."""
    return next(value for value in as_addresses(values) if value.kind == "address")


def _numbers(known: Sequence[Result], kinds: set[str], *, null_counts: bool) -> Result:
    signs = {value.unsigned for value in known}
    if kinds == {"year"}:
        return Result("year", length=4, digits=4, unsigned=True)
    if kinds == {"bit"}:
        bits = max(value.length for value in known)
        return Result("bit", length=bits, digits=bits, unsigned=True)
    if null_counts and True in signs:
        if kinds & {"year", "bit"}:
            raise Doubt
        signs.add(False)
    if kinds & {"float", "double"}:
        single = all(value.kind in ("float", "year") or _is_small(value) for value in known)
        return _reals(known, "float" if single else "double")
    if kinds == {"int"} and len(signs) == 1:
        digits, unsigned = max(value.digits for value in known), signs == {True}
        rank = max(value.rank for value in known)
        return Result("int", length=digits + (not unsigned), digits=digits, rank=rank, unsigned=unsigned)
    if kinds & {"bit", "year"} and signs == {True}:
        raise Doubt
    scale = max(value.scale for value in known)
    whole = max(min(value.digits, DIGITS_MAX) - value.scale for value in known)
    return decimal(max(whole, 0) + scale, scale, unsigned=signs == {True})


def _is_small(value: Result) -> bool:
    """A whole number that a FLOAT holds."""
    return value.kind == "int" and value.rank < _INT_RANK


def _reals(known: Sequence[Result], kind: str) -> Result:
    if any(value.unsigned and value.kind in ("float", "double") for value in known):
        raise Doubt
    scale = max(value.scale for value in known)
    lengths = [shown_length(value) for value in known]
    if scale == UNFIXED:
        return Result(kind, length=max(lengths), scale=scale)
    whole = max(length - value.scale for length, value in zip(lengths, known, strict=True))
    return Result(kind, length=whole + scale, scale=scale)


def extreme(values: Sequence[Result], usual: Callable[[Sequence[Result]], Result]) -> Result:
    """LEAST and GREATEST compare: what is compared as dates, or as numbers, is one; else as `usual`. Raises Doubt."""
    nullable = any(value.nullable for value in values)
    known = [value for value in values if value.kind != "null"]
    kinds = {value.kind for value in known}
    if len(known) != len(values) or "own" in kinds:
        raise Doubt
    if "address" in kinds:
        alike = as_addresses(values)
        return addresses(alike).may_be_null(any(value.nullable for value in alike))
    temporal = [value for value in values if value.temporal]
    if temporal and len(temporal) < len(values):
        return _moments(values, temporal)
    texts = [value.kind == "string" for value in values]
    if any(texts) and not all(texts):
        if any(value.binary or value.listed or (value.narrow and value.kind == "string") for value in values):
            raise Doubt
        return double(nullable=nullable)
    made = usual(values).may_be_null(nullable)
    if made.kind == "float" and kinds != {"float"}:
        raise Doubt  # of whole numbers some make it a DOUBLE
    if made.kind in ("float", "double"):
        return replace(made, length=double(scale=made.scale).length)
    return made


def _moments(values: Sequence[Result], temporal: list[Result]) -> Result:
    others = [value for value in values if not value.temporal]
    plain = all(value.kind == "int" or (value.weak and value.written) for value in others)
    if any(value.scale or value.kind == "timestamp" for value in values) or not plain:
        raise Doubt
    kinds = {value.kind for value in temporal}
    whole = all(value.kind == "int" or _WHOLE_SECONDS.fullmatch(value.literal or "") for value in others)
    texts = any(value.kind == "string" for value in others)
    if kinds != {"date"} and not (whole and not (texts and "time" in kinds)):
        raise Doubt
    return moment(kinds.pop() if len(kinds) == 1 else "datetime", nullable=True)
