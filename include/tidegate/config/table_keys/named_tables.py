"""Tables that a person names on a command line or in a DAG's form: by name, or by pattern as in `tables.include`.

In:  the given text; the names `database.table` that it may be.
Out: those of them that are meant. Pure.

The name of a table means that table, whatever characters it has. Any other text is a pattern if it has a character that
only patterns have. A dot alone doesn't make a pattern: so a mistyped name is an error, and never matches another table.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Final

from tidegate.config.table_keys.table_patterns import OWN_DATABASES, compile_pattern
from tidegate.errors import UsageError

_OF_PATTERNS: Final = re.compile(r"[*+?|\\\[\](){}]")


def named_tables(
    given: Collection[str], known: Collection[str], *, where: str, lacks: str, remedy: str = ""
) -> frozenset[str]:
    """The given tables among `known`.

    lacks: the words for an unknown one, "{}" standing for it. remedy: said after a near name. Raises UsageError
    for the first one without a name or a match, and for an invalid pattern.
    """
    names, matches = frozenset(known), set[str]()
    for name in sorted(given):
        matched = {name} if name in names else _matched(name, names, where)
        if not matched:
            close = difflib.get_close_matches(name, sorted(names), n=1)
            near = f"did you mean {close[0]}? " if close else ""
            raise UsageError(lacks.format(name), where=where, remedy=(near + remedy).strip())
        matches |= matched
    return frozenset(matches)


def near_table(given: str, known: Collection[tuple[str, str]]) -> list[str]:
    """The name or pattern, of known (database, table), that one without a match may have meant; [] if none is near."""
    database, _, table = given.partition(".")
    databases = sorted({name for name, _ in known} - OWN_DATABASES)
    for near in difflib.get_close_matches(database, databases, n=1):
        if table == "*":
            return [f"{near}.*"]
        names = sorted(name for of, name in known if of == near)
        return [f"{near}.{name}" for name in difflib.get_close_matches(table, names, n=1)]
    return []


def _matched(given: str, names: Collection[str], where: str) -> set[str]:
    if not _OF_PATTERNS.search(given):
        return set()
    try:
        database, table = compile_pattern(given)
    except ValueError as error:
        raise UsageError(str(error), where=where, remedy="see Patterns in docs/tables.md") from error
    return {
        name
        for name in names
        for dot in re.finditer(r"\.", name)  # a server's name may have dots of its own
        if database.fullmatch(name[: dot.start()]) and table.fullmatch(name[dot.end() :])
    }
