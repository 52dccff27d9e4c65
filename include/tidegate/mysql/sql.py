"""SQL text that names things: identifiers are quoted here, values are always bound, or literals that a module made.

In:  names as the server spells them; a place in a key as literals, one for each of its columns.
Out: SQL fragments.
"""

from __future__ import annotations


def quote_name(*parts: str) -> str:
    """`a`.`b` with backticks doubled (MySQL manual, "Schema Object Names")."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def key_order(key: tuple[str, ...]) -> str:
    """ORDER BY's list. key: names of the key's columns."""
    return ", ".join(quote_name(name) for name in key)


def above(key: tuple[str, ...], bound: tuple[str, ...]) -> str:
    """A condition: keys above the bound, which may have the first columns alone.

    Written out, since servers don't use an index for a comparison of rows.
    """
    return _beyond(key, bound, ">", ">")


def upto(key: tuple[str, ...], bound: tuple[str, ...]) -> str:
    """A condition: keys up to and including the bound."""
    return _beyond(key, bound, "<", "<=")


def _beyond(key: tuple[str, ...], bound: tuple[str, ...], strict: str, last: str) -> str:
    """As a > 1 OR (a = 1 AND b > 2), with a >= 1 in front, by which a server finds the index's range."""
    names = [quote_name(name) for name in key[: len(bound)]]
    said = f"{names[-1]} {last} {bound[-1]}"
    for name, value in zip(names[-2::-1], bound[-2::-1], strict=True):
        said = f"{name} {strict}= {value} AND ({name} {strict} {value} OR ({said}))"
    return said
