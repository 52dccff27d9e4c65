"""A condition's text, read.

In:  a text: comparisons of a column with a literal, IN, BETWEEN, IS NULL, NOT, AND, OR, parentheses.
Out: a Condition. ValueError says what isn't read, and where.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from tidegate.conditions.model import All, Any, Compared, Condition, IsNull, Literal, Not, OneOf

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?![\w.]))|`(?P<quoted>(?:[^`]|``)+)`"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign><>|!=|<=|>=|[=<>(),]))"
)
_SIGNS: Final = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_DEEPEST: Final = 64  # parentheses in each other
_WORDS: Final = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "LIKE", "TRUE", "FALSE"})


@dataclass(frozen=True, slots=True)
class _Token:
    """kind: text, number, column, word (in capitals) or sign; end at the end."""

    kind: str
    value: str
    at: int


@lru_cache(maxsize=256)
def read_condition(text: str) -> Condition:
    """Raises ValueError."""
    reader = _Reader(_tokens(text))
    condition = reader.whole(0)
    reader.take("end")
    return condition


def _tokens(text: str) -> list[_Token]:
    tokens, at = list[_Token](), 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at:].lstrip()
            raise ValueError(f"not understood at character {len(text) - len(rest) + 1}: {rest[:20]!r}")
        kind = str(match.lastgroup)
        value, begins = match[kind], match.start(kind)
        if kind == "text":
            value = value[1:-1].replace("''", "'")
        elif kind == "quoted":
            kind, value = "column", value.replace("``", "`")
        elif kind == "word":
            kind, value = ("word", value.upper()) if value.upper() in _WORDS else ("column", value)
        tokens.append(_Token(kind, value, begins))
        at = match.end()
    return [*tokens, _Token("end", "the end", len(text))]


class _Reader:
    """Recursive descent: OR < AND < NOT < a comparison."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at = tokens, 0

    def has(self, kind: str, value: str = "") -> bool:
        """Whether the next token is this, which is taken then."""
        token = self._tokens[self._at]
        if token.kind != kind or (value and token.value != value):
            return False
        self._at += kind != "end"
        return True

    def take(self, kind: str, value: str = "") -> str:
        token = self._tokens[self._at]
        if not self.has(kind, value):
            raise ValueError(f"{value or _CALLED[kind]} is wanted at character {token.at + 1}, not {token.value!r}")
        return token.value

    def whole(self, depth: int) -> Condition:
        if depth > _DEEPEST:
            raise ValueError("too many parentheses in each other")
        return self._joined("OR", Any, lambda: self._joined("AND", All, lambda: self._part(depth)))

    def _joined(
        self, word: str, make: Callable[[tuple[Condition, ...]], Condition], part: Callable[[], Condition]
    ) -> Condition:
        parts = [part()]
        while self.has("word", word):
            parts.append(part())
        return make(tuple(parts)) if len(parts) > 1 else parts[0]

    def _part(self, depth: int) -> Condition:
        denied = 0
        while self.has("word", "NOT"):
            denied += 1
        if self.has("sign", "("):
            part = self.whole(depth + 1)
            self.take("sign", ")")
        else:
            part = self._comparison(self.take("column"))
        return Not(part) if denied % 2 else part

    def _comparison(self, column: str) -> Condition:
        if self.has("word", "IS"):
            denied = self.has("word", "NOT")
            self.take("word", "NULL")
            return Not(IsNull(column)) if denied else IsNull(column)
        denied = self.has("word", "NOT")
        if self.has("word", "IN"):
            self.take("sign", "(")
            literals = [self._literal()]
            while self.has("sign", ","):
                literals.append(self._literal())
            self.take("sign", ")")
            part: Condition = OneOf(column, tuple(literals))
        elif self.has("word", "BETWEEN"):
            low = Compared(column, ">=", self._literal())
            self.take("word", "AND")
            part = All((low, Compared(column, "<=", self._literal())))
        elif denied:
            raise ValueError(f"IN or BETWEEN is wanted after NOT at character {self._tokens[self._at].at + 1}")
        else:
            token = self._tokens[self._at]
            sign = self.take("sign")
            if sign not in _SIGNS:
                raise ValueError(f"a comparison is wanted at character {token.at + 1}, not {sign!r}")
            part = Compared(column, _SIGNS[sign], self._literal())
        return Not(part) if denied else part

    def _literal(self) -> Literal:
        token = self._tokens[self._at]
        if self.has("text"):
            return token.value
        if self.has("number"):
            return Decimal(token.value)
        raise ValueError(
            f"a text in single quotes or a number is wanted at character {token.at + 1}, not {token.value!r}"
        )


_CALLED: Final = {"end": "the end", "column": "a column", "sign": "a comparison", "word": "a word"}
