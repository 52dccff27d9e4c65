"""Whether a generated column is computed as before.

In:  a column before and after a statement, the columns that were renamed by it.
Out: True where the expression is the same, however it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.schema.ddl.expressions import same_expression
from tidegate.schema.model.columns import Column


def renamed_between(shared: Iterable[tuple[Column, Column]]) -> dict[str, str]:
    """Of columns that are in both versions: the old name in small letters -> the new name, where they differ."""
    return {was.name.lower(): now.name for was, now in shared if was.name != now.name}


def computes_the_same(was: Column, now: Column, names: Mapping[str, str]) -> bool:
    """names: as renamed_between() gives them."""
    same_way = was.generated is now.generated
    return same_way and same_expression(was.generation_expression, now.generation_expression, names)
