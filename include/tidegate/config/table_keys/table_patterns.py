"""Patterns `database.table` of the pipeline file, and the names that online schema changes give their tables.

In:  a pattern, each half a regular expression that must match the whole name, or `*`; a table's name.
Out: whether it matches; which tables one with such a name is made to replace. Pure.

A pipeline file may name thousands of tables, and every table of every segment is looked up. Therefore a pattern is
compiled once, plain names are in a set, and each answer is kept.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Final

# Of re.compile: a count beyond all bounds, or parentheses without end, is no re.error.
NOT_COMPILED: Final = (re.error, OverflowError, RecursionError)
# What servers keep for themselves.
OWN_DATABASES: Final = frozenset({"mysql", "information_schema", "performance_schema", "sys", "ndbinfo"})
_SHADOW: Final = re.compile(r"_(?P<more>_*)(?P<of>[^_].*)_(gho|new)", re.DOTALL)
# A pattern's pieces, as far as the dot between its halves is concerned: escaped, a set, or one character.
_PIECE: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
# A dot that is repeated is of its half: no half begins with a quantifier, but for the table's `*` alone.
_QUANTIFIED: Final = re.compile(r"\.(?!\*\Z)(?:[*+?]|\{\d)")
_LITERAL: Final = re.compile(r"\w+")
# What stands for a group of a pattern in the name that is made from it; a backslash is of nothing else.
_FILLED: Final = re.compile(r"\\(?:(?P<number>[1-9]\d?)|g<(?P<name>\w+)>)?")
_ANSWERS_MAX: Final = 1 << 14
# A name may have a new line in it, too.
ANY_CHARACTER: Final = re.DOTALL


@cache
def compile_pattern(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """`database.table` -> one regular expression per half. Raises ValueError (pydantic shows it)."""
    database, table = _halves(pattern)
    try:
        first, second = (re.compile(".*" if half == "*" else half, ANY_CHARACTER) for half in (database, table))
    except NOT_COMPILED as error:
        raise ValueError(f"pattern {pattern!r} is not a regular expression: {error}") from error
    return first, second


def _halves(pattern: str) -> tuple[str, str]:
    depth = 0
    for piece in _PIECE.finditer(pattern):
        depth += (piece[0] == "(") - (piece[0] == ")")
        quantified = _QUANTIFIED.match(pattern, piece.start()) is not None
        if piece[0] == "." and not depth and not quantified and piece.start() > 0 and piece.end() < len(pattern):
            return pattern[: piece.start()], pattern[piece.end() :]
    raise ValueError(f"pattern {pattern!r} must be database.table (all of a database: '{pattern}.*')")


def as_read(pattern: str) -> str:
    """A sentence about how a pattern is read: people often expect another dot to divide it."""
    database, table = _halves(pattern)
    return f"{pattern} is read as database `{database}`, table `{table}`"


def check_template(template: str, pattern: str) -> None:
    """Refuse what `filled` couldn't fill: ValueError (pydantic shows it)."""
    halves = compile_pattern(pattern)
    count, names = sum(half.groups for half in halves), [name for half in halves for name in half.groupindex]
    for use in _FILLED.finditer(template):
        if use["number"] is None and use["name"] is None:
            raise ValueError(f"{template!r}: a backslash names a group of match, as \\1 or \\g<name>")
        if use["name"] is not None and names.count(use["name"]) != 1:
            raise ValueError(f"{template!r}: {use[0]} must name one group of match {pattern!r}")
        if use["number"] is not None and int(use["number"]) > count:
            raise ValueError(f"{template!r}: {use[0]} is no group of match {pattern!r}, which has {count}")


@lru_cache(maxsize=_ANSWERS_MAX)
def filled(template: str, pattern: str, database: str, table: str) -> tuple[str, str] | None:
    r"""(database, table) that a pattern's groups make of a template `database.table`; None if it isn't of this table.

    Groups are counted over both halves, as \1, or named, as \g<name>; one that took no part is empty. A half with
    nothing in it is no name: None.
    """
    halves = [half.fullmatch(name) for half, name in zip(compile_pattern(pattern), (database, table), strict=True)]
    if halves[0] is None or halves[1] is None:
        return None
    values = [*halves[0].groups(""), *halves[1].groups("")]
    names = halves[0].groupdict("") | halves[1].groupdict("")

    def value(use: re.Match[str]) -> str:
        return names[use["name"]] if use["name"] is not None else values[int(use["number"]) - 1]

    to_database, to_table = (_FILLED.sub(value, half) for half in template.split(".", 1))
    return (to_database, to_table) if to_database and to_table else None


def may_fill(template: str, name: str) -> bool:
    """Whether some groups make this name `database.table` of a template."""
    pieces, at = [], 0
    for use in _FILLED.finditer(template):
        pieces.append(re.escape(template[at : use.start()]))
        at = use.end()
    return re.fullmatch(".*".join([*pieces, re.escape(template[at:])]), name, re.DOTALL) is not None


class Patterns:
    """Several patterns, each with its place among them. Plain names are looked up, however many there are."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._literal: dict[tuple[str, str], list[int]] = {}
        self._others: dict[re.Pattern[str], list[tuple[int, re.Pattern[str]]]] = {}
        for place, pattern in enumerate(patterns):
            database, table = compile_pattern(pattern)
            if _LITERAL.fullmatch(database.pattern) and _LITERAL.fullmatch(table.pattern):
                self._literal.setdefault((database.pattern, table.pattern), []).append(place)
            else:
                self._others.setdefault(database, []).append((place, table))
        self._answers: dict[tuple[str, str], bool] = {}

    def match(self, name: tuple[str, str]) -> bool:
        """Whether one of them is of this (database, table)."""
        answer = self._answers.get(name)
        if answer is None:
            if len(self._answers) >= _ANSWERS_MAX:
                self._answers.clear()
            answer = self._answers[name] = name in self._literal or any(self._searched(name))
        return answer

    def places(self, name: tuple[str, str]) -> list[int]:
        """The places of all that are of this (database, table), in their order."""
        searched = (place for place, _ in self._searched(name))
        return sorted([*self._literal.get(name, ()), *searched])

    def _searched(self, name: tuple[str, str]) -> Iterator[tuple[int, re.Pattern[str]]]:
        for database, tables in self._others.items():
            if database.fullmatch(name[0]):
                yield from (entry for entry in tables if entry[1].fullmatch(name[1]))


@lru_cache(maxsize=1024)
def compiled(patterns: tuple[str, ...]) -> Patterns:
    """The same Patterns for the same patterns: what it has learnt stays."""
    return Patterns(patterns)


def matches(patterns: Iterable[str], database: str, table: str) -> bool:
    """Whether one of the patterns is of this table."""
    return compiled(tuple(patterns)).match((database, table))


def matching_places(patterns: Iterable[str], database: str, table: str) -> list[int]:
    """The places of the patterns matching this table, in their order."""
    return compiled(tuple(patterns)).places((database, table))


class TableNames:
    """Names of tables, asked by patterns."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._tables: dict[str, set[str]] = defaultdict(set)
        for database, table in names:
            self._tables[database].add(table)

    def any_of(self, pattern: str) -> bool:
        """Whether a pattern is of one of them."""
        databases, tables = compile_pattern(pattern)
        return any(self._has(database, tables) for database in self._named(databases))

    def _named(self, half: re.Pattern[str]) -> Iterable[str]:
        if _LITERAL.fullmatch(half.pattern):
            return [half.pattern] if half.pattern in self._tables else []
        return filter(half.fullmatch, self._tables)

    def _has(self, database: str, half: re.Pattern[str]) -> bool:
        if _LITERAL.fullmatch(half.pattern):
            return half.pattern in self._tables[database]
        return any(map(half.fullmatch, self._tables[database]))


def matches_database(pattern: str, database: str, *, whole: bool = False) -> bool:
    """Whether a pattern is of tables of this database. whole: of all of them."""
    half, tables = compile_pattern(pattern)
    return bool(half.fullmatch(database)) and (not whole or tables.pattern == ".*")


def shadowed(table: str) -> list[str]:
    """The names that a table may be meant to take over; [] for a name of no online schema change.

    gh-ost's _t_gho, pt-online-schema-change's _t_new (with more underscores when that name is taken).
    """
    name = _SHADOW.fullmatch(table)
    if name is None:
        return []
    most = len(name["more"])
    fewest = 0 if table.endswith("_new") else most
    return ["_" * count + name["of"] for count in range(fewest, most + 1)]
