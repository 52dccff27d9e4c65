"""What control/snapshots says to apply: which waves were open, how far each table is, which tables are being filled.

In:  events of control/snapshots.
Out: Known: answers by token and by physical table.

A table is filled when it wasn't whole as its snapshot began: an `opened` event that names it says so, with the
commit_ts at which silver was emptied. Until the snapshot's `done` it lacks rows. An `opened` event that names no table
says where a wave's low mark is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidegate.lake import control
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.events import EventKind, SnapshotEvent, TableKey, TableProgress, Tally
from tidegate.tables import SNAPSHOTS

Physical = tuple[str, str, str]  # source, database, table


class Known:
    """Events, oldest first, and what follows from them.

    marked: marks that aren't in a source's log. placed: token of such a mark -> its commit_ts in apply's order.
    version: of control/snapshots, up to which all of its events are here.
    """

    def __init__(self, version: int = -1) -> None:
        self.version = version
        self.marked: list[SnapshotEvent] = []
        self.placed: dict[str, int] = {}
        self._tally = Tally()
        self._opened: list[SnapshotEvent] = []
        self._lows: dict[tuple[str, str], int | None] = {}
        self._by_table: dict[Physical, list[SnapshotEvent]] = {}

    @classmethod
    def of(cls, events: Iterable[SnapshotEvent], version: int = -1) -> Known:
        """From events in any order."""
        found = cls(version)
        found.take_in(events)
        return found

    @classmethod
    def read(cls, lake: LakeFiles) -> Known:
        """Raises LakeUnavailable."""
        version = control.version(lake, SNAPSHOTS)  # what comes meanwhile is read twice
        return cls.of((SnapshotEvent.from_row(row) for row in control.read(lake, SNAPSHOTS).to_pylist()), version)

    def take_in(self, events: Iterable[SnapshotEvent]) -> None:
        """Events that came since; of any order among themselves."""
        told = sorted(events, key=lambda one: one.recorded_at)
        self._tally.take_in(told)
        for one in told:
            self._by_table.setdefault((one.source, *one.name), []).append(one)
            if one.event is EventKind.OPENED:
                self._opened.append(one)
                if not one.table:
                    self._lows[one.source, one.token] = one.low_ts
            elif one.event is EventKind.PLACED:
                self.placed[one.token] = one.high_ts or 0
            elif one.event is EventKind.MARKED:
                self.marked.append(one)

    def record(self, tables: ControlTables, events: Sequence[SnapshotEvent]) -> None:
        """Append events to the lake, and take them in."""
        self.take_in(events)
        self.recorded(tables.append(SNAPSHOTS, [event.to_row() for event in events]))

    def recorded(self, version: int) -> None:
        """What was taken in is in the lake with this version; if somebody's events came before it, they are missing."""
        if version == self.version + 1:
            self.version = version

    @property
    def tables(self) -> Mapping[TableKey, TableProgress]:
        """How far each table is, in order of the requests."""
        return self._tally.tables

    def low_ts(self, source: str, token: str) -> int | None:
        """Where the low mark of a wave is that was open at some window's end."""
        return self._lows.get((source, token))

    def open_lows(self) -> list[int]:
        """Low marks of waves of snapshots that aren't over."""
        going = {told[0] for told, of in self.tables.items() if not of.state.is_over}
        opened = (one for one in self._opened if not one.table)
        return [one.low_ts for one in opened if one.snapshot in going and one.low_ts is not None]

    def began(self, snapshot: str, physical: Physical) -> int | None:
        """L0: from here on the snapshot's waves and the log are in silver; None before its first wave is."""
        told = self.tables.get((snapshot, *physical))
        return told.low_ts if told is not None else None

    def filled(self, physical: Physical) -> SnapshotEvent | None:
        """The `opened` event since which a table lacks rows; None when it lacks none by these events."""
        for event in reversed(self._by_table.get(physical, ())):
            if event.event is EventKind.DONE:
                return None
            if event.event is EventKind.OPENED:
                return event
        return None

    @property
    def began_empty(self) -> Mapping[Physical, SnapshotEvent]:
        """Tables that lack rows by these events, with filled() of each."""
        opened = {(one.source, *one.name) for one in self._opened if one.table}
        return {physical: event for physical in opened if (event := self.filled(physical)) is not None}

    def opened(self, snapshot: str, physical: Physical) -> SnapshotEvent | None:
        """The event with which this snapshot began with an empty silver; None when it didn't."""
        mine = (one for one in self._by_table.get(physical, ()) if one.snapshot == snapshot)
        return next((one for one in mine if one.event is EventKind.OPENED), None)

    def begun_by(self, physical: Physical, low_ts: int) -> str:
        """Token of the wave whose low mark empties a table in silver; "" when nobody said so."""
        mine = (one for one in reversed(self._by_table.get(physical, ())) if one.event is EventKind.OPENED)
        return next((one.token for one in mine if one.low_ts == low_ts), "")

    def definition(self, token: str, physical: Physical) -> Mapping[str, Any]:
        """The table as the server had it while a wave was read; {} when nobody said so."""
        mine = (one for one in self._by_table.get(physical, ()) if one.token == token)
        return next((one.definition for one in mine if one.definition), {})


def under_way(lake: LakeFiles) -> list[TableProgress]:
    """Tables whose snapshot isn't over, by name. Raises LakeUnavailable."""
    found = [told for told in Known.read(lake).tables.values() if not told.state.is_over]
    return sorted(found, key=lambda told: (told.source, told.name))
