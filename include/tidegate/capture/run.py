"""One capture run of one source, for a limited time: reader -> segments -> value log -> bronze.

In:  a pipeline, the name of a source in it, the source; bronze and the value log as the last run left them.
Out: bronze/segments, continued; a CaptureResult.

The order, and why it loses nothing: a segment is written to the value log and synced before the lander may see it.
Bronze is appended exactly once per seq. At the start, the value log's segments beyond bronze land first, and the source
is asked for the events after the last of them. Nothing at all is written before the lake and the source are checked.
capture/source.py has the duties of a source, and the four places that say how far capture is.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate import limits
from tidegate.capture.captured import Captured
from tidegate.capture.checkpoint import Checkpoint, is_landed
from tidegate.capture.lander import Lander, LanderSettings, LoggedSegment
from tidegate.capture.owing import Owing, owes
from tidegate.capture.progress import CaptureProgress, CaptureResult, Reason
from tidegate.capture.recovery import Recovered, check_reaches, open_and_recover
from tidegate.capture.retries import Retries
from tidegate.capture.source import Source, SourceReader
from tidegate.capture.source_lease import SourceLease
from tidegate.capture.status_file import StatusFile
from tidegate.capture.value_log.folder import remove_left, settled_folder
from tidegate.capture.value_log.log import Budget, ValueLog
from tidegate.commit_ts import physical_ms
from tidegate.config import Pipeline
from tidegate.errors import ConfigError, LakeUnavailable, SourceBehind, SourceUnavailable, TidegateError
from tidegate.failpoint import failpoint
from tidegate.lake.bronze.table import Bronze, check_writable
from tidegate.lake.figures.usage import capture_meter
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.followed import check_not_anothers
from tidegate.log_lines import known
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag

log = logging.getLogger(__name__)

_ROOM_BYTES = 1 << 20  # for frames and contexts


@dataclass(slots=True)
class CaptureRun:
    """source: gives the run's source, once per run(). state_dir: for the value log, if no key names its path."""

    pipeline: Pipeline
    source_name: str
    source: Callable[[], Source]
    state_dir: Path
    lake: LakeFiles

    def run(
        self,
        run_for_seconds: float,
        idle_seconds: float | None = None,
        stop: threading.Event | None = None,
        on_progress: Callable[[CaptureProgress], None] | None = None,
    ) -> CaptureResult:
        """Run until the time is up, until nothing new came for idle_seconds, or until stop is set. Raises Terminal
        errors at once. A lost connection is made again while time is left, but not the first one.
        """
        if self.source_name not in self.pipeline.sources:
            raise ConfigError(
                f"source {self.source_name!r} isn't in pipeline {self.pipeline.pipeline}",
                where=f"sources: {', '.join(self.pipeline.sources)}",
                remedy="name one of these",
            )
        try:
            check_writable(self.lake)
            check_not_anothers(self.lake, self.pipeline.pipeline)
        except LakeUnavailable as error:
            log.warning("%s", error)  # capture may go on without it; see recovery
        with SourceLease(self.lake, self.source_name, stop or threading.Event()) as lease:
            loop = _Loop(self, time.monotonic() + run_for_seconds, idle_seconds, lease, on_progress)
            with known(loop.place):
                reader = loop.start()
                try:
                    return loop.land_and_read(reader)
                finally:
                    loop.value_log.close()


class _Loop:
    """The state of a whole run, over several connections."""

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
        self.source = run.source()
        self.deadline = deadline
        self.idle_seconds = idle_seconds
        self.stop = lease.stop
        self.on_progress = on_progress
        self.checkpoint: Checkpoint[Any] = self.source.nothing
        self.recovered: Recovered
        self.captured: Captured
        self.segments = 0
        self.bytes = 0
        self.news_at = time.monotonic()
        self.land_at: float | None = None
        self.landed_at = 0.0
        self._end_asked = False  # whether the end of the open transaction is asked for, since a landing was due in it
        self.reported_at = time.monotonic()
        self.reported_bytes = 0
        self.behind_until = math.inf  # until then a replica that lacks captured events may catch up

    def place(self) -> dict[str, str | int]:
        """Fields for each line of our log: the pipeline, the source, and the end of the captured log."""
        return {"pipeline": self.run.pipeline.pipeline, "source": self.run.source_name} | self.checkpoint.in_log

    def start(self) -> SourceReader:
        """Connect, and find where to continue. Nothing is written before the source is checked."""
        attempt = 0
        while True:
            attempt += 1
            reader = self.source.connect()
            try:
                # The lease comes first: recovery records a first start's baseline, and the value log's debt.
                self.lease.take()
                self._recover(reader)
            except SourceUnavailable as error:
                reader.close()
                last = attempt >= limits.START_ATTEMPTS_MAX and not isinstance(error, SourceBehind)
                if last or time.monotonic() >= self.deadline or self.stop.wait(min(attempt, limits.START_ATTEMPTS_MAX)):
                    raise
            except BaseException:
                reader.close()
                raise
            else:
                return reader

    def _recover(self, reader: SourceReader) -> None:
        """Find where bronze and the value log end, or record a baseline. Raises PositionLost, Fenced."""
        name, run, settings, source = self.run.source_name, self.run, self.settings, self.source
        form, owner = settings.compression, run.pipeline.pipeline
        self.bronze = Bronze(run.lake, name, owner=owner, compression=form, continues=source.check_continues)
        folder = settled_folder(
            run.pipeline, name, run.state_dir, lambda segment: is_landed(segment, self.bronze.segment(segment.seq))
        )
        remove_left(folder)
        self.value_log, self.recovered = open_and_recover(
            self.bronze,
            folder,
            Budget(settings.value_log_bytes_max, settings.value_log_reserve_bytes),
            source.nothing,
            promised=source.promises or owes(folder),
            has_begun=source.has_begun,
        )
        owing, owes_newly = Owing(run.lake, name), False
        try:
            check_reaches(self.recovered, run.lake, run.pipeline, name)
            if source.promises:
                owes_newly = owing.begin(self.value_log)
            self.captured = Captured(self.bronze, self.value_log, self.recovered.tail)
            checkpoint = self.recovered.checkpoint
            if checkpoint.seq:
                self.checkpoint = self._resumed(reader, checkpoint)
            else:
                self.checkpoint = reader.first_checkpoint(self.captured)
            failpoint("capture_after_first_start")
        except BaseException:
            if owes_newly and self.recovered.backlog is None:  # nothing was acknowledged: capture may begin elsewhere
                owing.settle(self.value_log)
            self.value_log.close()
            raise
        self.status_file = StatusFile(self.value_log, lambda: source.clock)

    def _resumed(self, reader: SourceReader, checkpoint: Checkpoint[Any]) -> Checkpoint[Any]:
        try:
            return reader.resume(checkpoint, self.captured, patient=time.monotonic() < self.behind_until)
        except SourceBehind:
            self.behind_until = min(self.behind_until, time.monotonic() + self.settings.failover_wait_seconds)
            raise

    def land_and_read(self, reader: SourceReader) -> CaptureResult:
        """Land the value log's segments, then read until the run ends."""
        newest = self.recovered.newest
        self.lander = Lander(
            self.bronze,
            self.value_log,
            LanderSettings.of(self.settings),
            self.lease.check,
        )
        if newest is not None:
            self.lander.committed([newest])
        if self.recovered.backlog is not None:
            self.lander.begin(self.recovered.backlog)
        self.meter = capture_meter(self.run.lake, self.run.pipeline, self.run.source_name)
        try:
            with self.lander:
                reason = self._read_or_settle(reader)
                landed = self.lander.drain()
                if not landed:
                    log.warning("bronze lacks %d bytes that the value log has", self.lander.behind_bytes)
        finally:
            self.status_file.write(self.lander, self.checkpoint.seq, self.bytes)
            self.meter.close()
        self.value_log.gc(self.lander.whole_seq)
        if landed and self.source.promises:
            Owing(self.run.lake, self.run.source_name).settle(self.value_log)
        point = self.checkpoint
        return CaptureResult(reason, self.segments, self.bytes, point.seq, point.resolved_ts, point.end, landed)

    def _read_or_settle(self, reader: SourceReader) -> Reason:
        """After a stop nothing is owed to bronze, so capture may begin again on another machine."""
        try:
            return self._read_over_connections(reader)
        except TidegateError:
            with suppress(TidegateError):  # an error of the lander
                if self.source.promises and self.lander.drain():
                    Owing(self.run.lake, self.run.source_name).settle(self.value_log)
            raise

    def _read_over_connections(self, reader: SourceReader) -> Reason:
        retries = Retries(self.deadline)
        while True:
            heard = self.bytes
            try:
                reader.open(self.checkpoint)
                self.news_at = time.monotonic()  # the source counts as quiet only from its first answer on
                return self._until_done(reader)
            except SourceUnavailable as error:
                why = error
            finally:
                reader.close()
            fresh = self._renewed(why, retries, heard=self.bytes > heard)
            if fresh is None:
                return "stopped"
            reader = fresh

    def _renewed(self, why: SourceUnavailable, retries: Retries, *, heard: bool) -> SourceReader | None:
        """A new connection, as soon as the source answers; None if it is told to stop meanwhile."""
        while True:
            wait = retries.wait_seconds(why, heard=heard)
            log.warning("connection lost, trying again in %s s: %s", wait, why)
            if self.stop.wait(wait):
                return None
            try:
                return self._renew()
            except SourceUnavailable as error:
                why, heard = error, False

    def _renew(self) -> SourceReader:
        with ExitStack() as unless_good:
            fresh = self.source.connect()
            unless_good.callback(fresh.close)
            self.checkpoint = self._resumed(fresh, self.checkpoint)
            unless_good.pop_all()
        return fresh

    def _until_done(self, reader: SourceReader) -> Reason:
        while True:
            now = time.monotonic()
            reason = self._over(now)
            if reason is not None:
                self._keep(reader.cut_soon(), reader)
                return reason
            # Inside a transaction nothing is due until more of it comes.
            due = None if reader.in_transaction else self.land_at
            wait = limits.CAPTURE_POLL_SECONDS if due is None else min(max(due - now, 0.0), limits.CAPTURE_POLL_SECONDS)
            came = reader.receive(max(wait, 0.001))
            self._keep(came, reader)
            if reader.reply_due:
                self._reply(reader)
            if self.land_at is not None and time.monotonic() >= self.land_at:
                self._land_what_is_due(came, reader)
            proof = reader.heartbeat()
            if reader.sends_on:
                self.news_at = time.monotonic()
            if proof is not None:
                self._keep([proof], reader)
                self._land()
                failpoint("capture_after_heartbeat")
            self._tell(reader)

    def _reply(self, reader: SourceReader) -> None:
        """A commit waits at the source: make its rows durable now, then tell the source."""
        self._keep(reader.cut_now(), reader)
        failpoint("capture_before_reply")
        reader.acknowledge()

    def _over(self, now: float) -> Reason | None:
        """Whether to end, and why. While the lake fails a run doesn't end: the next run couldn't ask the lake."""
        if self.stop.is_set():
            return "stopped"
        if now >= self.deadline and not self.lander.troubled:
            return "time"
        if self.idle_seconds is not None and now - self.news_at >= self.idle_seconds and not self.lander.chasing:
            return "idle"
        return None

    def _land_what_is_due(self, came: Sequence[Segment], reader: SourceReader) -> None:
        """Land the log read so far. Inside a transaction, ask for its end, and land then.

        came: this turn's segments. A stream without pauses is always inside a transaction. Events after the
        requested end wait for the next time: otherwise each transaction would be cut and synced alone.
        """
        ended = self._end_asked and came and not came[-1].flags & SegmentFlag.OPEN_AT_END
        if not (ended and reader.in_transaction):
            last = reader.cut_soon()
            self._keep(last, reader)
            if not last and reader.waiting_bytes:
                self._end_asked = True
                return
        self._land()

    def _land(self) -> None:
        self.lander.flush()
        self._end_asked = False
        self.land_at, self.landed_at = None, time.monotonic()

    def _keep(self, segments: list[Segment], reader: SourceReader) -> None:
        """Make segments durable, then hand them to the lander."""
        if reader.waiting_bytes or segments:
            now = time.monotonic()
            if reader.waiting_bytes or segments[-1].has_bytes:
                self.news_at = now
            if self.land_at is None:  # after a pause it lands soon; in a steady stream much lands together
                self.land_at = max(now + limits.LAND_SECONDS_MIN, self.landed_at + self._land_seconds)
        if not segments:
            return
        self._wait_for_room(sum(len(segment.payload) for segment in segments))
        # While the lander returns to memory, nothing new may go into the log: it would never reach the end.
        self.lander.hold()
        failpoint("capture_before_value_log")
        placed = [LoggedSegment(self.value_log.append(segment), segment) for segment in segments]
        # First synced: if the checkpoint or bronze were ahead of this disk, a kill would lose what lies between.
        self.value_log.sync()
        failpoint("capture_after_value_log_sync")
        self.checkpoint = reader.checkpoint
        self.captured.add(segments)
        self.segments += len(segments)
        self.bytes += sum(len(segment.payload) for segment in segments)
        self.lander.put(placed)
        self.value_log.gc(self.lander.whole_seq)

    @property
    def _land_seconds(self) -> float:
        return max(self.run.pipeline.land_seconds, self.bronze.live_files * limits.BRONZE_FILE_LAND_SECONDS)

    def _wait_for_room(self, size: int) -> None:
        """A lake may be slower than the source, and still take everything. Then it slows the reader down when the
        log's budget is used up.

        If the lake makes no progress, there is no wait: append then reports a full log.
        """
        took_at, seq = time.monotonic(), self.lander.committed_seq
        while self.lander.chasing and self.value_log.room_bytes() < 2 * size + _ROOM_BYTES:
            self.value_log.gc(self.lander.whole_seq)
            if self.lander.committed_seq != seq:
                took_at, seq = time.monotonic(), self.lander.committed_seq
            if time.monotonic() - took_at > limits.DISK_LOOK_SECONDS or self.stop.wait(limits.CAPTURE_POLL_SECONDS):
                return

    def _tell(self, reader: SourceReader) -> None:
        now = time.monotonic()
        if now - self.reported_at < limits.PROGRESS_SECONDS:
            return
        reader.keep_time()
        self.meter.tick()
        resolved_ms = physical_ms(reader.resolved_ts)
        retention = reader.retention()
        status = self.status_file.write(self.lander, self.checkpoint.seq, self.bytes, retention)
        if self.on_progress is not None:
            self.on_progress(
                CaptureProgress(
                    segments=self.segments,
                    bytes=self.bytes,
                    bytes_per_second=(self.bytes - self.reported_bytes) / (now - self.reported_at),
                    last_seq=self.checkpoint.seq,
                    landed_seq=self.lander.committed_seq,
                    queued_bytes=self.lander.queued_bytes,
                    status=status,
                    lag_seconds=max(0.0, (reader.source_ms - resolved_ms) / 1000) if resolved_ms else 0.0,
                    position=self.checkpoint.end,
                )
            )
        self.reported_at, self.reported_bytes = now, self.bytes
