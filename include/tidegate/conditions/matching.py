"""The rows of which a condition is true.

In:  a Condition; rows of Arrow, with the columns that it names (case doesn't matter) in types that merge/conditioned.py
     allows.
Out: a boolean per row, true only where the condition is true: not where it is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any as AnyValue
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.conditions.model import (
    All,
    Any,
    Compared,
    Condition,
    IsNull,
    Leaf,
    Literal,
    Not,
    OneOf,
    literals_of,
)
from tidegate.limits import DECIMAL_DIGITS_MAX

_DIGITS_MAX: Final = 2 * DECIMAL_DIGITS_MAX  # of decimal256
_OTHERS: Final = (pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT: Final = re.compile(_DATE.pattern + r"(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?")
_SIGNS: Final[Mapping[str, Callable[[AnyValue, AnyValue], AnyValue]]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def matching(condition: Condition, rows: pa.RecordBatch) -> pa.BooleanArray:
    """Raises KeyError for a column that the rows lack, ValueError for a literal that isn't of its column's type."""
    columns = {name.lower(): rows.column(at) for at, name in enumerate(rows.schema.names)}
    return pc.fill_null(_truth(condition, columns), fill_value=False)


def _truth(condition: Condition, columns: Mapping[str, pa.Array]) -> pa.BooleanArray:
    """NULL where it is unknown, by Kleene's logic."""
    match condition:
        case Compared():
            values = _comparable(columns[condition.column.lower()], [condition.literal])
            return _SIGNS[condition.sign](values, typed(condition.literal, values.type))
        case OneOf():
            values = _comparable(columns[condition.column.lower()], condition.literals)
            wanted = pa.array([typed(literal, values.type).as_py() for literal in condition.literals], values.type)
            return pc.if_else(pc.is_valid(values), pc.is_in(values, value_set=wanted), pa.scalar(None, pa.bool_()))
        case IsNull():
            return pc.is_null(columns[condition.column.lower()])
        case Not():
            return pc.invert(_truth(condition.part, columns))
        case All():
            return reduce(pc.and_kleene, [_truth(part, columns) for part in condition.parts])
        case Any():
            return reduce(pc.or_kleene, [_truth(part, columns) for part in condition.parts])


def _comparable(values: pa.Array, literals: list[Literal] | tuple[Literal, ...]) -> pa.Array:
    """Numbers in a type with room for the column's digits and the literals'; others as they are."""
    kind = values.type
    return values.cast(number_type(kind, literals)) if _is_number(kind) else values


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def number_type(kind: pa.DataType, literals: list[Literal] | tuple[Literal, ...]) -> pa.DataType:
    """A type that has all values of a numeric type, and these numbers. Raises ValueError where there is none."""
    if pa.types.is_integer(kind) and all(map(_is_int64, literals)):
        return pa.int64()
    whole, fraction = (kind.precision - kind.scale, kind.scale) if pa.types.is_decimal(kind) else (20, 0)
    for literal in literals:
        if isinstance(literal, Decimal):
            _, digits, exponent = literal.as_tuple()
            behind = max(0, -int(exponent))
            fraction, whole = max(fraction, behind), max(whole, len(digits) + int(exponent))
    if whole + fraction > _DIGITS_MAX:
        raise ValueError("a number of it has too many digits")
    digits_in_all = whole + fraction
    return (pa.decimal128 if digits_in_all <= DECIMAL_DIGITS_MAX else pa.decimal256)(digits_in_all, fraction)


def _is_int64(literal: Literal) -> bool:
    return isinstance(literal, Decimal) and literal == literal.to_integral_value() and -(2**63) <= literal < 2**63


def check_literals(leaf: Leaf, kind: pa.DataType) -> None:
    """Raise ValueError where a column's type can't be compared with a leaf's literals."""
    literals = literals_of(leaf)
    if literals and not (_is_number(kind) or any(is_kind(kind) for is_kind in _OTHERS)):
        raise ValueError(f"columns of type {kind} aren't compared")
    if literals:
        compared_as = number_type(kind, literals) if _is_number(kind) else kind
        for literal in literals:
            typed(literal, compared_as)


def typed(literal: Literal, kind: pa.DataType) -> pa.Scalar:
    """A literal as a value of a comparable type. Raises ValueError where it is none."""
    if _is_number(kind):
        if not isinstance(literal, Decimal):
            raise ValueError(f"'{literal}' is a text, and the column has numbers")
        return pa.scalar(int(literal) if pa.types.is_integer(kind) else literal, kind)
    if not isinstance(literal, str):
        raise ValueError(f"{literal:f} is a number, and the column has none: write '{literal:f}'")  # noqa: TRY004
    if pa.types.is_date(kind):
        if not _DATE.fullmatch(literal):
            raise ValueError(f"'{literal}' is no date: YYYY-MM-DD")
        return pa.scalar(date.fromisoformat(literal), kind)
    if pa.types.is_timestamp(kind):
        if not _MOMENT.fullmatch(literal):
            raise ValueError(f"'{literal}' is no moment: YYYY-MM-DD HH:MM:SS.ffffff, or its first parts, in UTC")
        moment = datetime.fromisoformat(literal)
        return pa.scalar(moment.replace(tzinfo=UTC) if kind.tz else moment, kind)
    return pa.scalar(literal, kind)
