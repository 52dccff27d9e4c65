"""The moment up to which a window doesn't know a child's rows as they were, as snapshots read it.

In:  a child's share of a window, its events in control/snapshots.
Out: commit_ts up to which its rows may be later ones, or lack; where a wave gives it anew, as it
     was at one place.

A chunk is read somewhere between its marks, and counts at the low mark. Its rows may therefore be newer
than that. A row may also be missing, if a foreign key deleted it unlogged in between. Other rows
went with it, in other chunks or tables, and no event names them. An exact wave has none of this
(tidegate/snapshot/by_view.py): its rows are the whole table at its place, so from there on every
row is known.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.window import TableWindow
from tidegate.table_names import Physical
from tidegate.tables import State

NEVER: Final = (1 << 63) - 1


def exact_from(entry: TableWindow) -> int | None:
    """Where the last exact wave of a table gives all of its rows; None without one, or beside other chunks."""
    if not entry.chunks or not all(map(attrgetter("exact"), entry.chunks)):
        return None
    return max(entry.chunks, key=attrgetter("low_ts")).low_ts


def unsure_upto(app: Application, entry: TableWindow, physical: Physical) -> int:
    """Rows of transactions up to here are unsure."""
    exact_ts = exact_from(entry)
    if exact_ts is not None:
        return exact_ts - 1 if _fills(app, entry, physical) else min(entry.again_ts, exact_ts - 1)
    if entry.chunks:
        return NEVER
    return max(entry.again_ts, _lacks_upto(app, entry, physical))


def read_meanwhile(app: Application, entry: TableWindow, physical: Physical) -> int:
    """A changelog can't have changes up to this commit_ts: silver had some of them already, or never had the row before
    them.
    """
    return NEVER if entry.chunks or _fills(app, entry, physical) else entry.again_ts


def _fills(app: Application, entry: TableWindow, physical: Physical) -> bool:
    """Whether its snapshot isn't over: the state says so, or, where the table catches up meanwhile, an event."""
    state = app.states.get(entry.name)
    if state is None:
        return False
    return state.state is State.SNAPSHOT or (
        state.state is State.RELEASED and app.snapshots.filled(physical) is not None
    )


def _lacks_upto(app: Application, entry: TableWindow, physical: Physical) -> int:
    if not _fills(app, entry, physical):
        return -1
    state, filled = app.states.get(entry.name), app.snapshots.filled(physical)
    snapshot = filled.snapshot if filled is not None else state.snapshot if state is not None else ""
    whole_ts = app.snapshots.whole_from(snapshot, physical)
    return NEVER if whole_ts is None else whole_ts
