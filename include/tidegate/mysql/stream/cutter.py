"""Cut a stream of events into segments.

In:  a DumpStream, and the Checkpoint before the first segment.
Out: Segments with every column of bronze/segments, ready for the value log.

It must hold: a segment's payload is one slice of one binlog file. The next segment begins where it
ended, or at the beginning of the next file, or (dump by GTID, between transactions) at the place given
by the server's GTIDs. A cut falls on a transaction's end, except in a transaction larger than a
segment; then `context` has what decoding needs. Artificial events and heartbeats are in no payload, and
move no position.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from tidegate.binlog import transaction_scan as scan
from tidegate.binlog.format.events import HEARTBEATS, EventHeader, EventType, is_made_up, read_header, type_name
from tidegate.capture.payload_memory import PayloadMemory
from tidegate.commit_ts import compose
from tidegate.config import DumpMode
from tidegate.errors import StreamCorrupt
from tidegate.limits import SEGMENT_BYTES_MAX
from tidegate.mysql.stream.carried import Carried
from tidegate.mysql.stream.cutter_settings import CutterSettings
from tidegate.mysql.stream.dump_stream import DumpStream
from tidegate.mysql.stream.event_facts import (
    BEGINNINGS,
    FRAME,
    compressed_query_names,
    described_format,
    flag_of,
    name_at,
    payload_names,
    query_names,
    restarted,
    rotate_target,
    tagged_gtid,
)
from tidegate.mysql.stream.gtid_tracker import GtidTracker
from tidegate.mysql.stream.packet_walk import LEAD, PAYLOAD_SLACK_BYTES, WalkStop, Workspace, take_event, walk
from tidegate.mysql.stream.place import BinlogCheckpoint, without_open
from tidegate.mysql.stream.quiet import LogEnd
from tidegate.mysql.stream.source_clock import Ceiling
from tidegate.position import Position
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.tables import EVERY_TABLE, SegmentFlag, SegmentKind

log = logging.getLogger(__name__)

_NEVER_CUT: Final = 1 << 62
_UNKNOWN: Final = -1  # a position at which no event can lie
_PAYLOADS_KEPT_MAX: Final = 16  # as many as the queue to bronze holds by default: a landing gives many back at once


class Cutter:
    """The state between the socket and the next segment; one per connection."""

    def __init__(
        self, settings: CutterSettings, checkpoint: BinlogCheckpoint, server_id: int, server_uuid: str
    ) -> None:
        self.settings = settings
        self.checkpoint = checkpoint
        self.asked_at: Position | None = None  # the server waits for our reply to what ends here
        self._server = (server_id, server_uuid)
        place = checkpoint.place
        self._same_server = checkpoint.seq > 0 and checkpoint.server == self._server
        self._file = place.file
        # By GTID the server chooses where in which file it begins: frame events before the first transaction
        # may be known already, or lie before what was asked for.
        self._seeking = settings.dump is DumpMode.GTID and not place.open
        self._format_description = b""
        self._gtids = GtidTracker(settings.flavour, place.gtid_executed, strict=settings.dump is DumpMode.GTID)
        self._memory = PayloadMemory(SEGMENT_BYTES_MAX + PAYLOAD_SLACK_BYTES, _PAYLOADS_KEPT_MAX)
        self._space = Workspace(place.replay_commit_ts)
        self.ceiling = Ceiling(self._space.transaction, place.replay_ceiling_ms)
        self._state = self._space.walk[0]
        self._state["position"] = _UNKNOWN if self._seeking and not self._same_server else place.replay_from
        self._state["stop_at"] = place.offset if place.open else 0
        self._state["lead"] = 0 if settings.semi_sync else LEAD
        self.log_end = LogEnd(int(self._state["position"]), settings.flavour, settings.dump)
        self._ddl_tables, self._carried = set[str](), Carried()
        self._flags = self._of_file = SegmentFlag(0)
        self._begin()

    @property
    def state(self) -> Any:
        """The walk's record, worked on by the stream's receive."""
        return self._state

    @property
    def where(self) -> str:
        return f"{self.settings.source} at {self._file}:{int(self._state['position'])}"

    @property
    def open(self) -> bool:
        """Whether the stream is inside a transaction."""
        return bool(self._space.transaction[scan.PHASE] != scan.IDLE)

    @property
    def reached(self) -> Position | None:
        """The server's position in its log, as far as it has sent the log; None while unknown."""
        at = int(self._state["position"])
        return None if at == _UNKNOWN or not self._file else Position.of(self._file, at)

    @property
    def waiting_bytes(self) -> int:
        """Bytes taken and not yet cut."""
        return int(self._state["length"])

    @property
    def resolved_ts(self) -> int:
        transaction = self._space.transaction
        return int(transaction[scan.BEFORE] if self.open else transaction[scan.PREVIOUS])

    def advance(self, stream: DumpStream, clock_ms: float = 0.0) -> Iterator[Segment]:
        """Walk the received stream; yields segments as they are cut. clock_ms: the source's clock
        now.

        Raises StreamCorrupt, or the server's refusal.
        """
        state = self._state
        if clock_ms:
            self.ceiling.rise(clock_ms, replaying=bool(state["stop_at"]))
        while True:
            stop = walk(stream.received, self._space.arrays)
            if state["asked_at"]:
                self.asked_at, state["asked_at"] = Position.of(self._file, int(state["asked_at"])), 0
            if stop == WalkStop.MORE:
                # What comes later needs another ceiling than a segment where it changed something.
                if self.ceiling.row_ms and (last := self.cut_soon()):
                    yield last
                return
            if stop == WalkStop.SERVER:
                raise stream.refusal(state)
            if stop == WalkStop.BIG:
                yield from self._take_big(stream.read_big_event(state))
                continue
            skip, segments = self._decide(WalkStop(stop), stream.received, int(state["event_at"]))
            if skip:
                state["read"] += state["lead"] + state["event_length"]
            yield from segments

    def cut_soon(self) -> Segment | None:
        """Cut now when no transaction is open; else as soon as it ends (None meanwhile)."""
        if self.open or self._state["stop_at"]:
            self._state["soft"] = 0 if not self._state["stop_at"] else _NEVER_CUT
            return None
        return self._cut() if self._state["length"] else None

    def cut_now(self) -> list[Segment]:
        """Cut though a transaction is open: the log before it must become durable."""
        return [] if self._state["stop_at"] else self._cut_all()

    def heartbeat(self, clock_ms: int) -> Segment | None:
        """A row that moves resolved_ts to the source's clock; None if it's no progress, or a payload waits."""
        resolved = compose(clock_ms)
        busy = self.open or self._state["length"] or self._state["stop_at"] or self._state["position"] == _UNKNOWN
        if busy or resolved <= self.resolved_ts:
            return None
        return self._between(SegmentKind.HEARTBEAT, resolved)

    def prepared(self, names: bytes, asked_at: Position) -> list[Segment]:
        """A row with the server's prepared branches when its log ended at asked_at, after everything before that.

        [] while its place hasn't come, and inside a transaction.
        """
        if self.open or self._state["stop_at"] or self.reached is None or self.reached < asked_at:
            return []
        return [*self._cut_all(), self._between(SegmentKind.PREPARED, self.resolved_ts + 1, names)]

    def _between(self, kind: SegmentKind, resolved: int, context: bytes = b"") -> Segment:
        """A row without bytes; resolved_ts moves at it."""
        before = self.resolved_ts
        self._space.transaction[scan.PREVIOUS] = self._prev_commit_ts = resolved
        return self._emit(kind, int(self._state["position"]), before, context)

    def _take_big(self, event: np.ndarray[Any, np.dtype[np.uint8]]) -> Iterator[Segment]:
        self._state["event_length"] = event.size
        while True:
            stop = WalkStop(take_event(event, 0, self._space.arrays))
            if stop is WalkStop.MORE:
                return
            skip, segments = self._decide(stop, event, 0)
            yield from segments
            if skip or stop is WalkStop.CUT:
                return

    def _decide(self, stop: WalkStop, data: np.ndarray[Any, np.dtype[np.uint8]], at: int) -> tuple[bool, list[Segment]]:
        """(whether to pass over the event, segments cut) for a stop of the walk; the walk then goes on."""
        if stop is WalkStop.CUT:
            return False, self._cut_all()
        if stop in (WalkStop.FULL, WalkStop.FLUSH):
            self._state["take"] = 0  # what was marked of a notable event is to be said of its own segment
            if self._state["length"] == 0:  # one event larger than a segment: a segment of its own
                self._begin(int(self._state["event_length"]))
                return False, []
            return False, self._cut_all()
        whole = data[at : at + int(self._state["event_length"])]
        event = bytes(whole[: 1 << 20])
        if stop is WalkStop.BAD_LENGTH:
            raise StreamCorrupt(f"an event has a wrong length: {event[:32].hex()}", where=self.where, remedy=_REMEDY)
        header = read_header(event)
        if stop is WalkStop.BAD_CHECKSUM:
            raise StreamCorrupt(f"wrong checksum in {type_name(header.type)}", where=self.where, remedy=_REMEDY)
        if stop is WalkStop.BAD_POSITION:
            return self._elsewhere(header)
        return self._notable(header, event, whole)

    def _notable(
        self, header: EventHeader, event: bytes, whole: np.ndarray[Any, np.dtype[np.uint8]]
    ) -> tuple[bool, list[Segment]]:
        kind = header.type
        if kind in HEARTBEATS:
            self._note_heartbeat(header.next_pos)
            return True, []
        if kind == EventType.FORMAT_DESCRIPTION:
            self._format_description, self._space.transaction[scan.CHECKSUM] = described_format(event, self.where)
            self._of_file = self.settings.of_file(self._format_description)
            if self.open and not is_made_up(header) and restarted(event) and not self._state["stop_at"]:
                self._give_up()
        if is_made_up(header) or (header.next_pos == 0 and not self.open):
            if kind == EventType.ROTATE:
                return True, self._to_file(*rotate_target(event))
            if not is_made_up(header):
                raise StreamCorrupt(f"{type_name(kind)} without a position", where=self.where, remedy=_REMEDY)
            return True, []
        if header.next_pos and (int(self._state["position"]) + header.size) & 0xFFFFFFFF != header.next_pos:
            return self._elsewhere(header)
        # Cut first, so that what is said of the event is said of its own segment.
        segments = self._cut_all() if self._state["length"] + header.size > self._state["hard"] else []
        if header.size > self._state["hard"]:
            self._begin(header.size)  # a segment of its own
        self._mark(kind, event, whole)
        self._state["take"] = 1
        return False, segments

    def _mark(self, kind: int, event: bytes, whole: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        """Add the next event to the segment's flags and tables, for planners."""
        checksum, ddl_tables = int(self._space.transaction[scan.CHECKSUM]), self.settings.ddl_tables
        if kind in (EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED):
            if kind == EventType.QUERY:
                said, names = query_names(whole.tobytes(), checksum, ddl_tables)
            else:
                said, names = compressed_query_names(whole, checksum, ddl_tables)
                self._space.transaction[scan.SAID] = said + 1
            self._flags, self._ddl_tables = self._flags | flag_of(said), self._ddl_tables.union(names)
            if self.open and self._begun_open and not self._state["opened_here"]:
                flag, earlier = self._carried.taken_back(said)
                self._flags, self._ddl_tables = self._flags | flag, self._ddl_tables | earlier
        elif kind == EventType.XA_PREPARE:
            self._flags |= SegmentFlag.HAS_PREWRITE
        elif kind == EventType.GTID_TAGGED:
            name, number = tagged_gtid(event)
            self._state["tagged_index"], self._state["tagged_number"] = self._gtids.tagged(name), number
        elif kind not in FRAME:
            self._ddl_tables.add(EVERY_TABLE)

    def _note_heartbeat(self, offset: int) -> None:
        """The server is at this offset and has nothing to send; while we seek, its GTIDs begin there."""
        position = int(self._state["position"])
        self.log_end.note(self._file, offset, position, took=not self._seeks())
        if self._seeking and not self._state["length"]:
            self._state["position"] = max(position, offset)
        self.log_end.stand(int(self._state["position"]))

    def _seeks(self) -> bool:
        if self._space.transaction[scan.MAX_BEGUN]:
            self._seeking = False
        return self._seeking

    def _elsewhere(self, header: EventHeader) -> tuple[bool, list[Segment]]:
        """Take an event that doesn't begin at the last one's end: known, or behind a leap that GTIDs prove."""
        position = int(self._state["position"])
        if self._seeks() and header.type in FRAME:
            return True, []
        end = header.next_pos if position == _UNKNOWN else position & ~0xFFFFFFFF | header.next_pos
        by_gtid = self.settings.dump is DumpMode.GTID and not self._state["stop_at"]
        if by_gtid and not self.open and end - header.size > position and header.type in FRAME | BEGINNINGS:
            segments = self._cut_all()
            self._state["position"] = end - header.size
            return False, segments
        raise StreamCorrupt(
            f"{type_name(header.type)} ends at {header.next_pos}, expected {position + header.size}",
            where=self.where,
            remedy=_REMEDY,
        )

    def _to_file(self, file: str, offset: int) -> list[Segment]:
        """A ROTATE made for this connection: the stream goes on in a file."""
        if file == self._file:
            return []
        segments = self._cut_all()
        self._file = file
        if self._seeks():
            named, ours = Position.of(file, offset), self.checkpoint.place.position
            known = self._same_server and named.base == ours.base and named.number >= ours.number
            offset = max(named, ours).offset if known else _UNKNOWN
        self._state["position"] = offset
        return segments

    def _give_up(self) -> None:
        """The server died while it wrote the open transaction, and began a file: it never ends, and changed nothing."""
        log.warning("%s: the server died inside the transaction before it, which is given up", self.where)
        transaction = self._space.transaction
        transaction[[scan.PREVIOUS, scan.CURRENT]] = transaction[scan.BEFORE]
        transaction[scan.PHASE] = scan.IDLE
        self.checkpoint, self._carried = without_open(self.checkpoint), Carried()
        self._begin()

    # --- cutting ------------------------------------------------------------------------------------

    def _begin(self, hard: int = SEGMENT_BYTES_MAX) -> None:
        self.ceiling.begin(is_open=self.open, replaying=bool(self._state["stop_at"]))
        self._space.begin_segment(self._memory.take(hard + PAYLOAD_SLACK_BYTES), hard)
        soft = 0 if self.ceiling.row_ms else self.settings.segment_bytes
        self._state["soft"] = _NEVER_CUT if self._state["stop_at"] else soft
        self._ddl_tables, self._flags = set[str](), SegmentFlag(0)
        self._begun_open, self._prev_commit_ts = self.open, self.resolved_ts
        self._open_commit_ts = int(self._space.transaction[scan.CURRENT]) if self.open else 0

    def _cut_all(self) -> list[Segment]:
        if not self._state["length"]:
            return []
        stop_at, position = int(self._state["stop_at"]), int(self._state["position"])
        if not stop_at:
            return [self._cut()]
        # Walking again what is captured: only its transaction is of interest.
        if position > stop_at or (position == stop_at and not self.open):
            what = f"what was captured up to {stop_at} looks different now"
            raise StreamCorrupt(what, where=self.where, remedy="is it another server?")
        if position == stop_at:
            self._state["stop_at"] = 0
        self._carried.take(self._space, self._tables(), is_open=self.open)
        self._begin()
        return []

    def _cut(self) -> Segment:
        state = self._state
        self._gtids.add(self._space.runs[: int(state["runs"])], self.where)
        self._seeks()
        segment = self._emit(SegmentKind.BINLOG, int(state["position"]) - int(state["length"]), self._prev_commit_ts)
        self._carried.take(self._space, self._tables(), is_open=self.open)
        self._begin()
        return segment

    def _emit(self, kind: SegmentKind, start: int, prev_commit_ts: int, context: bytes = b"") -> Segment:
        state, transaction = self._state, self._space.transaction
        payload = memoryview(self._space.payload.data)[: int(state["length"])].toreadonly()
        if state["payloads"]:
            self._look_inside(self._space.payload[: int(state["length"])])
        flags = self._flags | self._of_file | (SegmentFlag.OPEN_AT_START if self._begun_open else 0)
        flags |= SegmentFlag.OPEN_AT_END if self.open else 0
        flags |= SegmentFlag.HAS_PREPARED if kind is SegmentKind.PREPARED else 0
        segment = Segment(
            source=self.settings.source,
            seq=self.checkpoint.seq + 1,
            kind=kind,
            server_id=self._server[0],
            server_uuid=self._server[1],
            file=self._file,
            start_pos=start,
            end_pos=int(state["position"]),
            gtid_executed=str(self._gtids),
            prev_commit_ts=prev_commit_ts,
            min_commit_ts=self._open_commit_ts or int(transaction[scan.MIN_BEGUN]),
            max_commit_ts=int(transaction[scan.MAX_BEGUN]) or self._open_commit_ts,
            resolved_ts=self.resolved_ts,
            tables=tuple(sorted(self._ddl_tables | self._tables() | self._carried.tables())),
            flags=flags,
            event_count=int(state["event_count"]),
            txn_count=int(transaction[scan.TXN_ENDED]),
            context=context or self._carried.behind(self._format_description),
            payload=payload,
            payload_crc32c=crc32c(payload),
            captured_at=datetime.now(UTC),
            ceiling_ms=self.ceiling.row_ms,
        )
        self.checkpoint = self.checkpoint.after(segment)
        return segment

    def _look_inside(self, payload: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        """Add events inside compressed transactions to flags and tables, as if they weren't compressed."""
        checksum = int(self._space.transaction[scan.CHECKSUM])
        flags, names = payload_names(payload, checksum, self.settings.ddl_tables)
        self._flags |= flags
        self._ddl_tables.update(names)

    def _tables(self) -> set[str]:
        payload = self._space.payload
        return {name_at(payload, int(at)) for at in self._space.tables[: int(self._state["tables"])]}


_REMEDY: Final = "check the network and the server's disk; nothing of this segment was kept"
