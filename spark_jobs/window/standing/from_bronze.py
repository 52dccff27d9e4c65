"""What bronze and control tables tell of a table whose silver isn't what control says.

In:  a logical table.
Out: FromBronze; None for one that several physical tables flow into, or whose source is behind.
"""

from __future__ import annotations

from functools import partial

from spark_jobs.window.application import Application
from tidegate.lake.from_bronze import FromBronze, all_versions, keeps_rows


def from_bronze(app: Application, name: str) -> FromBronze | None:
    """Raises LakeUnavailable."""
    flows = list(app.names.flows().get(name, ()))
    if len(flows) != 1 or app.names.logical(*flows[0][1:])[2] or flows[0][0] in app.followed.behind:
        return None
    physical, pipeline = flows[0], app.pipeline
    return FromBronze(
        app.cut_ts,
        all_versions(app.lake, physical),  # what the application holds are those from the cut on
        max((app.index.begin(log) for log in pipeline.pumps(physical[0])), default=0),
        app.histories[physical[0]].settings.gap_ts,
        keeps_rows(pipeline.tables, pipeline.ddl, *app.names.pair(name)),
        partial(app.snapshots.touched_since, physical),
    )
