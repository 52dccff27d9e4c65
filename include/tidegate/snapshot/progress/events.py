"""The events of snapshots, and their consequences.

In:  events of control/snapshots: a person's requests, a reader's waves, apply's answers.
Out: per table its snapshot's progress: its state, the unread part, the waves without apply's
     answer.

The author of each kind:
- A person: requested, paused, resumed, cancelled.
- The reader: ranges, wave (after its high watermark), ended (after its end mark, once apply has
  answered all waves of the table), marked (where marks aren't in the log), failed; refused, of a
  wave whose marks capture will never get, and resumed, of a table whose end mark it won't.
- Apply: placed (each such mark, once), opened (a low mark at a cut, to keep everything above it),
  applied or refused (each wave, once per table), done.
- The reader, too: view, before it lands chunks of a wave for a later run to continue; and of a
  source when its load makes it pause, and when it goes on. It isn't a kind of its own, since an
  apply of an earlier version beside a newer reader knows no more kinds.

Apply answers a table's waves in order. A wave that is passed over, since its mark was lost with its server's log,
counts as refused. If a reader dies after the high mark, its unrecorded wave is read again: the rows are applied
twice, each time at their own low watermark, without a change.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self

from tidegate.segments.segment import Server
from tidegate.snapshot.chunks.spans import WHOLE, ReadSpans, Span, left_of, spans_from_text, spans_to_text
from tidegate.table_names import Physical
from tidegate.tables import SNAPSHOTS

BY_ITSELF: Final = "by_itself"  # an option of a request
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class EventKind(StrEnum):
    """Kinds of events, and of whom they are."""

    REQUESTED = "requested"  # a person, or a pipeline file that says so
    RANGES = "ranges"  # the reader: `spans` are what the table was divided into, `rows` about how many it has
    # The reader: the table is read at `low_ts`, in as many runs as it takes; its chunks have `token`. Without a table:
    # its source's load is above a bound, as `reason` says, or no more ('').
    VIEW = "view"
    WAVE = "wave"  # the reader: `spans` were read, and the high mark is written; `options` say at which server
    MARKED = "marked"  # the reader, at a server that may not be written to: the mark that isn't in its log
    PLACED = "placed"  # apply: where such a mark stands in its order
    OPENED = "opened"  # apply: the wave's low mark is below the cut, its high mark isn't
    APPLIED = "applied"  # apply: the wave's rows of the table are in silver
    REFUSED = "refused"  # apply, or the reader of a lost wave: they aren't and won't be; read them again
    ENDED = "ended"  # the reader: the end mark is written; `options` say at which server
    DONE = "done"  # apply: the table is whole from this cut on
    PAUSED = "paused"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Meaning(StrEnum):
    """The meaning of an event whose kind says two things: of a table one, without a table the other."""

    BEGUN = "begun"  # opened, of a table: silver is emptied of it at low_ts
    WAVE_OPEN = "wave_open"  # opened, of a wave: where its low mark is
    VIEW_OF_TABLE = "view_of_table"  # view, of a table: its wave is read at low_ts
    LOAD = "load"  # view, of a source: its load is above a bound, or no more


_MEANINGS: Final = {
    EventKind.OPENED: (Meaning.BEGUN, Meaning.WAVE_OPEN),
    EventKind.VIEW: (Meaning.VIEW_OF_TABLE, Meaning.LOAD),
}


def meaning(kind: EventKind, table: str) -> EventKind | Meaning:
    """The meaning of an event of this kind; of a kind that says one thing the kind. table: "" where it names none."""
    of_table, of_none = _MEANINGS.get(kind, (kind, kind))
    return of_table if table else of_none


class SnapshotState(StrEnum):
    """The state of a table's snapshot."""

    REQUESTED = "requested"
    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"  # all is read and marked; apply hasn't come to the end mark
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (SnapshotState.DONE, SnapshotState.CANCELLED, SnapshotState.FAILED)


@dataclass(frozen=True, slots=True)
class SnapshotEvent:
    """A row of control/snapshots; tables/snapshot_tables.py says what its columns are. table "": the whole snapshot."""

    snapshot: str
    pipeline: str
    source: str
    event: EventKind
    recorded_at: datetime
    database: str = ""
    table: str = ""
    wave: int = 0
    token: str = ""
    low_ts: int | None = None
    high_ts: int | None = None
    spans: tuple[Span, ...] = ()
    chunks: int = 0
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    definition: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""

    @property
    def name(self) -> tuple[str, str]:
        return self.database, self.table

    @property
    def meaning(self) -> EventKind | Meaning:
        return meaning(self.event, self.table)

    def to_row(self) -> dict[str, Any]:
        """The row."""
        row = {name: getattr(self, name) for name in SNAPSHOTS.schema.names}
        return row | {
            "event": str(self.event),
            "spans": spans_to_text(self.spans) if self.spans else None,
            "options": _json(self.options),
            "definition": _json(self.definition),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The inverse."""
        cells = {item.name: row[item.name] for item in fields(cls)}
        return cls(
            **cells
            | {
                "event": EventKind(row["event"]),
                "spans": spans_from_text(row["spans"]),
                "options": json.loads(row["options"] or "{}"),
                "definition": json.loads(row["definition"] or "{}"),
            }
        )


def _json(cell: Mapping[str, Any]) -> str | None:
    return json.dumps(dict(cell), ensure_ascii=False) if cell else None


@dataclass(frozen=True, slots=True)
class View:
    """A begun wave: all of it is read at one timestamp."""

    wave: int
    token: str
    at_ts: int


@dataclass(frozen=True, slots=True)
class TableProgress:
    """How far the snapshot of one table is.

    left: key ranges to be read. waiting: tokens of waves that apply hasn't answered. waiting_at: of these the server
    that they were read from, where their reader said so; ended_at: likewise where the end mark of a table in state
    ENDED was written. low_ts: L0, commit_ts of the first applied wave's low mark;
    None before. waves, rows, bytes: of those that weren't refused. refused: reasons, in order.
    options: as asked for. reason: of its last event. by_hand: a person cancelled it. told_at: of its last event.
    estimate: about how many rows it has; 0 when nobody knows. asked_at, began_at, read_at: of its
    request, its first ranges, its last wave.
    view: of the wave whose chunks may be landed in part. read_by: the columns whose values bounds of `left` are, where
    its ranges say so; order: how the server ordered these (key_columns.ordered_as).
    """

    snapshot: str
    source: str
    database: str
    table: str
    state: SnapshotState
    left: tuple[Span, ...]
    waiting: tuple[str, ...] = ()
    low_ts: int | None = None
    waves: int = 0
    rows: int = 0
    bytes: int = 0
    refused: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    by_hand: bool = False
    told_at: datetime = _NEVER
    estimate: int = 0
    asked_at: datetime = _NEVER
    began_at: datetime = _NEVER
    read_at: datetime = _NEVER
    waiting_at: Mapping[str, Server] = field(default_factory=dict)
    ended_at: Server | None = None
    view: View | None = None
    read_by: tuple[str, ...] | None = None
    order: tuple[str, ...] | None = None

    @property
    def name(self) -> tuple[str, str]:
        return self.database, self.table

    @property
    def by_itself(self) -> bool:
        """Whether no person asked for it."""
        return bool(self.options.get(BY_ITSELF))

    @property
    def rate(self) -> float:
        """Rows a second, waits included; 0 before a wave."""
        seconds = (self.read_at - self.began_at).total_seconds()
        return self.rows / seconds if self.waves and seconds > 0 else 0.0

    @property
    def is_read(self) -> bool:
        """Whether its end mark may be written: all is read, and apply has taken each wave."""
        return not self.left and not self.waiting and self.state in (SnapshotState.REQUESTED, SnapshotState.RUNNING)


_STATE_OF: Final = {
    EventKind.REQUESTED: SnapshotState.REQUESTED,
    EventKind.RANGES: SnapshotState.RUNNING,
    EventKind.RESUMED: SnapshotState.REQUESTED,  # until a reader has divided it
    EventKind.PAUSED: SnapshotState.PAUSED,
    EventKind.ENDED: SnapshotState.ENDED,
    EventKind.DONE: SnapshotState.DONE,
    EventKind.CANCELLED: SnapshotState.CANCELLED,
    EventKind.FAILED: SnapshotState.FAILED,
}


class TableKey(NamedTuple):
    """A physical table in a snapshot."""

    snapshot: str
    source: str
    database: str
    table: str

    @property
    def physical(self) -> Physical:
        return Physical(self.source, self.database, self.table)


@dataclass(slots=True)
class Tally:
    """How far each table is, by its key and in order of the requests. A table without a new event isn't counted again.

    going: of these the tables whose snapshot isn't over. waves: snapshot -> the largest number of a wave. marked:
    tokens of waves whose marks aren't in a log. busy: source -> why its reader pauses; a wave
    ends that, too: whoever was killed said no more.
    """

    tables: dict[TableKey, TableProgress] = field(default_factory=dict)
    going: dict[TableKey, TableProgress] = field(default_factory=dict)
    waves: dict[str, int] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)
    busy: dict[str, str] = field(default_factory=dict)
    _going: Counter[str] = field(default_factory=Counter)  # by snapshot: how many of its tables aren't over
    _requests: dict[TableKey, SnapshotEvent] = field(default_factory=dict)
    _said: dict[TableKey, list[SnapshotEvent]] = field(default_factory=dict)
    _of: dict[str, list[TableKey]] = field(default_factory=dict)  # keys of a snapshot

    def take_in(self, events: Iterable[SnapshotEvent]) -> None:
        """events: in any order, of any number of snapshots."""
        touched: dict[TableKey, None] = {}
        for event in sorted(events, key=lambda said: said.recorded_at):
            key = TableKey(event.snapshot, event.source, *event.name)
            self.waves[event.snapshot] = max(event.wave, self.waves.get(event.snapshot, 0))
            if event.event is EventKind.MARKED:
                self.marked.add(event.token)
            if event.meaning is Meaning.LOAD and event.reason:
                self.busy[event.source] = event.reason
            elif event.meaning in (Meaning.LOAD, EventKind.WAVE):
                self.busy.pop(event.source, None)
            if not event.table and event.event not in _STATE_OF:
                continue  # about a wave as a whole
            self._said.setdefault(key, []).append(event)
            if event.table and event.event is EventKind.REQUESTED:
                if key not in self._requests:
                    self._of.setdefault(event.snapshot, []).append(key)
                self._requests[key] = event
            touched |= dict.fromkeys([key] if event.table else self._of.get(event.snapshot, ()))
        for key in touched:
            if key in self._requests:
                self._count(key, self._told(key))

    @property
    def going_snapshots(self) -> Collection[str]:
        """Snapshots with a table not over."""
        return self._going.keys()

    def _count(self, key: TableKey, table: TableProgress) -> None:
        self.tables[key] = table
        before = key in self.going
        if table.state.is_over:
            self.going.pop(key, None)
        else:
            self.going[key] = table
        if before != (key in self.going):
            self._going[key.snapshot] += -1 if before else 1
            if not self._going[key.snapshot]:
                del self._going[key.snapshot]

    def _told(self, key: TableKey) -> TableProgress:
        snapshot, source, database, table = key
        places = ((source, database, table), ("", database, table), (source, "", ""), ("", "", ""))
        events = [event for place in places for event in self._said.get(TableKey(snapshot, *place), ())]
        return _table(self._requests[key], sorted(events, key=lambda event: event.recorded_at))


def progress(events: Iterable[SnapshotEvent]) -> dict[TableKey, TableProgress]:
    """(snapshot, source, database, table) -> how far it is. events: in any order, of any number of snapshots."""
    tally = Tally()
    tally.take_in(events)
    return tally.tables


def _table(request: SnapshotEvent, events: list[SnapshotEvent]) -> TableProgress:
    state = SnapshotState.REQUESTED
    for step in events:
        after = _STATE_OF.get(step.event, state)
        # What is over stays over. A range read while a person pauses doesn't resume. What has ended is beyond a pause.
        paused = state is SnapshotState.PAUSED and step.event is EventKind.RANGES
        ended = state is SnapshotState.ENDED and step.event is EventKind.PAUSED
        state = state if state.is_over or paused or ended else after
    waves = sorted((event for event in events if event.event is EventKind.WAVE), key=lambda event: event.wave)
    applied = [event for event in events if event.event is EventKind.APPLIED]
    refused = {event.token: event for event in events if event.event is EventKind.REFUSED}
    answered = refused.keys() | {event.token for event in applied}
    last = max((event.wave for event in waves if event.token in answered), default=0)
    lost = {event.token for event in waves if event.wave < last and event.token not in answered}
    waiting = [event for event in waves if event.token not in answered | lost]
    ranges = next((event.spans for event in reversed(events) if event.event is EventKind.RANGES), (WHOLE,))
    counted = [event for event in waves if event.token not in refused.keys() | lost]
    is_begun = bool(waves) or any(event.event is EventKind.RANGES for event in events)
    # What is done has nothing left, even when upkeep has taken away what was read (worth_keeping.py).
    reads = (ReadSpans(event.spans, event.token in refused.keys() | lost) for event in waves)
    left = () if state is SnapshotState.DONE else left_of(ranges, reads)
    # A pause stops reading. What is read already is marked, and ends.
    state = SnapshotState.RUNNING if state is SnapshotState.PAUSED and not left else state
    return TableProgress(
        snapshot=request.snapshot,
        source=request.source,
        database=request.database,
        table=request.table,
        state=SnapshotState.RUNNING if state is SnapshotState.REQUESTED and is_begun else state,
        left=left,
        waiting=tuple(event.token for event in waiting),
        low_ts=min((event.low_ts for event in applied if event.low_ts is not None), default=None),
        waves=len(counted),
        rows=sum(event.rows for event in counted),
        bytes=sum(event.bytes for event in counted),
        refused=tuple(event.reason for event in refused.values()),
        options=request.options,
        reason=next((event.reason for event in reversed(events) if event.reason), ""),
        # Apply, which cancels what a DDL ends, says why.
        by_hand=any(event.event is EventKind.CANCELLED and not event.reason for event in events),
        told_at=events[-1].recorded_at,
        estimate=max((event.rows for event in events if event.event is EventKind.RANGES), default=0),
        asked_at=request.recorded_at,
        began_at=next((event.recorded_at for event in events if event.event is EventKind.RANGES), _NEVER),
        read_at=max((event.recorded_at for event in waves), default=_NEVER),
        waiting_at={event.token: server for event in waiting if (server := _server(event)) is not None},
        ended_at=_server(ends[-1]) if (ends := [event for event in events if event.event is EventKind.ENDED]) else None,
        view=_view(events, max((event.wave for event in waves), default=0)),
        read_by=_told(events, "read_by"),
        order=_told(events, "order"),
    )


def _view(events: list[SnapshotEvent], last: int) -> View | None:
    """The newest, unless a wave came after it. last: the number of the last wave read."""
    views = [event for event in events if event.meaning is Meaning.VIEW_OF_TABLE and event.wave > last]
    newest = max(views, key=lambda event: event.wave, default=None)
    return None if newest is None else View(newest.wave, newest.token, newest.low_ts or 0)


def _told(events: list[SnapshotEvent], what: str) -> tuple[str, ...] | None:
    """The option of this name in the newest ranges."""
    said = next((event.options.get(what) for event in reversed(events) if event.event is EventKind.RANGES), None)
    return None if said is None else tuple(said)


def _server(event: SnapshotEvent) -> Server | None:
    server = event.options.get("server")
    return (int(server[0]), str(server[1])) if server else None
