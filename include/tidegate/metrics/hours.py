"""Hours of `completeness` that are overdue: over at the sources, and not complete in silver.

In:  one look at a pipeline.
Out: seconds by table since the end of its first incomplete hour; the tables behind the delay of all together; the
     reason for a missing hour.

A held table's hours stay incomplete until its hold ends. A table whose first snapshot is under way
has no hour yet, and no figure; nor have all tables together then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from tidegate.commit_ts import physical_ms
from tidegate.limits import HOUR_NAMED_TABLES_MAX, HOUR_SECONDS
from tidegate.tables import State

if TYPE_CHECKING:
    from tidegate.capture.standing import CaptureStanding
    from tidegate.lake.figures.status import TableStatus
    from tidegate.pipelines import PipelineView

# The name of all tables together, as the label of a figure.
ALL: Final = "*"


def table_shown(name: str) -> str:
    """A label of a figure, for people."""
    return "all tables" if name == ALL else name


def overdue(view: PipelineView) -> Iterator[tuple[str, float | None]]:
    """(table, seconds) of each table of completeness.tables, and of all together; 0 while no hour is overdue."""
    part, stands = view.pipeline.completeness, view.standing
    if not part.hourly or stands is None or not stands.cut_ts:
        return
    through = _by_table(stands)
    behind = _left_behind(stands)
    for name in part.tables:
        at = through.get(name)
        grows = view.pipeline.tables.is_target(name)  # a shard of it may be at a source left behind
        yield name, None if at is None else _late(min(at, behind) if grows else at, view.at)
    ends = [_seconds(stands.cut_ts), behind, *(at for at in through.values() if at is not None)]
    yield ALL, None if None in through.values() else _late(min(ends), view.at)


def unknown(view: PipelineView) -> dict[str, str]:
    """The reason for a missing hour in a few words, as keys those of overdue()."""
    if not (figures := dict(overdue(view))) or view.standing is None:
        return {}
    through = _by_table(view.standing)
    filled = "its first snapshot hasn't ended"
    words = {
        name: filled if name in through else "it isn't in silver" for name, late in figures.items() if late is None
    }
    if ALL in words:
        names = sorted(name for name, at in through.items() if at is None)
        words[ALL] = f"the snapshot{'s' * (len(names) > 1)} of {_named(names)} must end first"
    return words


def waiting(view: PipelineView) -> list[tuple[str, float]]:
    """(table, seconds) of the tables without an hour of all the others, the longest delay first. No table is named
    while all of them wait, for a late cut.
    """
    stands = view.standing
    if not view.pipeline.completeness.hourly or stands is None or not stands.cut_ts:
        return []
    if _late(_seconds(stands.cut_ts), view.at):
        return []
    late = [(name, _late(at, view.at)) for name, at in _by_table(stands).items() if at is not None]
    return sorted(((name, seconds) for name, seconds in late if seconds), key=lambda each: (-each[1], each[0]))


def overdue_words(view: PipelineView) -> dict[str, str]:
    """The reason for the delay of all tables together, in a few words, under ALL."""
    stands = view.standing
    if not view.pipeline.completeness.hourly or stands is None or not stands.cut_ts:
        return {}
    if _late(_seconds(stands.cut_ts), view.at):
        return {ALL: "silver itself is behind"}
    parts = []
    if names := [name for name, _ in waiting(view)]:
        parts.append(f"{_named(names)} wait{'s' * (len(names) == 1)}")
    if late := [source.source for source in stands.left_behind if _late(_seconds(source.behind_ts or 0), view.at)]:
        parts.append(f"the cut goes on without {', '.join(late)}")
    return {ALL: "; ".join(parts)} if parts else {}


def _named(names: Sequence[str]) -> str:
    more = len(names) - HOUR_NAMED_TABLES_MAX
    return ", ".join(names[:HOUR_NAMED_TABLES_MAX]) + (f" and {more:,} more" if more > 0 else "")


def _by_table(stands: CaptureStanding) -> dict[str, float | None]:
    return {table.table: _through(table, stands) for table in stands.tables if table.state is not State.LEFT}


def _left_behind(stands: CaptureStanding) -> float:
    return min((_seconds(source.behind_ts) for source in stands.left_behind if source.behind_ts), default=math.inf)


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
