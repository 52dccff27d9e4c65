"""Times of a snapshot's events, in the order in which they are told, whatever the clocks say.

In:  the known events; a snapshot.
Out: the time for its next event.

Events count in the order of their times (events.py). Clocks may be put back, and the machines of a person, a reader and
apply have different clocks. If a resume got an earlier time than its pause, it would never count. Therefore an event's
time lies after all times of its snapshot that its author knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from tidegate.snapshot.progress.events import SnapshotEvent

_TICK: Final = timedelta(microseconds=1)


@dataclass(slots=True)
class Turns:
    """newest: snapshot -> the latest time of its events."""

    newest: dict[str, datetime] = field(default_factory=dict)

    def take_in(self, events: Iterable[SnapshotEvent]) -> None:
        for event in events:
            self.newest[event.snapshot] = max(event.recorded_at, self.newest.get(event.snapshot, event.recorded_at))

    def next(self, snapshot: str) -> datetime:
        """Now, or right after what is known of the snapshot."""
        now, newest = datetime.now(UTC), self.newest.get(snapshot)
        return now if newest is None else max(now, newest + _TICK)
