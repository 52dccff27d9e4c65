"""SQL text with names: identifiers are quoted here, values are always bound, or literals made by a module.

In:  names as the server spells them; a place in a key as literals, one for each of its columns.
Out: SQL fragments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Character sets: those whose strings of ASCII are other bytes than in UTF-8, and those that are UTF-8.
_OTHER_BYTES: Final = frozenset({"ucs2", "utf16", "utf16le", "utf32", "swe7"})
UNICODE: Final = frozenset({"utf8mb4", "utf8mb3", "utf8"})


def double_literal(value: float) -> str:
    """The fewest digits that give this number again. They have an exponent; without one, SQL reads a DECIMAL."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def text_literal(utf8: bytes, charset: str) -> str:
    """A text as a hex literal with an introducer, `_utf8mb4 x'...'`. The introducer names the column's
    charset where the text has the same bytes in it: the server then converts nothing, and may use an index.
    """
    same = utf8.isascii() and charset not in _OTHER_BYTES
    own = same or (charset in UNICODE and max(utf8, default=0) < 0xF0)
    return f"_{charset if own else 'utf8mb4'} x'{utf8.hex()}'"


def quote_name(*parts: str) -> str:
    """`a`.`b` with backticks doubled (MySQL manual, "Schema Object Names")."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def key_order(key: tuple[str, ...]) -> str:
    """ORDER BY's list. key: names of the key's columns."""
    return ", ".join(quote_name(name) for name in key)


def above(key: Sequence[str | ByNumber], bound: tuple[str, ...]) -> str:
    """A condition: keys above the bound. The bound may have values for the key's first columns alone.

    It isn't `(a, b) > (1, 2)`, since servers use no index for a comparison of rows.
    """
    return _beyond(key, bound, ">", ">")


def upto(key: Sequence[str | ByNumber], bound: tuple[str, ...]) -> str:
    """A condition: keys up to and including the bound."""
    return _beyond(key, bound, "<", "<=")


@dataclass(frozen=True, slots=True)
class ByNumber:
    """A key column of type ENUM. Its values are ordered by their numbers, 0 to `last`. An index finds a
    single number, but not a range of numbers.
    """

    name: str
    last: int

    def compared(self, sign: str, number: int) -> str:
        """The range as a list of its numbers, which an index can find."""
        first = number + (sign == ">") if sign[0] == ">" else 0
        last = self.last if sign[0] == ">" else number - (sign == "<")
        return f"{quote_name(self.name)} IN ({', '.join(map(str, range(first, last + 1)))})" if first <= last else "0"


def compared(column: str | ByNumber, sign: str, literal: str) -> str:
    """A condition on one column of a key. sign: <, <=, =, >= or >."""
    if isinstance(column, ByNumber) and sign != "=":
        return column.compared(sign, int(literal))
    return f"{quote_name(column if isinstance(column, str) else column.name)} {sign} {literal}"


def _beyond(key: Sequence[str | ByNumber], bound: tuple[str, ...], strict: str, last: str) -> str:
    """Such as a >= 1 AND (a > 1 OR (a = 1 AND b > 2)). The a >= 1 outside of the OR shows the server where
    the index's range begins. The a = 1 before b > 2 lets it begin there, not at the first row with a = 1.
    """
    said = compared(key[len(bound) - 1], last, bound[-1])
    for column, value in reversed(list(zip(key, bound[:-1], strict=False))):
        beside, beyond = compared(column, f"{strict}=", value), compared(column, strict, value)
        said = f"{beside} AND ({beyond} OR ({compared(column, '=', value)} AND {said}))"
    return said


def if_dated(date: str, value: str) -> str:
    """SQL: `value` where `date` is a date of the calendar (not 2024-02-30), else NULL."""
    return f"IF(FROM_DAYS(TO_DAYS({date})) = CAST({date} AS DATE), {value}, NULL)"
