"""The order of a text column's characters. The server is asked for it, since only it knows its
collations.

In:  a column of text, its lowest and highest value; a way to ask the server.
Out: a Scale between the two.

The question has some hundred characters: printable ASCII, the characters of the two values with
their neighbours, and some between. They are written in UTF-32, where each has the same number of
digits, whatever the column's character set is.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Final

from tidegate.schema.model.columns import Column
from tidegate.snapshot.chunks.scales import Alphabet, Scale, scale_of_text

_DIGITS: Final = 8  # of a character in UTF-32
_ASCII: Final = range(0x20, 0x7F)
_NEIGHBOURS: Final = 48  # of the first characters that differ, to either side
_BESIDE: Final = 4  # of those after them
_BETWEEN: Final = 96  # characters, evenly spread
_ENDS_MAX: Final = 24  # characters of each of the two values


class Alphabets:
    """The alphabets of the columns of one table's key."""

    def __init__(self, ask: Callable[[str], Sequence[Sequence[Any]]]) -> None:
        self._ask = ask

    def scale(self, column: Column, low: str, high: str) -> Scale | None:
        """The scale between low and high (SQL literals); None if the server has no character
        between them.
        """
        ends = [self._characters(end) for end in (low, high)]
        count = next((n for n, (a, b) in enumerate(zip(*ends, strict=False)) if a != b), min(map(len, ends)))
        shared = "".join(ends[0][:count])
        rest = [end[count : count + _ENDS_MAX] for end in ends]
        alphabet = self._alphabet(column, rest)
        return scale_of_text(f"_{column.charset}", rest[0], rest[1], self._bytes(column, shared), alphabet)

    def _characters(self, literal: str) -> list[str]:
        """In UTF-32's digits."""
        text = self._one(f"HEX(CONVERT({literal} USING utf32))")
        return [text[n : n + _DIGITS] for n in range(0, len(text), _DIGITS)]

    def _bytes(self, column: Column, digits: str) -> bytes:
        return bytes.fromhex(self._one(f"HEX(CONVERT(_utf32 x'{digits}' USING {column.charset}))"))

    def _one(self, expression: str) -> str:
        return str(self._ask(f"SELECT {expression}")[0][0])

    def _alphabet(self, column: Column, ends: Sequence[Sequence[str]]) -> Alphabet:
        listed = " UNION ALL ".join(f"SELECT _utf32 x'{digits}' AS c" for digits in sorted(_chosen(ends)))
        here = f"CONVERT(c USING {column.charset})"
        order = f"{here} COLLATE {column.collation}" if column.collation else here
        shown = f"HEX(c), HEX({here}), HEX(CONVERT({here} USING utf32))"  # what it hasn't comes back as another one
        rows = self._ask(f"SELECT {shown} FROM ({listed}) AS listed ORDER BY {order}")
        known = [(str(digits), bytes.fromhex(str(own))) for digits, own, back in rows if digits == back]
        return Alphabet({digits: n for n, (digits, _) in enumerate(known)}, [own for _, own in known])


def _chosen(ends: Sequence[Sequence[str]]) -> set[str]:
    """Characters to be asked for, those of the two ends among them."""
    ends_have = {int(digits, 16) for end in ends for digits in end}
    first = [int(end[0], 16) for end in ends if end]
    low, high = min(first, default=0), max(first, default=0)
    near = {n for begins in first for n in range(begins - _NEIGHBOURS, begins + _NEIGHBOURS)}
    near |= {n for point in ends_have for n in range(point - _BESIDE, point + _BESIDE)}
    between = set(range(low, high + 1, max(1, (high - low) // _BETWEEN)))
    usual = {n for n in {*_ASCII, *near, *between} if 0 < n <= sys.maxunicode}
    return {f"{n:08X}" for n in ends_have | {n for n in usual if unicodedata.category(chr(n))[0] in "LNPSZ"}}
