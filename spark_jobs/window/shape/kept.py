"""The columns of a table that silver has, where the pipeline file leaves some out (tables.columns).

In:  the rules of a logical table, versions of its physical tables.
Out: names as silver has them. SchemaMismatch where silver can't be right without a column.

Silver needs the key's columns, and those of foreign keys whose effects no server logs: their rules are followed by what
silver has. A table without a key needs all: a row of it is known by all of its values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from tidegate.config import KeptColumns
from tidegate.delta.state import TableState
from tidegate.errors import SchemaMismatch
from tidegate.merge.silver_sql import SilverShape
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.silver_names import silver_column

_REBUILD: Final = "run `tidegate rebuild --swap` for it, or take the change in tables.columns back"


def takes(kept: KeptColumns, version: TableVersion, column: Column) -> bool:
    """Whether silver has a column of a version."""
    return not kept or kept.take(column.silver, of_key=column.id in version.key)


def left_out(kept: KeptColumns, versions: Iterable[TableVersion]) -> frozenset[str]:
    """Names of columns that silver doesn't have of any of these versions."""
    if not kept:
        return frozenset()
    return frozenset(c.silver for version in versions for c in version.columns if not takes(kept, version, c))


def in_silver(kept: KeptColumns, version: TableVersion) -> TableVersion:
    """The version with the columns that silver has."""
    if not kept:
        return version
    return replace(version, columns=tuple(filter(partial(takes, kept, version), version.columns)))


def check_kept(kept: KeptColumns, version: TableVersion) -> None:
    """Raise SchemaMismatch where rows can't be followed without the columns that are left out."""
    missing = left_out(kept, [version])
    if not missing:
        return
    if not version.key:
        why = f"it has no key, so silver needs all of its columns, and tables.columns leaves out {_listed(missing)}"
        raise SchemaMismatch(why, where=version.where, remedy="take the table out of tables.columns")
    references = (silver_column(name) for key in version.foreign_keys for name in key.columns)
    if needed := missing & {*version.silver_key, *references}:
        why = f"tables.columns leaves out {_listed(needed)}, of its key or of a foreign key that changes its rows"
        raise SchemaMismatch(why, where=version.where, remedy="keep this column")


def check_same(kept: KeptColumns, old: TableVersion, new: TableVersion) -> None:
    """Raise SchemaMismatch where a DDL makes a rule begin, or cease, to hold for a column that stays."""
    before = {column.id: takes(kept, old, column) for column in old.columns}
    for column in new.columns:
        if before.get(column.id, now := takes(kept, new, column)) != now:
            does = "keeps" if now else "leaves out"
            why = f"{new.ddl[:120]}: tables.columns {does} column {column.name} from here on"
            raise SchemaMismatch(why, where=new.where, remedy=f"name both in tables.columns; or {_REBUILD}")


def check_silver(kept: KeptColumns, shape: SilverShape, missing: frozenset[str], state: TableState) -> None:
    """Raise SchemaMismatch where silver was made by other rules: it must not have a column for some of its rows.

    missing: names of the source's columns that silver is not to have.
    """
    if not state.created or not kept:
        return
    own = {str(field["name"]).lower() for field in state.schema["fields"]}  # Delta doesn't tell case apart
    if plain := {name for name in missing if name.lower() in own}:
        why = f"silver has column {_listed(plain)}, which tables.columns leaves out"
        raise SchemaMismatch(why, where=state.place, remedy=_REBUILD)
    if not shape.routed and (lacking := {c.name for c in shape.columns if c.name.lower() not in own}):
        why = f"silver lacks column {_listed(lacking)}, which tables.columns keeps"
        raise SchemaMismatch(why, where=state.place, remedy=_REBUILD)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
