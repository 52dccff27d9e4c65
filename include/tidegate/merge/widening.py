"""The type of a column whose type differs between shards: the wider one, if it holds all values of the other.

In:  two Spark SQL types, as silver has them.
Out: the one that holds the values of both, each as it is; None when neither does.

A shard's column becomes wider minutes before the next one's (INT to BIGINT, DECIMAL with more digits): silver takes the
wider type with the first, and what the others still write fits it.
"""

from __future__ import annotations

import re
from typing import Final

_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_DIGITS: Final = dict(zip(_INTEGERS, (3, 5, 10, 19), strict=True))
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def wider(left: str, other: str) -> str | None:
    """Either of the two."""
    if left == other or _fits(other, left):
        return left
    return other if _fits(left, other) else None


def _fits(narrow: str, wide: str) -> bool:
    """Digits before the point are enough, and after it there are as many: 1.50 and 1.5000 don't read the same."""
    if wide in _INTEGERS:
        return narrow in _INTEGERS and _DIGITS[narrow] <= _DIGITS[wide]
    before, behind = _digits(narrow), _digits(wide)
    return before is not None and behind is not None and before[0] <= behind[0] and before[1] == behind[1]


def _digits(kind: str) -> tuple[int, int] | None:
    """Before and after the point."""
    if kind in _INTEGERS:
        return _DIGITS[kind], 0
    match = _DECIMAL.fullmatch(kind)
    return (int(match[1]) - int(match[2]), int(match[2])) if match else None
