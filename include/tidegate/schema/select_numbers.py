"""Types of what is computed from numbers: operators, rounding, aggregates, as MariaDB gives them.

In:  the Results of operands.
Out: a Result. Raises Doubt where the type isn't certain.

Digits: result_precision and fix_length_and_dec of each Item in MariaDB's sql/item_func.cc and sql/item_sum.cc.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tidegate.schema.select_expressions import Doubt, Expression
from tidegate.schema.select_types import (
    DIGITS_MAX,
    SCALE_MAX,
    UNFIXED,
    Result,
    decimal,
    double,
    integer,
    moment,
    octets,
)

BIGINT_DIGITS: Final = 18  # of which any number is a BIGINT
_DIVISION_SCALE: Final = 4  # div_precision_increment
_NEGATIVE_LENGTH_MAX: Final = 53
_FRACTION_MAX: Final = 6
_DIV_LENGTH_MAX: Final = 21
_ROUND_SCALE_MAX: Final = 30


def _figures(value: Result) -> tuple[str, int, int]:
    """(int, decimal or double; digits; scale) of an operand, as arithmetic takes it."""
    if value.kind in ("int", "year", "bit"):
        return "int", value.digits, 0
    if value.kind == "decimal":
        return "decimal", min(value.digits, DIGITS_MAX), min(value.scale, SCALE_MAX)
    if value.temporal:
        return ("decimal" if value.scale else "int"), value.digits, value.scale
    if value.kind in ("double", "float"):
        return "double", 0, value.scale
    if value.kind == "string" and not value.binary and not value.listed:
        return "double", 0, 0 if value.narrow else UNFIXED
    raise Doubt


def _real_scale(value: Result) -> int:
    """Digits behind the point, as a DOUBLE counts them."""
    return UNFIXED if value.kind == "string" and not value.narrow else min(value.scale, UNFIXED)


def _check_moments(left: Result, right: Result) -> None:
    """Of a moment and a number, only a plain whole number is certain."""
    for one, other in ((left, right), (right, left)):
        if one.kind == "timestamp" or (one.temporal and (other.unsigned or other.kind == "decimal")):
            raise Doubt


def arithmetic(operator: str, left: Result, right: Result) -> Result:
    (kind1, digits1, scale1), (kind2, digits2, scale2) = _figures(left), _figures(right)
    kinds = {kind1, kind2}
    if "double" in kinds:
        return double(scale=max(_real_scale(left), _real_scale(right)))
    _check_moments(left, right)
    if operator == "*":
        digits, scale = digits1 + digits2, min(scale1 + scale2, SCALE_MAX)
    else:
        scale = max(scale1, scale2)
        digits = max(digits1 - scale1, digits2 - scale2) + 1 + scale
    if kinds == {"int"}:
        unsigned = left.unsigned or right.unsigned
        return integer(digits + (not unsigned), unsigned=unsigned)
    return decimal(digits, scale, unsigned=left.unsigned and right.unsigned)


def division(operator: str, left: Result, right: Result) -> Result:
    """NULL for a division by zero."""
    if operator == "div":
        return _whole_division(left, right)
    (kind1, digits1, scale1), (kind2, digits2, scale2) = _figures(left), _figures(right)
    kinds, unsigned = {kind1, kind2}, left.unsigned and right.unsigned
    _check_moments(left, right)
    if "double" in kinds:
        scales = _real_scale(left), _real_scale(right)
        if operator == "/":
            return _ratio(left, *scales)
        return replace(double(scale=max(scales)), unsigned=left.unsigned)
    if operator == "/":
        scale = min(scale1 + _DIVISION_SCALE, SCALE_MAX)
        return decimal(digits1 + max(scale2, right.scale) + _DIVISION_SCALE, scale, unsigned=unsigned)
    digits, unsigned = max(digits1, digits2), left.unsigned
    if kinds == {"int"}:
        return integer(digits + (not unsigned), unsigned=unsigned)
    return decimal(digits, max(scale1, scale2), unsigned=unsigned)


def _ratio(left: Result, scale1: int, scale2: int) -> Result:
    """A DOUBLE divided, or divided by one."""
    scale = min(max(scale1, scale2) + _DIVISION_SCALE, UNFIXED)
    usual = double(scale=scale)
    if scale == UNFIXED:
        return usual
    return replace(usual, length=min(octets(left) - scale1 + scale, usual.length))


def _whole_division(left: Result, right: Result) -> Result:
    """DIV."""
    if right.kind not in ("null", "own"):
        _figures(right)
    if "timestamp" in (left.kind, right.kind):
        raise Doubt
    unsigned = left.unsigned or right.unsigned
    if left.kind == "null":
        return integer(1, unsigned=unsigned)
    kind, digits, scale = _figures(left)
    if kind != "double":
        _check_moments(left, right)
        whole = digits - (left.scale if left.kind == "decimal" else scale)
        if not 0 < whole <= BIGINT_DIGITS:
            raise Doubt
        return integer(max(whole, 1), unsigned=unsigned)
    whole = left.length - (left.scale if left.scale != UNFIXED else 0)
    return integer(min(max(whole, 1), _DIV_LENGTH_MAX), unsigned=unsigned)


def negative(tree: Expression, value: Result) -> Result:
    kind, digits, scale = _figures(value)
    if value.temporal or (value.kind == "decimal" and value.scale > SCALE_MAX):
        raise Doubt
    if kind == "double":
        if value.kind == "string" and not value.text and not tree.literal and not value.narrow:
            raise Doubt
        if scale == UNFIXED:
            return double(nullable=value.nullable, length=min(octets(value) + 1, _NEGATIVE_LENGTH_MAX))
        return double(nullable=value.nullable, scale=scale, length=value.length + 1)
    if kind == "decimal" and (scale or tree.literal):
        return decimal(digits, scale, nullable=value.nullable)
    if not value.written or tree.text == "0" or digits > BIGINT_DIGITS + (not tree.literal):
        return _large_negative(tree, digits, nullable=value.nullable)
    return integer(value.length + 1, nullable=value.nullable, digits=digits)


_BIGINT_LEAST: Final = 1 << 63


def _large_negative(tree: Expression, digits: int, *, nullable: bool) -> Result:
    """Of a literal about as long as a BIGINT."""
    if tree.literal != "int" or digits <= BIGINT_DIGITS:
        raise Doubt
    if int(tree.text) > _BIGINT_LEAST:
        return decimal(digits, 0, nullable=nullable)
    return integer(digits + 1, nullable=nullable, digits=digits)


def numeric(name: str, tree: Expression, values: list[Result]) -> Result:
    value = values[0]
    if name in ("min", "max"):
        return _most(tree.arguments[0], value)
    kind, digits, scale = _figures(value)
    if value.kind in ("year", "bit", "timestamp") and name in ("avg", "abs"):
        raise Doubt
    if value.temporal and name == "abs":
        raise Doubt
    if name in ("sum", "avg") and tree.arguments[0].name == "div" and tree.arguments[0].arguments[0].name != "field":
        raise Doubt  # digits of NULL DIV 1 and the like: versions differ
    if name == "sum":
        return double(scale=scale) if kind == "double" else decimal(digits + 22, scale)
    if name == "avg":
        return _average(value, kind, digits, scale)
    if name == "abs" and value.kind == "int":
        return integer(value.length, unsigned=value.unsigned, nullable=value.nullable)
    if name == "abs":
        if kind == "double":
            return double(nullable=value.nullable, scale=scale)
        return decimal(digits, scale, unsigned=value.unsigned, nullable=value.nullable)
    if name in ("round", "truncate"):
        return _rounded(name, tree, value)
    return _ceiling(name, value)


def _average(value: Result, kind: str, digits: int, scale: int) -> Result:
    if kind != "double":
        return decimal(digits + _DIVISION_SCALE, min(scale + _DIVISION_SCALE, SCALE_MAX))
    if scale == UNFIXED:
        return double()
    usual = double(scale=scale + _DIVISION_SCALE)
    return replace(usual, length=min(octets(value) + _DIVISION_SCALE, usual.length))


def _fixed(places: int, value: Result) -> Result:
    return double(nullable=value.nullable, scale=places)


def _ceiling(name: str, value: Result) -> Result:
    if value.temporal or value.kind == "year":
        return _rounded_moment(name, value, 0)
    if value.kind in ("double", "float", "string"):
        return _fixed(0, value)
    if value.kind == "int" and value.text:
        return _same(value)
    if value.kind != "decimal":
        raise Doubt
    carry = value.scale > 0 and not (name == "floor" and value.unsigned)
    digits = value.digits - value.scale + carry
    if digits <= BIGINT_DIGITS:
        return integer(digits + (not value.unsigned), unsigned=value.unsigned, nullable=value.nullable)
    return decimal(digits, 0, unsigned=value.unsigned, nullable=value.nullable)


def _rounded_moment(name: str, value: Result, places: int) -> Result:
    if value.kind in ("date", "year") and not places:
        return integer(value.digits, unsigned=True, nullable=value.nullable, digits=value.digits)
    if value.kind in ("date", "year"):
        raise Doubt
    scale = min(places, _FRACTION_MAX)
    if value.kind == "time":
        return moment("time", scale, nullable=value.nullable)
    return moment("datetime", scale, nullable=value.nullable or name != "truncate")


def _same(value: Result) -> Result:
    return replace(value, text="", written=False, length=value.digits + (not value.unsigned))


def _rounded(name: str, tree: Expression, value: Result) -> Result:
    places = 0
    if len(tree.arguments) > 1:
        given = tree.arguments[1]
        negative = given.name == "neg"
        if (given.arguments[0] if negative else given).literal != "int":
            raise Doubt
        places = 0 if negative else int(given.text)
    if value.temporal or value.kind == "year":
        if len(tree.arguments) > 1 and tree.arguments[1].name == "neg":
            raise Doubt
        return _rounded_moment(name, value, places)
    if value.kind == "int" and value.text and (len(tree.arguments) == 1 or tree.arguments[1].literal):
        return _same(value)
    if value.kind in ("double", "float", "string"):
        return _fixed(min(places, SCALE_MAX), value)
    if value.kind != "decimal" or places > value.scale:
        raise Doubt
    carry = 1 if name == "round" and places < value.scale else 0
    whole = value.digits - value.scale
    return decimal(max(whole + places + carry, 1), places, unsigned=value.unsigned, nullable=value.nullable)


def spread(value: Result) -> Result:
    """Variance and deviation."""
    kind, digits, scale = _figures(value)
    if value.temporal or value.kind in ("year", "bit") or (value.kind == "string" and not value.text):
        raise Doubt
    if kind == "double":
        if scale == UNFIXED:
            return double()
        return double(scale=scale + _DIVISION_SCALE, length=17 + scale)
    return double(scale=min(value.scale + _DIVISION_SCALE, _ROUND_SCALE_MAX), length=digits * 2 + 6)


def _most(tree: Expression, value: Result) -> Result:
    """MIN and MAX of a column are of its type; other whole numbers become BIGINT."""
    if tree.name == "neg" and value.kind == "decimal":
        raise Doubt
    if tree.name == "field" or value.kind in ("decimal", "null", "address") or value.temporal or value.boolean:
        return value.may_be_null()
    if value.kind in ("double", "float"):
        return double(scale=value.scale)
    if value.kind in ("int", "year"):
        return replace(value, kind="int", text="", rank=4, nullable=True)
    if value.kind == "bit":
        return Result("int", True, value.length, value.digits, rank=4, unsigned=True)
    if value.kind == "string":
        return replace(value, text="", nullable=True, large=False, listed=False)
    raise Doubt
