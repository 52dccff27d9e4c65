"""Hours of `completeness` that are overdue: over at the sources, and not complete in silver.

In:  one look at a pipeline.
Out: seconds by table since the end of its first incomplete hour.

A held table's hours end with its hold. A table whose first snapshot is under way has no hour to be
late with, and no figure; all tables together have none then, either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from tidegate.commit_ts import physical_ms
from tidegate.limits import HOUR_SECONDS
from tidegate.tables import State

if TYPE_CHECKING:
    from tidegate.capture.standing import CaptureStanding
    from tidegate.lake.figures.status import TableStatus
    from tidegate.pipelines import PipelineView

# The name of all tables together, as the label of a figure.
ALL: Final = "*"


def overdue(view: PipelineView) -> Iterator[tuple[str, float | None]]:
    """(table, seconds) of each table of completeness.tables, and of all together; 0 while no hour is overdue."""
    part, stands = view.pipeline.completeness, view.standing
    if not part.hourly or stands is None or not stands.cut_ts:
        return
    through = {table.table: _through(table, stands) for table in stands.tables if table.state is not State.LEFT}
    behind = min((_seconds(source.behind_ts) for source in stands.left_behind if source.behind_ts), default=math.inf)
    for name in part.tables:
        at = through.get(name)
        grows = view.pipeline.tables.is_target(name)  # a shard of it may be at a source left behind
        yield name, None if at is None else _late(min(at, behind) if grows else at, view.at)
    ends = [_seconds(stands.cut_ts), behind, *(at for at in through.values() if at is not None)]
    yield ALL, None if None in through.values() else _late(min(ends), view.at)


def _through(table: TableStatus, stands: CaptureStanding) -> float | None:
    cut = _seconds(stands.cut_ts)
    match table.state:
        case State.ACTIVE | State.DROPPED:
            return cut
        case State.HELD | State.RELEASED:
            since = datetime.fromisoformat(table.since).timestamp() if table.since else _seconds(table.applied_ts)
            return min(since, cut)
        case _:
            return None


def _seconds(commit_ts: int) -> float:
    return physical_ms(commit_ts + 1) / 1000


def _late(through: float, now: float) -> float:
    first_incomplete_ends = (through // HOUR_SECONDS + 1) * HOUR_SECONDS
    return max(0.0, now - first_incomplete_ends)
