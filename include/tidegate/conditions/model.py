"""The values that a condition is made of.

In:  parts.
Out: frozen values with a text (`str`), which reads as the same value again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeAlias

Literal: TypeAlias = str | Decimal


@dataclass(frozen=True, slots=True)
class Compared:
    """sign: =, <>, <, <=, > or >=."""

    column: str
    sign: str
    literal: Literal

    def __str__(self) -> str:
        return f"{_name(self.column)} {self.sign} {_literal(self.literal)}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """column IN (...)."""

    column: str
    literals: tuple[Literal, ...]

    def __str__(self) -> str:
        return f"{_name(self.column)} IN ({', '.join(map(_literal, self.literals))})"


@dataclass(frozen=True, slots=True)
class IsNull:
    column: str

    def __str__(self) -> str:
        return f"{_name(self.column)} IS NULL"


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition

    def __str__(self) -> str:
        return f"NOT ({self.part})"


@dataclass(frozen=True, slots=True)
class All:
    """Joined by AND."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({part})" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Any:
    """Joined by OR."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " OR ".join(f"({part})" for part in self.parts)


Leaf: TypeAlias = Compared | OneOf | IsNull
Condition: TypeAlias = Leaf | Not | All | Any


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Its comparisons, from left to right."""
    match condition:
        case Not():
            yield from leaves(condition.part)
        case All() | Any():
            for part in condition.parts:
                yield from leaves(part)
        case _:
            yield condition


def renamed(condition: Condition, names: Mapping[str, str]) -> Condition:
    """The same of columns with other names. names: by a column's name in lower case."""
    match condition:
        case Not():
            return Not(renamed(condition.part, names))
        case All() | Any():
            return replace(condition, parts=tuple(renamed(part, names) for part in condition.parts))
        case _:
            return replace(condition, column=names.get(condition.column.lower(), condition.column))


def literals_of(leaf: Leaf) -> tuple[Literal, ...]:
    match leaf:
        case Compared():
            return (leaf.literal,)
        case OneOf():
            return leaf.literals
        case IsNull():
            return ()


def _name(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _literal(literal: Literal) -> str:
    return "'" + literal.replace("'", "''") + "'" if isinstance(literal, str) else f"{literal:f}"
