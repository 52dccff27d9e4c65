"""What control/snapshots says to apply: which waves were open, how far each table is, which tables are being filled.

In:  events of control/snapshots.
Out: Known: answers by token and by physical table.

A table is filled when it wasn't whole as its snapshot began: an `opened` event that names it says so, with the
commit_ts at which silver was emptied. Until the snapshot's `done` it lacks rows. An `opened` event that names no table
says where a wave's low mark is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.events import EventKind, SnapshotEvent, TableProgress, progress
from tidegate.tables import SNAPSHOTS

Physical = tuple[str, str, str]  # source, database, table
ProgressKey = tuple[str, str, str, str]  # snapshot, then the physical table


@dataclass(frozen=True, slots=True)
class Known:
    """Events, oldest first, and what follows from them."""

    events: tuple[SnapshotEvent, ...] = ()
    tables: Mapping[ProgressKey, TableProgress] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[SnapshotEvent]) -> Known:
        """From events in any order."""
        told = tuple(sorted(events, key=lambda one: one.recorded_at))
        return cls(told, progress(told))

    @classmethod
    def read(cls, lake: LakeFiles) -> Known:
        """Raises LakeUnavailable."""
        return cls.of(SnapshotEvent.from_row(row) for row in control.read(lake, SNAPSHOTS).to_pylist())

    def low_ts(self, source: str, token: str) -> int | None:
        """Where the low mark of a wave is that was open at some window's end."""
        found = (one.low_ts for one in reversed(self.events) if self._opens(one, source, token) and not one.table)
        return next(found, None)

    def open_lows(self) -> list[int]:
        """Low marks of waves of snapshots that aren't over."""
        going = {told[0] for told, of in self.tables.items() if not of.state.is_over}
        opened = (one for one in self.events if one.event is EventKind.OPENED and not one.table)
        return [one.low_ts for one in opened if one.snapshot in going and one.low_ts is not None]

    def began(self, snapshot: str, physical: Physical) -> int | None:
        """L0: from here on the snapshot's waves and the log are in silver; None before its first wave is."""
        told = self.tables.get((snapshot, *physical))
        return told.low_ts if told is not None else None

    def filled(self, physical: Physical) -> SnapshotEvent | None:
        """The `opened` event since which a table lacks rows; None when it lacks none by these events."""
        for event in reversed(self.events):
            if (event.source, *event.name) == physical:
                if event.event is EventKind.DONE:
                    return None
                if event.event is EventKind.OPENED:
                    return event
        return None

    def opened(self, snapshot: str, physical: Physical) -> SnapshotEvent | None:
        """The event with which this snapshot began with an empty silver; None when it didn't."""
        mine = (one for one in self.events if one.event is EventKind.OPENED and one.snapshot == snapshot)
        return next((one for one in mine if (one.source, *one.name) == physical), None)

    def definition(self, token: str, physical: Physical) -> Mapping[str, Any]:
        """The table as the server had it while a wave was read; {} when nobody said so."""
        mine = (one for one in self.events if one.token == token and (one.source, *one.name) == physical)
        return next((one.definition for one in mine if one.definition), {})

    @staticmethod
    def _opens(event: SnapshotEvent, source: str, token: str) -> bool:
        return event.event is EventKind.OPENED and event.source == source and event.token == token


def under_way(lake: LakeFiles) -> list[TableProgress]:
    """Tables whose snapshot isn't over, by name. Raises LakeUnavailable."""
    found = [told for told in Known.read(lake).tables.values() if not told.state.is_over]
    return sorted(found, key=lambda told: (told.source, told.name))
