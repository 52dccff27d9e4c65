"""DDL and changed rules of tables with left-out or masked columns.

In:  the rules of a logical table, versions of its physical tables, silver's own schema.
Out: SchemaMismatch where silver can't be right so.

tidegate/merge/kept.py decides whether silver can follow a table by its rules at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spark_jobs.window.shape.silver_types import REBUILD, made_anew, read_anew
from tidegate.delta.table.state import TableState
from tidegate.errors import RuleChanged, SchemaMismatch
from tidegate.masks.masking import MASK_METADATA
from tidegate.merge.kept import COLUMNS, MASKS, Kept
from tidegate.merge.silver_sql import SilverShape
from tidegate.remedy import REFILL
from tidegate.schema.model.columns import Column, TableVersion

_RULES_BACK: Final = "or take the change in {} back, then `tidegate release`"


def apart(kept: Kept, *versions: TableVersion | None) -> frozenset[int]:
    """Ids of columns outside silver in all of these versions: silver ignores their DDL."""
    if not kept.rules.rules:
        return frozenset()
    every, here = set[int](), set[int]()
    for version in versions:
        for column in version.columns if version is not None else ():
            every.add(column.id)
            if version is not None and kept.takes(version, column):
                here.add(column.id)
    return frozenset(every - here)


def check_same(kept: Kept, old: TableVersion, new: TableVersion) -> None:
    """Raise SchemaMismatch if a DDL brings a staying column under a rule, or out of it."""
    for column, section, does in _changes(kept, old, kept, new):
        why = f"{new.ddl[:120]}: {section} {does} column {column.name} from here on"
        raise SchemaMismatch(
            why, where=new.where, remedy=f"name both in {section}; {REBUILD}; {_RULES_BACK.format(section)}"
        )


def check_moved(before: Kept, old: TableVersion, after: Kept, new: TableVersion) -> None:
    """Raise SchemaMismatch where rows come to a table with other rules for their values.

    The versions share ids.
    """
    for column, section, does in _changes(before, old, after, new):
        what = f"{section} {does} column {column.name} of {new.name}, and not so of {old.name}"
        why = f"{new.ddl[:120]}: {what}"
        raise SchemaMismatch(why, where=new.where, remedy=REFILL)


def _changes(before: Kept, old: TableVersion, after: Kept, new: TableVersion) -> Iterator[tuple[Column, str, str]]:
    """Staying columns with other rules: the section of the file, and its present effect."""
    had = {c.id: (before.takes(old, c), _acts(before, c)) for c in old.columns}
    for column in new.columns:
        taken, mask = after.takes(new, column), _acts(after, column)
        was_taken, old_mask = had.get(column.id, (taken, mask))
        if was_taken != taken:
            yield column, COLUMNS, "keeps" if taken else "leaves out"
        elif taken and old_mask != mask:
            begins = "masks" if old_mask is None else "masks otherwise"
            yield column, MASKS, "doesn't mask" if mask is None else begins


def _acts(kept: Kept, column: Column) -> str | None:
    """The identity of a column's mask: rules that act alike may stand in several lines of the file."""
    mask = kept.mask(column)
    return mask.identity if mask is not None else None


def check_silver(shape: SilverShape, missing: frozenset[str], state: TableState, due: frozenset[str]) -> None:
    """Raise RuleChanged where silver was made by other rules; SchemaMismatch where another writer took columns.

    A column must have values for all rows or for none. missing: names of the source's columns that
    silver leaves out. due: names of the columns that silver must have already.
    """
    if not state.created:
        return
    own = {str(item["name"]).lower() for item in state.schema["fields"]}  # Delta: case is nothing
    why, section = "", COLUMNS
    if plain := {name for name in missing if name.lower() in own}:
        why = f"silver has column {', '.join(sorted(plain))}, which {section} leaves out"
    elif lacking := {c.name for c in shape.columns if c.name in due and not c.computed and c.name.lower() not in own}:
        why = f"silver lacks column {', '.join(sorted(lacking))}, which the source has and no rule leaves out"
        if state.maps_columns:  # another writer dropped or renamed it: no rule does
            raise SchemaMismatch(why, where=state.place, remedy=read_anew(shape))
    elif other := sorted(_otherwise(shape, state)):
        section, why = (
            MASKS,
            f"silver's values of column {', '.join(other)} are masked by other rules, or not at all",
        )
    if why:
        raise RuleChanged(why, where=state.place, remedy=made_anew(shape, section))


def _otherwise(shape: SilverShape, state: TableState) -> Iterator[str]:
    """Columns whose mask in silver differs from the shape's; "no mask" counts as one."""
    wanted = {column.name.lower(): column.mask for column in shape.columns}
    for name, identity in masks_of(state).items():
        if wanted.get(name.lower(), identity) != identity:
            yield name


def masks_of(state: TableState) -> dict[str, str]:
    """The identity of each column's mask by silver's own schema; "" of those without any."""
    if not state.created:
        return {}
    return {str(item["name"]): (item.get("metadata") or {}).get(MASK_METADATA, "") for item in state.schema["fields"]}
