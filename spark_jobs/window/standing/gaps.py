"""Gaps: a source's loss, accepted by a person, and the tables waiting for it.

In:  gaps in a window.
Out: held tables; per table the last such gap.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.window.application import Application
from spark_jobs.window.shape.cascading import descendants
from spark_jobs.window.standing.standings import hold
from spark_jobs.window.window import Window
from tidegate.remedy import Needs
from tidegate.segments.window import SegmentRef
from tidegate.standing.causes import Cause
from tidegate.standing.events import Refused
from tidegate.standing.standing import Place
from tidegate.table_names import Physical
from tidegate.tables import SegmentFlag


def hold_behind_gaps(app: Application, window: Window, gaps: Iterable[SegmentRef]) -> dict[str, int]:
    """Hold tables for accepted gaps: a person let capture go on where the source lost changes.
    Tables that these changes may have touched wait, and so do tables that foreign keys tie to them.
    Returns the commit_ts of the last gap of each table.
    """
    gap_ts = dict[str, int]()
    for ref in gaps:
        owner = app.pipeline.owner(ref.source)  # what one Pump lost may have changed any table of its cluster
        named = [Physical(owner, *pair) for pair in app.names.kept(owner, ref.tables)]
        below = {child: parent for parent in named for child in descendants(app, parent)}
        touched = dict.fromkeys(named, "that may have changed it")
        for child in sorted(below.keys() - touched.keys()):
            touched[child] = f"that may have changed {below[child].shown}, on which its rows hang"
        for physical, what in touched.items():
            name = app.names.logical_name(*physical.pair)
            gap_ts[name] = max(ref.max_commit_ts, gap_ts.get(name, 0))
            _hold_behind(app, window, ref, physical, what)
    return gap_ts


def _hold_behind(app: Application, window: Window, ref: SegmentRef, physical: Physical, what: str) -> None:
    _, database, table = physical
    name = app.names.logical_name(database, table)
    if app.positions.is_held(name) or app.positions.applied(name) >= ref.max_commit_ts:
        return
    place = Place(ref.source, database, table, ref.file, ref.end_pos, ref.max_commit_ts)
    # The loss may hide an ALTER. So after a TRUNCATE the columns are still unknown.
    needs = Needs.COLUMNS if ref.flags & SegmentFlag.HAS_DDL else Needs.ROWS
    at = f"{database}.{table} at {ref.file}:{ref.end_pos} of {ref.source}"
    reason = f"{at}: the source lost transactions {what}, which was accepted"
    hold(app, window, name, Refused(Cause.NEEDS_ROWS, reason, place, needs=needs))
