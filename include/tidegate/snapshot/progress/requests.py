"""Requests for snapshots by a person, or a pipeline file; and the requests so far.

In:  a lake, names.
Out: events in control/snapshots; TableProgress of each table.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import behind, last_states
from tidegate.snapshot.progress.event_log import EventLog
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, TableProgress, Tally
from tidegate.snapshot.progress.turns import Turns
from tidegate.table_names import Physical
from tidegate.tables import SNAPSHOTS


def request(
    lake: LakeFiles,
    pipeline: str,
    tables: Sequence[Physical],
    options: Mapping[str, Any] | None = None,
    *,
    snapshot: str = "",
) -> str:
    """Ask for a snapshot of these tables; its id. snapshot: its given id; "" for one of its own.

    It comes after every loss of a table's past by any clock: who asks for a table gives that up.
    Raises LakeUnavailable, LakeRefused.
    """
    losing = filter(attrgetter("lacks_past"), last_states(lake).values())
    now = behind(max(filter(None, map(attrgetter("since"), losing)), default=None))
    snapshot = snapshot or uuid.uuid4().hex
    events = [
        SnapshotEvent(snapshot, pipeline, source, EventKind.REQUESTED, now, database, table, options=options or {})
        for source, database, table in tables
    ]
    control.append(lake, SNAPSHOTS, [event.to_row() for event in events])
    return snapshot


def tell(lake: LakeFiles, pipeline: str, snapshot: str, kind: EventKind, reason: str = "") -> None:
    """Pause, resume or cancel a snapshot as a whole. Raises LakeUnavailable, LakeRefused."""
    event = SnapshotEvent(snapshot, pipeline, "", kind, Told(lake, pipeline).next_at(snapshot), reason=reason)
    control.append(lake, SNAPSHOTS, [event.to_row()])


def tell_tables(
    lake: LakeFiles, pipeline: str, tables: Sequence[TableProgress], kind: EventKind, reason: str = ""
) -> None:
    """The same of single tables. Raises LakeUnavailable, LakeRefused."""
    known, events = Told(lake, pipeline), list[SnapshotEvent]()
    for table in tables:
        at = known.next_at(table.snapshot)
        events.append(SnapshotEvent(table.snapshot, pipeline, table.source, kind, at, *table.name, reason=reason))
    control.append(lake, SNAPSHOTS, [event.to_row() for event in events])


def events_of(lake: LakeFiles, pipeline: str) -> list[SnapshotEvent]:
    """All events of a pipeline's snapshots. Raises LakeUnavailable, LakeRefused."""
    rows = control.read(lake, SNAPSHOTS, filters=[("pipeline", "=", pipeline)]).to_pylist()
    return [SnapshotEvent.from_row(row) for row in rows]


def told(lake: LakeFiles, pipeline: str, source: str = "") -> list[TableProgress]:
    """How far each table's snapshots are, in order of their requests; of one source, or of all."""
    return Told(lake, pipeline).tables(source)


class Told:
    """The same for frequent callers: only the new part is read. For many threads."""

    def __init__(self, lake: LakeFiles, pipeline: str) -> None:
        self._pipeline, self._log, self._tally = pipeline, EventLog(lake, definitions=False), Tally()
        self._turns, self._lock = Turns(), threading.Lock()

    def tables(self, source: str = "") -> list[TableProgress]:
        """As told(). Raises LakeUnavailable, LakeRefused."""
        with self._lock:
            self._look()
            return [table for table in self._tally.tables.values() if source in ("", table.source)]

    def going(self, source: str = "") -> list[TableProgress]:
        """The tables among these whose snapshot isn't over. Raises LakeUnavailable, LakeRefused."""
        with self._lock:
            self._look()
            return [table for table in self._tally.going.values() if source in ("", table.source)]

    def last_wave(self, snapshot: str) -> int:
        """The largest number of a snapshot's waves; 0 before the first. Raises LakeUnavailable, LakeRefused."""
        with self._lock:
            self._look()
            return self._tally.waves.get(snapshot, 0)

    def next_at(self, snapshot: str) -> datetime:
        """The time of a snapshot's next event, by the last look. Raises LakeUnavailable, LakeRefused."""
        with self._lock:
            if self._log.version < 0:
                self._look()
            return self._turns.next(snapshot)

    def said(self, events: Sequence[SnapshotEvent]) -> None:
        """The caller has recorded these: its next ones come after them."""
        with self._lock:
            self._turns.take_in(events)

    def busy(self) -> dict[str, str]:
        """Source -> why its reader began to pause. Raises LakeUnavailable, LakeRefused."""
        with self._lock:
            self._look()
            return dict(self._tally.busy)

    def is_marked(self, token: str) -> bool:
        """Whether a wave's mark was written outside a log. Raises LakeUnavailable, LakeRefused."""
        with self._lock:
            self._look()
            return token in self._tally.marked

    def _look(self) -> None:
        anew, events = self._log.look()
        if anew:
            self._tally = Tally()
        of_pipeline = [event for event in events if event.pipeline == self._pipeline]
        self._tally.take_in(of_pipeline)
        self._turns.take_in(of_pipeline)
