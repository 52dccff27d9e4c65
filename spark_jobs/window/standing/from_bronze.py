"""The traces in bronze and control of tables whose silver differs from control.

In:  logical tables.
Out: FromBronze of each; none of a table with several physical tables, or with its source behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from spark_jobs.window.application import Application
from tidegate.lake.standing.from_bronze import FromBronze, all_versions, keeps_rows
from tidegate.table_names import Physical


def from_bronze(app: Application, names: Iterable[str]) -> dict[str, FromBronze]:
    """FromBronze by name. control/schema_history is read once for all of them. Raises
    LakeUnavailable.
    """
    flows, pipeline = app.names.flows(), app.pipeline
    alone = {name: single for name in names if (single := _alone(app, flows.get(name, ()))) is not None}
    versions = all_versions(app.lake, alone.values())  # what the application holds are those from the cut on
    begins = {
        source: max((app.index.begin(log) for log in pipeline.pumps(source)), default=0)
        for source in {physical.source for physical in alone.values()}
    }
    return {
        name: FromBronze(
            app.cut_ts,
            versions[physical],
            begins[physical.source],
            app.histories[physical.source].settings.gap_ts,
            keeps_rows(pipeline.tables, pipeline.ddl, *app.names.pair(name)),
            partial(app.snapshots.touched_since, physical),
        )
        for name, physical in alone.items()
    }


def _alone(app: Application, flows: Collection[Physical]) -> Physical | None:
    """The single physical table of a table, where its source isn't behind."""
    if len(flows) != 1:
        return None
    (physical,) = flows
    return None if app.names.logical(*physical.pair).routed or physical.source in app.followed.behind else physical
