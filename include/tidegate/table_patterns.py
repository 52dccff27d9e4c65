"""Patterns `database.table` of the pipeline file, and the names that online schema changes give their tables.

In:  a pattern, each half a regular expression that must match the whole name, or `*`; a table's name.
Out: whether it matches; which tables one with such a name is made to replace. Pure.
"""

from __future__ import annotations

import re
from typing import Final

# What servers keep for themselves.
OWN_DATABASES: Final = frozenset({"mysql", "information_schema", "performance_schema", "sys", "ndbinfo"})
_SHADOW: Final = re.compile(r"_(?P<more>_*)(?P<of>[^_].*)_(gho|new)")


def compile_pattern(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """`database.table` -> one regular expression per half. Raises ValueError (pydantic shows it)."""
    database, dot, table = pattern.partition(".")
    if not dot or not database or not table:
        raise ValueError(f"pattern {pattern!r} must be database.table")
    try:
        return re.compile(".*" if database == "*" else database), re.compile(".*" if table == "*" else table)
    except re.error as error:
        raise ValueError(f"pattern {pattern!r} is not a regular expression: {error}") from error


def matches(pattern: str, name: tuple[str, str]) -> bool:
    """Whether a pattern is of this (database, table)."""
    database, table = compile_pattern(pattern)  # re caches compiled patterns
    return bool(database.fullmatch(name[0]) and table.fullmatch(name[1]))


def matches_database(pattern: str, database: str, *, whole: bool = False) -> bool:
    """Whether a pattern is of tables of this database. whole: of all of them."""
    half, tables = compile_pattern(pattern)
    return bool(half.fullmatch(database)) and (not whole or tables.pattern == ".*")


def shadowed(table: str) -> list[str]:
    """The names that a table may be meant to take over; [] for a name that no online schema change gives.

    gh-ost's _t_gho, pt-online-schema-change's _t_new (with more underscores when that name is taken).
    """
    name = _SHADOW.fullmatch(table)
    if name is None:
        return []
    most = len(name["more"])
    fewest = 0 if table.endswith("_new") else most
    return ["_" * count + name["of"] for count in range(fewest, most + 1)]
