"""Operators of expressions: numbers, comparisons, conditions, as TiDB computes them.

In:  SQL values.
Out: an SQL value, NULL where SQL says so. ValueError for what has no such meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from tidegate.tidb.values.sql_value import Dated, JsonText, Sql, TimeSpan, dated, number

_DIVISION_DIGITS: Final = 4  # div_precision_increment


def numeric(value: Sql) -> int | Decimal | float:
    """Texts count as DOUBLE."""
    if isinstance(value, int | Decimal | float):
        return value
    if isinstance(value, JsonText | str | bytes):
        return float(number(value))
    decimal = number(value)
    return int(decimal) if decimal == decimal.to_integral_value() else decimal


def arithmetic(operator: Callable[[Any, Any], Any]) -> Callable[[Sql, Sql], Sql]:
    def compute(left: Sql, right: Sql) -> Sql:
        first, other = numeric(left), numeric(right)
        if isinstance(first, float) or isinstance(other, float):
            return float(operator(float(first), float(other)))
        outcome = operator(first, other)
        return outcome if isinstance(outcome, int) else Decimal(outcome)

    return compute


def divide(left: Sql, right: Sql) -> Sql:
    dividend, other = numeric(left), numeric(right)
    if not other:
        return None
    if isinstance(dividend, float) or isinstance(other, float):
        return float(dividend) / float(other)
    exponent = Decimal(dividend).as_tuple().exponent
    assert isinstance(exponent, int)
    return (Decimal(dividend) / Decimal(other)).quantize(Decimal(1).scaleb(exponent - _DIVISION_DIGITS), ROUND_HALF_UP)


def integer_divide(left: Sql, right: Sql) -> Sql:
    dividend, other = number(left), number(right)
    return int(dividend / other) if other else None


def modulo(left: Sql, right: Sql) -> Sql:
    dividend, other = numeric(left), numeric(right)
    if not other:
        return None
    if isinstance(dividend, float) or isinstance(other, float):
        return float(number(dividend) % number(other))
    remainder = Decimal(dividend) % Decimal(other)  # Decimal's sign is the dividend's, as SQL's
    return int(remainder) if isinstance(dividend, int) and isinstance(other, int) else remainder


def compare(left: Sql, right: Sql) -> int:
    """-1, 0 or 1. Texts by their code points: a collation that orders them otherwise isn't known here."""
    if isinstance(left, str | bytes) and isinstance(right, str | bytes):
        first, other = (v.encode() if isinstance(v, str) else v for v in (left, right))
    elif isinstance(left, Dated) or isinstance(right, Dated):
        first, other = dated(left).at, dated(right).at  # type: ignore[assignment]
    elif isinstance(left, TimeSpan) and isinstance(right, TimeSpan):
        first, other = left.nanoseconds, right.nanoseconds  # type: ignore[assignment]
    else:
        first, other = numeric(left), numeric(right)  # type: ignore[assignment]
    return (first > other) - (first < other)


def comparison(test: Callable[[int], bool]) -> Callable[[Sql, Sql], int]:
    return lambda left, right: int(test(compare(left, right)))


def same(left: Sql, right: Sql) -> int:
    if left is None or right is None:
        return int(left is right)
    return int(compare(left, right) == 0)


def truth(value: Sql) -> bool | None:
    return None if value is None else bool(numeric(value))


def and_(left: Sql, right: Sql) -> int | None:
    sides = (truth(left), truth(right))
    return 0 if False in sides else None if None in sides else 1


def or_(left: Sql, right: Sql) -> int | None:
    sides = (truth(left), truth(right))
    return 1 if True in sides else None if None in sides else 0


def is_(left: Sql, right: Sql) -> int:
    return int(left is None) if right is None else int(truth(left) == truth(right))
