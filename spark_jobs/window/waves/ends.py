"""Decide which end marks of a window make their tables whole.

In:  the end marks in the window's log, its waves, control/snapshots.
Out: those that count; the snapshots that fail by them.

A mark alone proves nothing. The log may have marks of another lake: a copy of this lake reads the
same source, or this lake was put back to an earlier day. A sweep would then delete rows that no
wave of this lake brought. Therefore a table is whole only if control/snapshots has nothing of it left to
read, and this window and earlier ones have taken all of its waves.
"""

from __future__ import annotations

import logging
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.made import TakenWaves
from spark_jobs.window.waves.told import told_of
from tidegate.snapshot.progress.events import EventKind, SnapshotState, TableKey, TableProgress

log = logging.getLogger(__name__)

EARLY: Final = "its end mark came before all of it was taken"


def leave_unread(app: Application, waves: TakenWaves) -> None:
    """Remove the ends of tables with missing rows. It runs after the window's waves are taken or refused.

    A snapshot fails by the mark of its own reader; any other mark changes nothing.
    """
    kept = []
    for name, sweep in waves.sweeps:
        progress = app.snapshots.tables.get(TableKey(sweep.snapshot, *sweep.physical))
        if progress is None or _is_whole(progress, waves):
            kept.append((name, sweep))
        elif progress.state is SnapshotState.ENDED:
            waves.answers.append(told_of(app, sweep.snapshot, sweep.physical, EventKind.FAILED, EARLY))
        elif not progress.state.is_over:
            line = f"snapshot {sweep.snapshot} of {name}: this end mark isn't its own, and changes nothing"
            log.info("%s", line)
    waves.sweeps[:] = kept


def _is_whole(progress: TableProgress, waves: TakenWaves) -> bool:
    """Whether nothing is left to be read, and each wave is taken."""
    its = (progress.source, *progress.name)
    taken = {event.token for _, event in waves.taken if (event.source, *event.name) == its}
    return not progress.left and taken.issuperset(progress.waiting)
