"""A Pump as capture's source: TiDB's writes are cut into segments, and acknowledged once capture has synced these.

In:  a PumpServer's writes; timestamps; what became of orphans.
Out: a PumpSource, whose readers keep the promises of capture/source.py.

How it keeps them. Nobody sends an acknowledged write again, so nothing is acknowledged before it is
in the value log: every write asks for a reply (reply_due), capture cuts and syncs, then
`acknowledge` answers. After a kill in between, TiDB has no answer and sends the write again; the
value log then has it once or twice. Writes that arrive together are one segment and one sync. TiDB
commits nothing while no Pump answers, so a Pump's own questions to TiDB are asked beside the stream
(aside.py).

Pairing gives the resolved_ts of this Pump's own stream (tidb/records/pairing.py). As a run begins, prewrites without an
answer are found again in the segments that may hold them: those with a timestamp at or above resolved_ts.

TiDB is asked for a prewrite without an answer (orphans.py), once the timestamps have gone on far
enough. Its answer is written into the stream as the lost Commit or Rollback, so a replay years
later finds it. Without one the prewrite waits, and holds resolved_ts back. A DDL holds it back,
too, until its job's record in TiDB's history is in the stream, and a Pump that begins, until the
list of present tables is (ddl.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from tidegate.capture.captured import Captured
from tidegate.capture.own_stream import NOTHING, StreamCheckpoint, StreamPlace, check_continues, following
from tidegate.capture.source import ClockState, Retention
from tidegate.errors import PositionLost, StreamCorrupt, TidegateError
from tidegate.pump.aside import Aside
from tidegate.pump.ddl import JobNotes, Jobs, waits_for
from tidegate.pump.door import Door
from tidegate.pump.orphans import Fates, PumpOrphans, Words
from tidegate.pump.registration import Registration
from tidegate.pump.server import PumpServer, Write
from tidegate.segments.segment import Segment
from tidegate.tables import TABLES_BY_ID, SegmentFlag, SegmentKind
from tidegate.tidb.records.enclosed import LENGTH_BYTES, joined, payloads_of
from tidegate.tidb.records.pairing import Pairing
from tidegate.tidb.records.payload import NOTES, Binlog, BinlogType, answer_payload, binlog_of, fake_payload

log = logging.getLogger(__name__)

_STOPPED: Final = "this Pump stops"
_NOT_ONLINE: Final = "this Pump isn't online: it takes no prewrites"


class Timestamps(Protocol):
    """PD's timestamps, from wherever they come."""

    def tso(self) -> int: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PumpSettings:
    """source: its name in the pipeline. node: the Pump's own. fates: None when TiDB's status port isn't known."""

    source: str
    node: str
    segment_bytes: int
    fake_seconds: float
    orphan_seconds: float
    clock: Callable[[], Timestamps]
    fates: Fates | None
    # Gives the segments that name a timestamp at or above the given one, oldest first, with their
    # payloads.
    stored: Callable[[Captured, int], Iterator[Segment]]
    jobs: Jobs | None = None  # TiDB's DDL history; None: only the text of a DDL is known
    words: Words | None = None  # decisions about what TiDB has no record of; None: nobody decides
    # The cluster's id, from PD or another Pump; asked while nothing is captured. None: nobody knows it.
    cluster: Callable[[], int | None] = lambda: None


class PumpSource:
    """server: it serves for as long as the run; the run's connections take from it."""

    nothing = NOTHING
    promises = True
    clock = ClockState()

    def __init__(
        self, settings: PumpSettings, server: Callable[[], PumpServer], registration: Registration | None = None
    ) -> None:
        self.settings = settings
        self.server = server
        self.registration = registration  # None: TiDB is given the address

    def has_begun(self) -> bool:
        """Whether its log has begun. The log begins with the list of tables, so a new lake takes it from seq 1 on, or
        not at all.
        """
        return True

    def connect(self) -> PumpReader:
        """Raises SourceUnavailable, SourceRefused."""
        return PumpReader(self)

    def check_continues(self, before: Segment, after: Segment) -> None:
        """Raises StreamCorrupt."""
        check_continues(before, after)


class PumpReader:
    """One Pump that serves; see SourceReader."""

    in_transaction = False
    sends_on = False

    def __init__(self, source: PumpSource) -> None:
        self._source = source
        self._settings = source.settings
        self._registration = source.registration
        self._timestamps = self._settings.clock()
        self._server: PumpServer | None = None
        self._pairing = Pairing[int]([self._settings.node])  # place: id of a DDL's job, or 0
        self._notes = JobNotes(self._settings.jobs)
        self._begins = False  # the tables that were there before aren't landed yet
        self._resolved = 0
        self._taken: list[tuple[bytes, Binlog]] = []
        self._writes: list[Write] = []
        self._cut: list[Write] = []
        self._told_tso = Aside[tuple[int, bytes | None]]("timestamps")
        self._fake_at = 0.0
        self._orphans = PumpOrphans(self._settings.fates, self._settings.orphan_seconds, self._settings.words)
        self.checkpoint = NOTHING
        self.waiting_bytes = 0

    # --- where to go on ----------------------------------------------------------------------------

    def first_checkpoint(self, captured: Captured) -> StreamCheckpoint:  # noqa: ARG002  nothing is captured
        """TiDB isn't asked: it may wait for this Pump to begin."""
        return StreamCheckpoint.before_all(StreamPlace(self._settings.node))

    def resume(self, checkpoint: StreamCheckpoint, captured: Captured, *, patient: bool) -> StreamCheckpoint:  # noqa: ARG002
        """Raises PositionLost when another Pump wrote under this name, or what is stored can't be read."""
        node = self._settings.node
        if checkpoint.place.name != node:
            raise PositionLost(
                f"the captured segments are of Pump {checkpoint.place.name}, and this one is {node}",
                where=self._settings.source,
                remedy="give each Pump a source of its own",
            )
        self._pairing = Pairing[int]([node], checkpoint.resolved_ts)
        self._resolved = checkpoint.resolved_ts
        for segment in self._settings.stored(captured, checkpoint.resolved_ts):
            for payload in payloads_of(segment):
                self._pair(binlog_of(payload))
        self._forget_committed()
        return checkpoint

    def open(self, checkpoint: StreamCheckpoint) -> None:
        """Serve. Raises HostRefused."""
        self.checkpoint = checkpoint
        if not checkpoint.seq:
            self._pairing = Pairing[int]([self._settings.node], checkpoint.resolved_ts)
        self._begins = checkpoint.resolved_ts == 0 and self._settings.jobs is not None
        self._server = self._source.server()
        self._know_cluster(self._server.door, checkpoint)
        self._server.start()
        self._tell_registration()
        if self._registration is not None:
            self._registration.serves()

    def _know_cluster(self, door: Door, checkpoint: StreamCheckpoint) -> None:
        """Each segment names the cluster as its server. Raises PositionLost."""
        door.known = self._settings.cluster
        _, kept = checkpoint.server
        known = int(kept) if kept else (None if door.cluster is not None else self._settings.cluster())
        if known is not None and (why := door.enters(known)):
            raise PositionLost(
                f"{why}, and its segments are of that one",
                where=self._settings.source,
                remedy="give another cluster's Pump a source of its own; or correct cluster_id",
            )

    # --- the stream --------------------------------------------------------------------------------

    @property
    def resolved_ts(self) -> int:
        reached = 0 if self._begins else self._notes.below(self._pairing.resolved_ts)
        self._resolved = max(self._resolved, reached)
        return self._resolved

    @property
    def reply_due(self) -> bool:
        return bool(self._writes or self._cut)

    @property
    def source_ms(self) -> float:
        return time.time() * 1000

    def receive(self, timeout_seconds: float) -> list[Segment]:
        """A refused or unanswered question is asked again."""
        assert self._server is not None, "open() was called"
        self._tell_registration()
        room = max(self._settings.segment_bytes - self.waiting_bytes, 1)
        for write in self._server.take(timeout_seconds, room):
            self._writes.append(write)
            self._take(write.payload, write.binlog)
        self._fake()
        for prewrite, commit_ts in self._orphans.answers(self._pairing, self._settings.node):
            payload = answer_payload(prewrite.start_ts, commit_ts, prewrite.key, prewrite.place)
            self._take(payload, binlog_of(payload))
        for payload in self._notes.finished():
            self._take(payload, binlog_of(payload))
        return self.cut_now() if self.waiting_bytes >= self._settings.segment_bytes else []

    def cut_now(self) -> list[Segment]:
        if not self._taken:
            return []
        taken, self._taken = self._taken, []
        self._cut += self._writes
        self._writes = []
        self.waiting_bytes = 0
        self._forget_committed()
        segment = self._segment(taken)
        self.checkpoint = self.checkpoint.after(segment)
        return [segment]

    cut_soon = cut_now

    def heartbeat(self) -> Segment | None:
        """None: a Pump's timestamps are payloads of its own."""
        return None

    def acknowledge(self) -> None:
        cut, self._cut = self._cut, []
        for write in cut:
            write.answer()

    def keep_time(self) -> None:
        pass

    def retention(self) -> Retention | None:
        return Retention(None, "", self._settings.node, 0)

    def close(self) -> None:
        """TiDB sends writes again that weren't synced."""
        for write in (*self._cut, *self._writes):
            write.answer(_STOPPED)
        self._cut, self._writes = [], []
        if self._server is not None:
            if self._registration is not None:
                self._server.refuse_prewrites(_NOT_ONLINE)
                self._registration.rests()
            self._server.close(_STOPPED)
            self._server = None
        self._timestamps.close()

    # --- what it does by itself --------------------------------------------------------------------

    def _tell_registration(self) -> None:
        registration, server = self._registration, self._server
        if registration is None or server is None:
            return
        if refuses := registration.refuses:
            server.refuse_prewrites(_NOT_ONLINE)
        unsaid = self._writes or self._cut or not server.idle
        empty = refuses and not (unsaid or self._pairing.oldest(1) or self._notes.waits)
        registration.tell(self.resolved_ts, self._pairing.latest_ts(self._settings.node), empty=empty)

    def _take(self, payload: bytes, binlog: Binlog) -> None:
        self._pair(binlog)
        self._taken.append((payload, binlog))
        self.waiting_bytes += len(payload) + LENGTH_BYTES

    def _pair(self, binlog: Binlog) -> None:
        """Pair a binlog. A contradiction is stored, too, and apply stops at it: refusing it would
        stop TiDB's commits.
        """
        self._notes.take(binlog)
        try:
            self._pairing.take(binlog, self._settings.node, waits_for(binlog))
        except StreamCorrupt as error:
            log.error("%s", error)  # noqa: TRY400  the line says it

    def _forget_committed(self) -> None:
        for _ in self._pairing.committed(self._pairing.resolved_ts):
            pass

    def _fake(self) -> None:
        """Write a timestamp of PD's into the stream when it is due: on a quiet cluster nothing else
        shows that time goes on. A late one is still true: whatever wasn't prepared when PD gave it
        out is committed above it.
        """
        now = time.monotonic()
        if now < self._fake_at:
            return
        if not self._told_tso.waits:
            self._told_tso.ask(partial(self._timestamp, lists=self._begins))
        try:
            answer = self._told_tso.answer()
        except TidegateError as error:  # a refusal, too: who mends a password must not find TiDB's commits stopped
            self._fake_at = now + self._settings.fake_seconds
            log.warning("no timestamp: while TiDB writes nothing, resolved_ts stands still: %s", error)
            return
        if answer is None:
            return
        self._fake_at = now + self._settings.fake_seconds
        tso, listed = answer
        if self._server is not None:
            self._server.door.saw(tso)
        if listed is not None:
            self._take(listed, binlog_of(listed))
            self._begins = False
        payload = fake_payload(tso)
        self._take(payload, binlog_of(payload))

    def _timestamp(self, *, lists: bool) -> tuple[int, bytes | None]:
        """A timestamp; with lists, also the tables that are there at it. A DDL that is committed
        meanwhile is above it.
        """
        tso = self._timestamps.tso()
        return tso, self._notes.begin(tso) if lists else None

    @property
    def _cluster(self) -> int | None:
        return self._server.door.cluster if self._server is not None else None

    def _segment(self, taken: list[tuple[bytes, Binlog]]) -> Segment:
        before, settings = self.checkpoint, self._settings
        payload = joined(payload_bytes for payload_bytes, _ in taken)
        binlogs = [binlog for _, binlog in taken]
        flags = SegmentFlag(0)
        if any(binlog.tp is BinlogType.PREWRITE for binlog in binlogs):
            flags |= SegmentFlag.HAS_PREWRITE
        if any(binlog.ddl_job_id or binlog.tp in NOTES for binlog in binlogs):
            flags |= SegmentFlag.HAS_DDL
        if any(binlog.tp is BinlogType.COMMIT for binlog in binlogs):
            flags |= SegmentFlag.HAS_ANSWER
        return replace(
            following(before, settings.source, payload),
            kind=SegmentKind.TIDB,
            server_uuid="" if (cluster := self._cluster) is None else str(cluster),
            min_commit_ts=min(binlog.start_ts for binlog in binlogs),
            max_commit_ts=self._pairing.latest_ts(settings.node),
            resolved_ts=self.resolved_ts,
            tables=(TABLES_BY_ID,),
            flags=flags,
            event_count=len(binlogs),
            txn_count=sum(binlog.tp is BinlogType.COMMIT for binlog in binlogs),
        )
