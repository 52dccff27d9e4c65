"""Whether silver can have the columns of tables.computed beside a table's own.

In:  the rules of a logical table, a version of one of its physical tables as silver has it.
Out: SchemaMismatch where silver can't be right so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.computed.row_expressions import ComputedColumn
from tidegate.errors import SchemaMismatch
from tidegate.schema.model.columns import Column, TableVersion

SECTION: Final = "tables.computed"


MEND: Final = f"correct the rule in {SECTION}"
_INSTALL: Final = "install its distribution where apply runs, or correct the rule"


def check_computed(columns: Sequence[ComputedColumn], version: TableVersion) -> None:
    """Raise SchemaMismatch where rows can't have these columns. version: as in silver."""
    known = by_name(version)
    for column in columns:
        why = ""
        if not version.key:
            why = f"{SECTION} has column {column.name}, and a table without a key is known by the source's columns"
        elif column.name.lower() in known:
            why = f"{SECTION} makes column {column.name}, and the source has one of that name"
        elif lacking := column.needs - known.keys():
            why = f"{SECTION} computes {column.name} from column {min(lacking)}, which silver doesn't have"
        if why:
            raise SchemaMismatch(why, where=version.where, remedy=MEND)
        if missing := column.lacks:
            raise SchemaMismatch(f"{SECTION}: {column.name}: {missing}", where=version.where, remedy=_INSTALL)


def fits(columns: Sequence[ComputedColumn], version: TableVersion) -> bool:
    """Whether the rows of a version, as silver has it, can have these columns."""
    try:
        check_computed(columns, version)
    except SchemaMismatch:
        return False
    return True


def by_name(version: TableVersion) -> dict[str, Column]:
    """The columns by their names in silver, in lower case."""
    return {column.silver.lower(): column for column in version.columns}
