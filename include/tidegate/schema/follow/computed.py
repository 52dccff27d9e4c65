"""Whether a generated column is computed as before.

In:  a column before and after a statement; the columns it renamed.
Out: True if the expression is the same, however it is written; whether it reads a column's default;
     on which columns it depends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tidegate.errors import DDLError
from tidegate.schema.ddl.expressions import read_expression, same_expression
from tidegate.schema.model.columns import Column, Generated, TableVersion

_LITERALS: Final = frozenset({"null", "true", "false", "unknown"})  # the reader of expressions takes them for columns
_DEFAULT: Final = re.compile(r"\bdefault\s*\(", re.IGNORECASE)


def renamed_between(shared: Iterable[tuple[Column, Column]]) -> dict[str, str]:
    """Columns of both versions whose name differs: the old name in lower case -> the new name."""
    return {was.name.lower(): now.name for was, now in shared if was.name != now.name}


def computes_the_same(was: Column, now: Column, names: Mapping[str, str]) -> bool:
    """names: from renamed_between()."""
    same_way = was.generated is now.generated
    return same_way and same_expression(was.generation_expression, now.generation_expression, names)


def reads_default(expression: str) -> bool:
    """Whether a spelled expression may contain DEFAULT(column). A column with this name has
    backticks.
    """
    return _DEFAULT.search(expression) is not None


def computed_beside_key(version: TableVersion) -> tuple[Column, ...]:
    """Generated columns outside of the key, in the table's order."""
    return tuple(c for c in version.columns if c.generated is not Generated.NO and c.id not in version.key)


def hangs_on(version: TableVersion, computed: Iterable[Column]) -> tuple[Column, ...]:
    """The stored columns on which generated ones depend, in the table's order. All of them, if an
    expression can't be read.
    """
    return tuple(column for column in reached(version, computed) if column.generated is Generated.NO)


def reached(version: TableVersion, computed: Iterable[Column]) -> tuple[Column, ...]:
    """Generated columns, and all columns on which they depend, in the table's order. Every column,
    if an expression can't be read.
    """
    by_name = {column.name.lower(): column for column in version.columns}
    waiting, read = [*computed], set[str]()
    while waiting:
        column = waiting.pop()
        if column.name.lower() in read:
            continue
        read.add(column.name.lower())
        if column.generated is Generated.NO:
            continue
        try:
            names = _columns_of(read_expression(column.generation_expression))
        except DDLError:
            return version.columns
        if not names - _LITERALS <= by_name.keys():
            return version.columns
        waiting += [by_name[name] for name in names & by_name.keys()]
    return tuple(column for column in version.columns if column.name.lower() in read)


def _columns_of(tree: Any) -> set[str]:
    if not isinstance(tree, (tuple, list)):
        return set()
    if len(tree) == 2 and tree[0] == "column" and isinstance(tree[1], str):
        return {tree[1]}
    return set().union(*map(_columns_of, tree))
