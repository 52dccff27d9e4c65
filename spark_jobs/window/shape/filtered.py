"""Silver's rows of a table, where the pipeline file has a condition for them (tables.rows).

In:  the condition of a logical table, versions of its physical tables, decoded changes.
Out: changes as silver takes them. SchemaMismatch where silver can't be right so.

A change has the whole row, so it shows whether silver has the row from there on. A row that doesn't
meet the condition goes, as by a DELETE. In a table without a key the image of a delete shows
whether silver had the row.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.window.shape.silver_types import made_anew
from tidegate import tables
from tidegate.conditions.matching import matching
from tidegate.conditions.model import Condition, leaves, renamed
from tidegate.delta.table.state import TableState
from tidegate.errors import RuleChanged, SchemaMismatch, Terminal
from tidegate.merge.conditioned import SECTION, by_name, check_condition
from tidegate.merge.phases import empties
from tidegate.merge.silver_sql import ROWS_PROPERTY, SilverShape
from tidegate.remedy import REFILL
from tidegate.schema.follow.silver_change import ValuesRewritten, diff
from tidegate.schema.model.columns import TableVersion


def filtered(condition: Condition, changes: pa.RecordBatch, *, keyed: bool) -> pa.RecordBatch:
    """Decoded changes, whole rows in all of their columns, as silver takes them."""
    matches = matching(condition, changes)
    if pc.all(matches).as_py() is not False:
        return changes
    if not keyed:
        return changes.filter(matches)
    at = changes.schema.get_field_index(tables.OP)
    delete = pa.scalar(tables.OP_DELETE, changes.schema.field(at).type)
    return changes.set_column(at, changes.schema.field(at), pc.if_else(matches, changes.column(at), delete))


def asked_of(condition: Condition, version: TableVersion) -> Condition | None:
    """The condition with silver's names of a version's columns. None if check_condition refuses it."""
    try:
        check_condition(condition, version)
    except Terminal:
        return None
    odd = {column.name.lower(): column.silver for column in version.columns if column.silver != column.name}
    return renamed(condition, odd) if odd else condition  # of many versions a window is given the same object


def check_same_rows(condition: Condition, old: TableVersion, new: TableVersion) -> None:
    """Raise SchemaMismatch if a DDL changes values of the condition's columns: other rows may meet
    it now.
    """
    if empties(new) or new.kind == "create":
        return
    before, after = by_name(old), by_name(new)
    named = {leaf.column.lower() for leaf in leaves(condition)}
    rewritten = rewritten_ids(old, new)
    for name in sorted(named):
        same = name in before and name in after and before[name].id == after[name].id
        if not same or after[name].id in rewritten:
            why = f"{new.ddl[:120]}: values of column {name} change, which {SECTION} asks of"
            raise SchemaMismatch(why, where=new.where, remedy=REFILL)


def rewritten_ids(old: TableVersion, new: TableVersion) -> set[int]:
    """The ids of staying columns whose values a DDL rewrites."""
    ids = {column.id for column in old.columns}
    stays = replace(new, columns=tuple(column for column in new.columns if column.id in ids), key=old.key)
    return {action.column.id for action in diff(old, stays) if isinstance(action, ValuesRewritten)}


def check_same_condition(shape: SilverShape, state: TableState) -> None:
    """Raise RuleChanged where silver's rows were chosen by another condition."""
    if not state.created or (own := state.configuration.get(ROWS_PROPERTY, "")) == shape.where:
        return
    why = f"silver has the rows of {own or 'no condition'}, and {SECTION} says {shape.where or 'nothing'}"
    raise RuleChanged(why, where=state.place, remedy=made_anew(shape, SECTION))
