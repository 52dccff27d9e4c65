"""Waves that wait for the end of a hold: apply has passed them, and takes them when their table
goes on.

In:  TableProgress; the holds of the lake's tables.
Out: the tables of such waves, and why they wait. A table held for its rows isn't among them before
     its first wave is taken: this wave ends the hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.config import Pipeline
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import held_tables
from tidegate.snapshot.progress.events import TableProgress
from tidegate.standing.shown import line_of
from tidegate.standing.standing import Standing

Place = tuple[str, tuple[str, str]]  # source, physical table


def is_held_back(table: TableProgress, held: Standing | None) -> bool:
    """held: the standing of its table in silver, if held."""
    return held is not None and bool(table.waiting) and (table.low_ts is not None or not held.lacks_rows)


def in_vain(pipeline: Pipeline, lake: LakeFiles, physical: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Tables of silver whose hold no snapshot ends: they have a past that other rules made; and a line about each.

    physical: those that flow into them. Raises LakeUnavailable.
    """
    holds, lines = held_tables(lake), dict[str, str]()
    for logical in {pipeline.tables.logical(*pair) for pair in physical}:
        held = holds.get(logical.name)
        if held is not None and held.by_other_rules and pipeline.tables.keeps_past(logical.database, logical.table):
            ends = line_of(held, pipeline.lacks_snapshots)
            lines[logical.name] = f"{logical.name}: no snapshot makes its past anew: {ends}"
    return dict(sorted(lines.items()))


def held_back(pipeline: Pipeline, lake: LakeFiles, snapshots: Iterable[TableProgress]) -> dict[Place, str]:
    """Why each of them waits so, and the way out. Raises LakeUnavailable."""
    holds: Mapping[str, Standing] | None = None
    lines = {}
    for table in snapshots:
        if not table.waiting or table.state.is_over:
            continue
        holds = held_tables(lake) if holds is None else holds
        held = holds.get(pipeline.tables.logical(*table.name).name)
        if held is not None and is_held_back(table, held):
            lines[table.source, table.name] = line_of(held, pipeline.lacks_snapshots)
    return lines
