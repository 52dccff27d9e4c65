"""The facts in control/snapshots for apply: the open waves, each table's progress, the tables in a snapshot.

In:  events of control/snapshots.
Out: KnownEvents: answers by token and by physical table.

A table is filled if it wasn't whole at its snapshot's beginning: an `opened` event with its name
says so, with the commit_ts of silver's emptying. Until the snapshot's `done` it lacks rows. An
`opened` event without a table says where a wave's low mark is.

The answers are updated with each event, so no answer reads all events. Only apply writes `opened`,
`done` and `placed`, and has its own events in memory in their order. Other events don't depend on
earlier ones.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress.event_log import EventLog
from tidegate.snapshot.progress.events import (
    EventKind,
    Meaning,
    SnapshotEvent,
    TableKey,
    TableProgress,
    Tally,
)
from tidegate.snapshot.progress.filling import Filling
from tidegate.snapshot.progress.turns import Turns
from tidegate.table_names import Physical
from tidegate.tables import SNAPSHOTS

# After upkeep the latter may stand alone.
_TAKES: Final = (EventKind.APPLIED, EventKind.DONE)


class KnownEvents:
    """Events, and their consequences. log: their origin; None: only the given ones."""

    def __init__(self, log: EventLog | None = None) -> None:
        self._log = log
        self._forget()

    def _forget(self) -> None:
        self._tally = Tally()
        self._turns = Turns()
        self._marks: dict[str, SnapshotEvent] = {}  # by token, those that aren't in a source's log
        self._unplaced: dict[str, SnapshotEvent] = {}
        self._placed: dict[str, int] = {}  # by token: commit_ts in apply's order
        self._places: list[tuple[int, str]] = []  # the same, sorted
        self._lows: dict[tuple[str, str], int | None] = {}
        self._lowest: dict[str, int] = {}  # by snapshot: of its waves that were open at some window's end
        self._opened: dict[TableKey, SnapshotEvent] = {}
        self._fillings: dict[Physical, Filling] = {}
        self._filled: dict[Physical, SnapshotEvent] = {}  # lacks() of each
        self._count = 0  # of the events
        self._by_table: dict[Physical, list[SnapshotEvent]] = {}
        self._read: set[str] = set()  # tokens of waves that a reader of this lake, or apply, told of

    @classmethod
    def of(cls, events: Iterable[SnapshotEvent]) -> KnownEvents:
        """From events in any order."""
        known = cls()
        known.take_in(events)
        return known

    @classmethod
    def read(cls, lake: LakeFiles) -> KnownEvents:
        """Raises LakeUnavailable, LakeRefused."""
        known = cls(EventLog(lake))
        known.look()
        return known

    def look(self) -> None:
        """Take in others' new events. Raises LakeUnavailable, LakeRefused."""
        if self._log is not None:
            anew, events = self._log.look()
            if anew:
                self._forget()
            self._take_in(events)

    def take_in(self, events: Sequence[SnapshotEvent] | Iterable[SnapshotEvent]) -> None:
        """One's own; of any order among themselves."""
        listed = list(events)
        if self._log is not None:
            self._log.know(listed)
        self._take_in(listed)

    def _take_in(self, events: Iterable[SnapshotEvent]) -> None:
        by_time = sorted(events, key=lambda said: said.recorded_at)
        self._tally.take_in(by_time)
        self._turns.take_in(by_time)
        for event in by_time:
            physical = Physical(event.source, *event.name)
            self._by_table.setdefault(physical, []).append(event)
            self._fill(physical, event)
            if event.token and event.meaning is not Meaning.WAVE_OPEN:
                self._read.add(event.token)
            if event.meaning is Meaning.BEGUN:
                self._opened.setdefault(TableKey(event.snapshot, *physical), event)
            elif event.meaning is Meaning.WAVE_OPEN:
                self._lows[event.source, event.token] = event.low_ts
                if event.low_ts is not None:
                    self._lowest[event.snapshot] = min(event.low_ts, self._lowest.get(event.snapshot, event.low_ts))
            elif event.event is EventKind.PLACED:
                self._place(event.token, event.high_ts or 0)
            elif event.event is EventKind.MARKED:
                self._marks[event.token] = event
                if event.token not in self._placed:  # by clocks of two machines it may be the younger one
                    self._unplaced[event.token] = event

    def _fill(self, physical: Physical, event: SnapshotEvent) -> None:
        self._count += 1
        filling = self._fillings.setdefault(physical, Filling())
        if not filling.take_in(event, self._count):
            return
        self._filled.pop(physical, None)  # the newest stands last
        if (begun := filling.lacks()) is not None:
            self._filled[physical] = begun

    def _place(self, token: str, commit_ts: int) -> None:
        self._unplaced.pop(token, None)
        if token not in self._placed:
            self._placed[token] = commit_ts
            insort(self._places, (commit_ts, token))

    def record(self, tables: ControlTables, events: Sequence[SnapshotEvent]) -> None:
        """Append events to the lake, and take them in."""
        self.take_in(events)
        self.append(tables, events)

    def append(self, tables: ControlTables, events: Sequence[SnapshotEvent]) -> None:
        """Append events already taken in."""
        if events:
            version = tables.append(SNAPSHOTS, [event.to_row() for event in events])
            if self._log is not None:
                self._log.appended(version)

    def next_at(self, snapshot: str) -> datetime:
        """The time of a snapshot's next event."""
        return self._turns.next(snapshot)

    def told_at(self) -> dict[Physical, datetime]:
        """The latest time of any event about a table whose read goes on. It may be by a clock ahead of ours."""
        newest = dict[Physical, datetime]()
        for key in self.going:
            at = self._turns.newest[key.snapshot]
            newest[key.physical] = max(at, newest.get(key.physical, at))
        return newest

    @property
    def tables(self) -> Mapping[TableKey, TableProgress]:
        """How far each table is, in order of the requests."""
        return self._tally.tables

    @property
    def going(self) -> Mapping[TableKey, TableProgress]:
        """Tables whose snapshot isn't over."""
        return self._tally.going

    @property
    def unplaced(self) -> Collection[SnapshotEvent]:
        """Marks outside a source's log, and without a place in apply's order yet."""
        return self._unplaced.values()

    def placed_in(self, after_ts: int, upto_ts: int) -> list[tuple[int, SnapshotEvent]]:
        """Such marks with their places, of (after_ts, upto_ts], in order."""
        first = bisect_right(self._places, after_ts, key=lambda place: place[0])
        last = bisect_right(self._places, upto_ts, key=lambda place: place[0])
        return [(at, self._marks[token]) for at, token in self._places[first:last] if token in self._marks]

    def low_ts(self, source: str, token: str) -> int | None:
        """The place of the low mark of a wave open at some window's end."""
        return self._lows.get((source, token))

    def has_heard_of(self, token: str) -> bool:
        """Whether the lake knows more of a wave than its low mark in the log."""
        return token in self._read

    def open_lows(self) -> list[int]:
        """The lowest mark of the waves open at some window's end, of each unfinished snapshot."""
        return [self._lowest[snapshot] for snapshot in self._tally.going_snapshots if snapshot in self._lowest]

    def began(self, snapshot: str, physical: Physical) -> int | None:
        """L0: from here on the snapshot's waves and the log are in silver; None before its first wave is."""
        table = self.tables.get(TableKey(snapshot, *physical))
        return table.low_ts if table is not None else None

    def whole_from(self, snapshot: str, physical: Physical) -> int | None:
        """Silver with all up to here has each row of a snapshot's table; None while any is unread,
        or not taken.
        """
        table = self.tables.get(TableKey(snapshot, *physical))
        if table is None or table.left or table.waiting:
            return None
        kind, events = (snapshot, EventKind.APPLIED), self._by_table.get(physical, ())
        return max((event.high_ts or 0 for event in events if (event.snapshot, event.event) == kind), default=None)

    def filled(self, physical: Physical) -> SnapshotEvent | None:
        """The `opened` event since when a table lacks rows; None when it lacks none by these
        events.
        """
        return self._filled.get(physical)

    @property
    def began_empty(self) -> Mapping[Physical, SnapshotEvent]:
        """Tables lacking rows by these events, with filled() of each."""
        return self._filled

    def touched_since(self, physical: Physical, at_ts: int) -> bool:
        """Whether a snapshot of a table isn't over, or took rows with a commit_ts above this."""
        if any(key[1:] == physical for key in self.going):
            return True
        events = self._by_table.get(physical, ())
        snapshots, tokens, refused = set[str](), {""}, set[str]()
        for event in events:
            if event.event in _TAKES or event.meaning is Meaning.BEGUN:
                snapshots.add(event.snapshot)
                tokens.add(event.token)
            elif event.event is EventKind.REFUSED:
                refused.add(event.token)
        refused -= tokens
        return any(
            (event.low_ts or 0) > at_ts or (event.high_ts or 0) > at_ts
            for event in events
            if event.snapshot in snapshots and event.token not in refused
        )

    def opened(self, snapshot: str, physical: Physical) -> SnapshotEvent | None:
        """The event with which this snapshot began with an empty silver; None when it didn't."""
        return self._opened.get(TableKey(snapshot, *physical))

    def taken_from(self, token: str, physical: Physical) -> int | None:
        """Where a wave lies that a table has the rows of; None when no apply has said so."""
        events = self._by_table.get(physical, ())
        lows = [event.low_ts for event in events if (event.token, event.event) == (token, EventKind.APPLIED)]
        return next((low_ts for low_ts in lows if low_ts is not None), None)

    def begun_by(self, physical: Physical, low_ts: int) -> str:
        """Token of the wave whose low mark empties a table in silver; "" when nobody said so."""
        beginnings = (event for event in reversed(self._by_table.get(physical, ())) if event.meaning is Meaning.BEGUN)
        return next((event.token for event in beginnings if event.low_ts == low_ts), "")

    def definition(self, token: str, physical: Physical) -> Mapping[str, Any]:
        """The table as the server had it while a wave was read; {} when nobody said so."""
        of_wave = (event for event in self._by_table.get(physical, ()) if event.token == token)
        return next((event.definition for event in of_wave if event.definition), {})


def under_way(lake: LakeFiles) -> list[TableProgress]:
    """Tables whose snapshot isn't over, by name. Raises LakeUnavailable."""
    return sorted(KnownEvents.read(lake).going.values(), key=lambda table: (table.source, table.name))
