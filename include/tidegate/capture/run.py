"""One capture run of one source: socket -> segments -> value log -> bronze, for a while.

In:  a pipeline, the name of a source in it, its connection; bronze and the value log as the last run left them.
Out: bronze/segments, continued; a CaptureResult.

Order of things, and why it loses nothing: a segment is written to the value log and synced before the lander
may see it; bronze is appended exactly once per seq; on start the value log's segments that bronze lacks land
first, and the server is asked for what follows the last of them. Nothing at all is written before the lake,
the connection, the server's settings and our grants are found good.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tidegate import limits
from tidegate.capture.checkpoint import Checkpoint
from tidegate.capture.lander import Lander, LanderSettings, Placed
from tidegate.capture.patience import Patience
from tidegate.capture.progress import CaptureProgress, CaptureResult, Reason
from tidegate.capture.recovery import Recovered, open_and_recover
from tidegate.capture.source_lease import SourceLease
from tidegate.capture.status_file import Logbook
from tidegate.capture.value_log.log import Budget, ValueLog, value_log_folder
from tidegate.commit_ts import physical_ms
from tidegate.config import Pipeline
from tidegate.errors import ConfigError, LakeUnavailable, SourceBehind, SourceUnavailable
from tidegate.failpoint import failpoint
from tidegate.home import home
from tidegate.lake.bronze import Bronze, check_writable
from tidegate.lake.files import LakeFiles, lake_files
from tidegate.mysql.clock_connection import Side
from tidegate.mysql.connection import ConnectionInfo, answer_seconds
from tidegate.mysql.continuity import Captured
from tidegate.mysql.server_facts import SourceFacts
from tidegate.mysql.source_clock import SourceClock
from tidegate.mysql.start.position import dump_request, first_checkpoint, going_on
from tidegate.mysql.stream.cutter import Cutter, CutterSettings
from tidegate.mysql.stream.dump_stream import DumpStream
from tidegate.position import Position
from tidegate.schema.ddl.reader import tables_named
from tidegate.schema.model.server_settings import ServerSettings
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentKind

log = logging.getLogger(__name__)

_ROOM_BYTES = 1 << 20  # of frames and contexts


@dataclass(slots=True)
class CaptureRun:
    """A run. on_first_start(facts, position) is called before the first segment of a source; without it the schema
    baseline is recorded there. It may raise SourceUnavailable (a DDL ran meanwhile): then the start is tried again.
    state_dir holds the value log unless the pipeline file names a folder.
    """

    pipeline: Pipeline
    source_name: str
    connection: ConnectionInfo
    state_dir: Path
    storage_options: dict[str, str] = field(default_factory=dict, repr=False)
    on_first_start: Callable[[SourceFacts, Position], None] | None = None

    @property
    def lake(self) -> LakeFiles:
        return lake_files(self.pipeline.lake.path, home(), self.storage_options)

    def run(
        self,
        run_for_seconds: float,
        idle_seconds: float | None = None,
        stop: threading.Event | None = None,
        on_progress: Callable[[CaptureProgress], None] | None = None,
    ) -> CaptureResult:
        """Capture until the time is up, nothing new came for idle_seconds, or stop is set.

        Raises Terminal errors at once; a lost connection is made anew while time is left, except the first.
        """
        if self.source_name not in self.pipeline.sources:
            raise ConfigError(
                f"source {self.source_name!r} isn't in pipeline {self.pipeline.pipeline}",
                where=f"sources: {', '.join(self.pipeline.sources)}",
                remedy="name one of these",
            )
        try:
            check_writable(self.lake)
        except LakeUnavailable as error:
            log.warning("%s", error)  # capture may go on without it; see recovery
        with SourceLease(self.lake, self.source_name, stop or threading.Event()) as lease:
            loop = _Loop(self, time.monotonic() + run_for_seconds, idle_seconds, lease, on_progress)
            side = loop.start()
            try:
                return loop.land_and_read(side)
            finally:
                loop.value_log.close()


class _Loop:
    """What lives as long as a run, over several connections."""

    value_log: ValueLog

    def __init__(
        self,
        run: CaptureRun,
        deadline: float,
        idle_seconds: float | None,
        lease: SourceLease,
        on_progress: Callable[[CaptureProgress], None] | None,
    ) -> None:
        self.run = run
        self.lease = lease
        self.settings = run.pipeline.capture
        self.source = run.pipeline.sources[run.source_name]
        self.deadline = deadline
        self.idle_seconds = idle_seconds
        self.stop = lease.stop
        self.on_progress = on_progress
        self.checkpoint = Checkpoint.start()
        self.recovered: Recovered
        self.captured: Captured
        self.segments = 0
        self.bytes = 0
        self.news_at = time.monotonic()
        self.land_at: float | None = None
        self.landed_at = 0.0
        self.clock = SourceClock(run.connection.where)
        self.told_at = time.monotonic()
        self.told_bytes = 0
        self.behind_until = math.inf  # so long a replica that lacks what is captured may catch up

    def start(self) -> Side:
        """Connect and find where to go on. Nothing is written before the source is found good."""
        attempt = 0
        while True:
            attempt += 1
            side = self._side()
            try:
                self.lease.take()
                self._recover(side.facts)
            except SourceUnavailable as error:
                side.close()
                last = attempt >= limits.START_ATTEMPTS_MAX and not isinstance(error, SourceBehind)
                if last or time.monotonic() >= self.deadline or self.stop.wait(min(attempt, limits.START_ATTEMPTS_MAX)):
                    raise
            except BaseException:
                side.close()
                raise
            else:
                return side

    def _side(self) -> Side:
        patience = answer_seconds(self.settings.heartbeat_seconds)
        return Side.open(self.run.connection, self.run.pipeline, self.run.source_name, self.clock, patience)

    def _recover(self, facts: SourceFacts) -> None:
        """Find where bronze and the value log end; a first start records its baseline. Raises PositionLost, Fenced."""
        name, run, settings = self.run.source_name, self.run, self.settings
        self.bronze = Bronze(run.lake, name, compression=settings.compression)
        budget = Budget(settings.value_log_bytes_max, settings.value_log_reserve_bytes)
        folder = value_log_folder(run.pipeline, name, run.state_dir)
        self.value_log, self.recovered = open_and_recover(self.bronze, folder, budget, promised=self.source.semi_sync)
        try:
            self.captured = Captured(self.bronze, self.value_log, self.recovered.tail)
            found = self.recovered.checkpoint
            if found.seq:
                self.checkpoint = self._going_on(facts, found)
            else:
                self.checkpoint = first_checkpoint(run, facts, self.captured)
            failpoint("capture_after_first_start")
        except BaseException:
            self.value_log.close()
            raise
        self.logbook = Logbook(self.value_log, self.clock)

    def _going_on(self, facts: SourceFacts, checkpoint: Checkpoint) -> Checkpoint:
        try:
            return going_on(self.run, facts, self.captured, checkpoint, patient=time.monotonic() < self.behind_until)
        except SourceBehind:
            self.behind_until = min(self.behind_until, time.monotonic() + self.settings.failover_wait_seconds)
            raise

    def land_and_read(self, side: Side) -> CaptureResult:
        """Land what the value log had, then read until something ends the run."""
        settings, newest = self.settings, self.recovered.newest
        self.lander = Lander(
            self.bronze,
            self.value_log,
            LanderSettings(
                settings.land_bytes,
                settings.queue_bytes,
                settings.slow_seconds,
                settings.hold_seconds,
                settings.return_seconds,
            ),
            self.lease.check,
        )
        if newest is not None:
            self.lander.committed([newest])
        if self.recovered.backlog is not None:
            self.lander.begin(self.recovered.backlog)
        try:
            with self.lander:
                reason = self._read_over_connections(side)
                if not self.lander.drain():
                    log.warning("bronze lacks %d bytes that the value log has", self.lander.behind_bytes)
        finally:
            self.logbook.write(self.lander, self.checkpoint.seq, self.bytes)
        self.value_log.gc(self.lander.whole_seq)
        point = self.checkpoint
        return CaptureResult(reason, self.segments, self.bytes, point.seq, point.resolved_ts, point.position)

    def _read_over_connections(self, side: Side) -> Reason:
        patience = Patience(self.deadline)
        while True:
            heard = self.bytes
            try:
                return self._read(side)
            except SourceUnavailable as error:
                fresh = self._renewed(side, error, patience, heard=self.bytes > heard)
            if fresh is None:
                return "stopped"
            side = fresh

    def _renewed(self, side: Side, why: SourceUnavailable, patience: Patience, *, heard: bool) -> Side | None:
        """A new side connection as soon as the server answers; None when told to stop meanwhile."""
        side.close()
        while True:
            wait = patience.wait_seconds(why, heard=heard)
            log.warning("connection lost, trying again in %s s: %s", wait, why)
            if self.stop.wait(wait):
                return None
            try:
                return self._renew()
            except SourceUnavailable as error:
                why, heard = error, False

    def _renew(self) -> Side:
        with ExitStack() as unless_good:
            fresh = self._side()
            unless_good.callback(fresh.close)
            self.checkpoint = self._going_on(fresh.facts, self.checkpoint)
            unless_good.pop_all()
        return fresh

    def _read(self, side: Side) -> Reason:
        facts, run = side.facts, self.run
        folds = ServerSettings.of(facts.variables).folds_names
        side.clock_ms()  # before the stream: a dead side connection must not look like a new stream

        def ddl_tables(sql: str, database: str, sql_mode: int) -> list[str]:
            return tables_named(sql, database, sql_mode=sql_mode, server_version=facts.version, folds_names=folds)

        source, size = self.source, self.settings.segment_bytes
        cutting = CutterSettings(run.source_name, facts.flavour, source.dump, size, ddl_tables, source.semi_sync)
        cutter = Cutter(cutting, self.checkpoint, facts.server_id, facts.server_uuid)
        stream = DumpStream.open(run.connection, dump_request(run.pipeline, run.source_name, facts, self.checkpoint))
        self.news_at = time.monotonic()  # quiet is what a server is that was asked
        try:
            return self._until_done(stream, cutter, side)
        finally:
            stream.close()

    def _until_done(self, stream: DumpStream, cutter: Cutter, side: Side) -> Reason:
        clock_ms: int | None = None
        while True:
            now = time.monotonic()
            reason = self._over(now)
            if reason is not None:
                last = cutter.cut_soon()
                self._keep([last] if last else [], cutter)
                return reason
            # Inside a transaction nothing is due before more of it comes.
            due = None if cutter.open else self.land_at
            wait = limits.CAPTURE_POLL_SECONDS if due is None else min(max(due - now, 0.0), limits.CAPTURE_POLL_SECONDS)
            quiet = not stream.receive(cutter.state, max(wait, 0.001)) and not cutter.waiting_bytes
            if quiet:  # the later it is read, the more it proves
                clock_ms = side.clock_ms()
            self._keep(list(cutter.advance(stream, side.source_ms)), cutter)
            if cutter.asked_at is not None:
                self._reply(stream, cutter)
            if self.land_at is not None and time.monotonic() >= self.land_at:
                last = cutter.cut_soon()
                self._keep([last] if last else [], cutter)
                if not cutter.waiting_bytes:
                    self._land()
            if cutter.heartbeat_at is not None:
                cutter.heartbeat_at = None
                self._heartbeat(cutter, clock_ms)
                clock_ms = None
            self._tell(cutter, side)

    def _reply(self, stream: DumpStream, cutter: Cutter) -> None:
        """A commit waits at the source: what it wrote is made durable now, then the server hears so."""
        self._keep(cutter.cut_now(), cutter)
        asked_at, cutter.asked_at = cutter.asked_at, None
        if asked_at is not None:
            failpoint("capture_before_reply")
            stream.acknowledge(asked_at)

    def _over(self, now: float) -> Reason | None:
        """Whether and why to end. A lake that fails keeps a run going beyond its time: the next couldn't ask it."""
        if self.stop.is_set():
            return "stopped"
        if now >= self.deadline and not self.lander.troubled:
            return "time"
        if self.idle_seconds is not None and now - self.news_at >= self.idle_seconds and not self.lander.chasing:
            return "idle"
        return None

    def _heartbeat(self, cutter: Cutter, clock_ms: int | None) -> None:
        """The server was idle after clock_ms was read: nothing at or before it can still come."""
        segment = cutter.heartbeat(clock_ms) if clock_ms is not None else None
        if segment is not None:
            self._keep([segment], cutter)
            self._land()
            failpoint("capture_after_heartbeat")

    def _land(self) -> None:
        self.lander.flush()
        self.land_at, self.landed_at = None, time.monotonic()

    def _keep(self, segments: list[Segment], cutter: Cutter) -> None:
        """Make segments durable, then hand them to the lander."""
        if cutter.waiting_bytes or segments:
            now = time.monotonic()
            if cutter.waiting_bytes or segments[-1].kind is not SegmentKind.HEARTBEAT:
                self.news_at = now
            if self.land_at is None:  # what comes after a pause needn't wait, what comes all the time lands together
                self.land_at = max(now + limits.LAND_SECONDS_MIN, self.landed_at + self._land_seconds)
        if not segments:
            return
        self._wait_for_room(sum(len(segment.payload) for segment in segments))
        self.lander.hold()
        failpoint("capture_before_value_log")
        placed = [Placed(self.value_log.append(segment), segment) for segment in segments]
        self.value_log.sync()
        failpoint("capture_after_value_log_sync")
        self.checkpoint = cutter.checkpoint
        self.captured.add(segments)
        self.clock.note(segments)
        self.segments += len(segments)
        self.bytes += sum(len(segment.payload) for segment in segments)
        self.lander.put(placed)
        self.value_log.gc(self.lander.whole_seq)

    @property
    def _land_seconds(self) -> float:
        return max(self.run.pipeline.land_seconds, self.bronze.live_files * limits.BRONZE_FILE_LAND_SECONDS)

    def _wait_for_room(self, size: int) -> None:
        """A lake that is slower than the source, but takes what it is given, slows the reader down at the budget's end.

        One that takes nothing doesn't: append then says that the log is full.
        """
        took_at, seq = time.monotonic(), self.lander.committed_seq
        while self.lander.chasing and self.value_log.room_bytes() < 2 * size + _ROOM_BYTES:
            self.value_log.gc(self.lander.whole_seq)
            if self.lander.committed_seq != seq:
                took_at, seq = time.monotonic(), self.lander.committed_seq
            if time.monotonic() - took_at > limits.DISK_LOOK_SECONDS or self.stop.wait(limits.CAPTURE_POLL_SECONDS):
                return

    def _tell(self, cutter: Cutter, side: Side) -> None:
        now = time.monotonic()
        if now - self.told_at < limits.PROGRESS_SECONDS:
            return
        side.keep_time()
        resolved_ms = physical_ms(cutter.resolved_ts)
        retention = side.retention(self.checkpoint.file, resolved_ms)
        lifeboat = self.logbook.write(self.lander, self.checkpoint.seq, self.bytes, retention)
        if self.on_progress is None:
            self.told_at, self.told_bytes = now, self.bytes
            return
        self.on_progress(
            CaptureProgress(
                segments=self.segments,
                bytes=self.bytes,
                bytes_per_second=(self.bytes - self.told_bytes) / (now - self.told_at),
                last_seq=self.checkpoint.seq,
                landed_seq=self.lander.committed_seq,
                queued_bytes=self.lander.queued_bytes,
                lifeboat=lifeboat,
                lag_seconds=max(0.0, (side.source_ms - resolved_ms) / 1000) if resolved_ms else 0.0,
                position=self.checkpoint.position,
            )
        )
        self.told_at, self.told_bytes = now, self.bytes
