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
    Result,
    decimal,
    double,
    integer,
    moment,
    together,
)

BIGINT_DIGITS: Final = 18  # of which any number is a BIGINT
_DIVISION_SCALE: Final = 4  # div_precision_increment
_ROUND_SCALE_MAX: Final = 30


def _figures(value: Result) -> tuple[str, int, int]:
    """(int, decimal or double; digits; scale) of an operand, as arithmetic takes it."""
    if value.kind in ("int", "year", "bit"):
        return "int", value.digits, 0
    if value.kind == "decimal":
        if value.scale > SCALE_MAX or value.digits > DIGITS_MAX:
            raise Doubt  # a literal, of which the server keeps more than it shows
        return "decimal", value.digits, value.scale
    if value.temporal:
        return ("decimal" if value.scale else "int"), value.digits, value.scale
    if value.kind in ("double", "float") or (value.kind == "string" and not value.binary and not value.listed):
        return "double", 0, 0
    raise Doubt


def _check_moments(left: Result, right: Result) -> None:
    """Of a moment and a number, only a plain whole number is certain."""
    for one, other in ((left, right), (right, left)):
        if one.kind == "timestamp" or (one.temporal and (other.unsigned or other.kind == "decimal")):
            raise Doubt


def arithmetic(operator: str, left: Result, right: Result) -> Result:
    (kind1, digits1, scale1), (kind2, digits2, scale2) = _figures(left), _figures(right)
    kinds = {kind1, kind2}
    if "double" in kinds:
        return double()
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
    (kind1, digits1, scale1), (kind2, digits2, scale2) = _figures(left), _figures(right)
    kinds, unsigned = {kind1, kind2}, left.unsigned and right.unsigned
    _check_moments(left, right)
    if "double" in kinds and operator != "/" and left.unsigned:
        raise Doubt
    if operator == "div":
        if "double" in kinds or digits1 - scale1 > BIGINT_DIGITS:
            raise Doubt
        return integer(digits1 - scale1, unsigned=left.unsigned or right.unsigned)
    if "double" in kinds:
        return double()
    if operator == "/":
        scale = min(scale1 + _DIVISION_SCALE, SCALE_MAX)
        return decimal(digits1 + scale2 + _DIVISION_SCALE, scale, unsigned=unsigned)
    digits, unsigned = max(digits1, digits2), left.unsigned
    if kinds == {"int"}:
        return integer(digits + (not unsigned), unsigned=unsigned)
    return decimal(digits, max(scale1, scale2), unsigned=unsigned)


def negative(tree: Expression, value: Result) -> Result:
    kind, digits, scale = _figures(value)
    if kind == "double":
        return double(nullable=value.nullable)
    if kind == "decimal" and scale:
        return decimal(digits, scale, nullable=value.nullable)
    if not value.written or tree.text == "0" or digits > BIGINT_DIGITS + (not tree.literal):
        raise Doubt
    return integer(value.length + 1, nullable=value.nullable, digits=digits)


def numeric(name: str, tree: Expression, values: list[Result]) -> Result:
    value = values[0]
    if name in ("min", "max"):
        return _most(tree.arguments[0], value)
    kind, digits, scale = _figures(value)
    if (value.kind in ("year", "bit", "timestamp") and name != "sum") or (value.temporal and name == "abs"):
        raise Doubt
    if name == "sum":
        return double() if kind == "double" else decimal(digits + 22, scale)
    if name == "avg":
        scale = min(scale + _DIVISION_SCALE, SCALE_MAX)
        return double() if kind == "double" else decimal(digits + _DIVISION_SCALE, scale)
    if name == "abs" and value.kind == "int":
        return integer(value.length, unsigned=value.unsigned, nullable=value.nullable)
    if name == "abs":
        if kind == "double":
            return double(nullable=value.nullable)
        return decimal(digits, scale, unsigned=value.unsigned, nullable=value.nullable)
    if name in ("round", "truncate"):
        return _rounded(name, tree, value)
    return _ceiling(name, value)


def _fixed(places: int, value: Result) -> Result:
    """A DOUBLE with digits behind the point: what is made of it isn't certain any more."""
    return Result("own", value.nullable, text=f"double({17 + places},{places})")


def _ceiling(name: str, value: Result) -> Result:
    if value.kind == "time":
        return moment("time", nullable=value.nullable)
    if value.kind in ("double", "float") or (value.kind == "string" and not value.weak):
        return _fixed(0, value)
    if value.kind == "int" and value.text:
        return together([value])
    if value.kind != "decimal":
        raise Doubt
    carry = value.scale > 0 and not (name == "floor" and value.unsigned)
    digits = value.digits - value.scale + carry
    if digits <= BIGINT_DIGITS:
        return integer(digits + (not value.unsigned), unsigned=value.unsigned, nullable=value.nullable)
    return decimal(digits, 0, unsigned=value.unsigned, nullable=value.nullable)


def _rounded(name: str, tree: Expression, value: Result) -> Result:
    places = 0
    if len(tree.arguments) > 1:
        given = tree.arguments[1]
        negative = given.name == "neg"
        if (given.arguments[0] if negative else given).literal != "int":
            raise Doubt
        places = 0 if negative else int(given.text)
    if value.kind == "time" and places == 0:
        return moment("time", nullable=value.nullable)
    if value.kind == "int" and value.text and (len(tree.arguments) == 1 or tree.arguments[1].literal):
        return together([value])
    real = value.kind in ("double", "float") or (value.kind == "string" and not value.weak)
    if real and places <= _ROUND_SCALE_MAX:
        return _fixed(places, value)
    if value.kind != "decimal" or places > value.scale:
        raise Doubt
    carry = 1 if name == "round" and places < value.scale else 0
    whole = value.digits - value.scale
    return decimal(max(whole + places + carry, 1), places, unsigned=value.unsigned, nullable=value.nullable)


def spread(value: Result) -> Result:
    """Variance and deviation."""
    if value.kind not in ("int", "decimal"):
        raise Doubt
    scale = min(value.scale + _DIVISION_SCALE, _ROUND_SCALE_MAX)
    return replace(double(), text=f"double({value.digits * 2 + 6},{scale})")


def _most(tree: Expression, value: Result) -> Result:
    """MIN and MAX of a column are of its type; other whole numbers become BIGINT."""
    if tree.name == "neg" and value.kind == "decimal":
        raise Doubt
    if tree.name == "field" or value.kind in ("decimal", "null", "double") or value.temporal or value.boolean:
        return value.may_be_null()
    if value.kind == "int" and not value.unsigned:
        return replace(value, text="", rank=4, nullable=True)
    if value.kind == "bit":
        return Result("int", True, value.length, value.digits, rank=4, unsigned=True)
    if value.kind == "string":
        return replace(value, text="", nullable=True)
    raise Doubt
