"""Silver's columns beside the source's, by the section `tables.computed` of a pipeline file.

In:  the rules of a logical table, versions of its physical tables as silver has them, silver's own
     schema.
Out: silver's columns. SchemaMismatch where silver can't be right so.

A value is computed when its row is staged. Rows that stay keep their values. Therefore a DDL may change values of the
input columns only with a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_jobs.window.shape.filtered import rewritten_ids
from spark_jobs.window.shape.silver_types import made_anew
from tidegate.computed.row_expressions import ComputedColumn, identities, needs_of
from tidegate.delta.table.state import TableState
from tidegate.errors import RuleChanged, SchemaMismatch
from tidegate.merge.column import SilverColumn
from tidegate.merge.computed import MEND, SECTION, by_name, check_computed
from tidegate.merge.phases import empties
from tidegate.merge.silver_sql import SilverShape
from tidegate.remedy import REFILL
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.types import canonical


def computed_in(columns: Sequence[ComputedColumn], versions: Iterable[TableVersion]) -> tuple[SilverColumn, ...]:
    """The columns as silver has them. Raises SchemaMismatch where a version has no such value."""
    types: dict[str, str] = {}
    for version in versions if columns else ():
        check_computed(columns, version)
        for name, column in by_name(version).items():
            here = canonical(column).delta
            if types.setdefault(name, here) != here and name in needs_of(columns):
                why = f"{SECTION} computes from column {name}, which is {here} here and {types[name]} in another shard"
                raise SchemaMismatch(why, where=f"{version.source} {version.name}", remedy=MEND)
    return tuple(SilverColumn(of.name, of.type, f"computed: {of.shown}", computed=of.identity) for of in columns)


def check_same_values(columns: Sequence[ComputedColumn], old: TableVersion, new: TableVersion) -> None:
    """Raise SchemaMismatch where a DDL changes input values of silver's rows."""
    if not columns or empties(new) or new.kind == "create":
        return
    before, after = by_name(old), by_name(new)
    rewritten = rewritten_ids(old, new)
    for name in sorted(needs_of(columns)):
        was, now = before.get(name), after.get(name)
        same = was is not None and now is not None and was.id == now.id and now.id not in rewritten
        if not same or _type(was) != _type(now):
            why = f"{new.ddl[:120]}: values of column {name} change, which {SECTION} computes from"
            raise SchemaMismatch(why, where=new.where, remedy=REFILL)


def check_same_rules(shape: SilverShape, state: TableState) -> None:
    """Raise RuleChanged where silver's columns were computed by other rules."""
    if not state.created:
        return
    own, wanted = computed_of(state), computed_by(shape)
    if own == wanted:
        return
    other = ", ".join(sorted(name for name in own.keys() | wanted if own.get(name) != wanted.get(name)))
    raise RuleChanged(
        f"silver's column {other} isn't as {SECTION} says",
        where=state.place,
        remedy=made_anew(shape, SECTION),
    )


def computed_of(state: TableState) -> dict[str, str]:
    """The identity of each computed column, by silver's own schema."""
    return identities(state.schema["fields"]) if state.created else {}


def computed_by(shape: SilverShape) -> dict[str, str]:
    """The same by the pipeline file."""
    return {column.name: column.computed for column in shape.columns if column.computed}


def _type(column: Column | None) -> str:
    return "" if column is None else canonical(column).delta
