"""Whether silver can follow a condition for the rows of a table (tables.rows).

In:  the condition of a logical table, a version of one of its physical tables.
Out: SchemaMismatch if rows can't be tested by the condition, or can't be followed.
"""

from __future__ import annotations

from typing import Final

from tidegate.conditions.matching import check_literals
from tidegate.conditions.model import Condition, Leaf, leaves, literals_of
from tidegate.errors import SchemaMismatch
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical

SECTION: Final = "tables.rows"


# Not among them: types that silver has as text and the server doesn't compare as text (JSON, TIME, UUID, decimals of
# many digits).
_COMPARED: Final = frozenset(
    {Kind.INT, Kind.UNSIGNED_BIGINT, Kind.DECIMAL, Kind.YEAR, Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP}
    | {Kind.TEXT, Kind.ENUM, Kind.SET}
)


def check_condition(condition: Condition, version: TableVersion) -> None:
    """Raise SchemaMismatch if rows of a version can't be tested, or if silver can't follow the
    condition.
    """
    columns = by_name(version)
    for leaf in leaves(condition):
        column = columns.get(leaf.column.lower())
        if column is None:
            why = f"{SECTION} names column {leaf.column}, which the table doesn't have"
            raise SchemaMismatch(why, where=version.where, remedy=f"correct the condition in {SECTION}")
        try:
            _check_leaf(leaf, column)
        except ValueError as error:
            why = f"{SECTION} compares column {leaf.column} of type {column.type}: {error}"
            raise SchemaMismatch(why, where=version.where, remedy=f"correct the condition in {SECTION}") from None
    if version.foreign_keys:
        why = f"{SECTION} has a condition for its rows, and foreign keys change them below the log, also those left out"
        raise SchemaMismatch(why, where=version.where, remedy=f"take the table out of {SECTION}")


def _check_leaf(leaf: Leaf, column: Column) -> None:
    """Raise ValueError where a column isn't compared with a leaf's literals."""
    kind = canonical(column)
    if literals_of(leaf) and kind.kind not in _COMPARED:
        raise ValueError(f"columns of type {kind.kind} aren't compared")
    check_literals(leaf, kind.arrow)


def by_name(version: TableVersion) -> dict[str, Column]:
    """The columns by their names at the source, in lower case."""
    return {column.name.lower(): column for column in version.columns}
