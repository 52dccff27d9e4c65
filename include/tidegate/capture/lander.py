"""The lander: a thread that appends segments to bronze while the reader reads on.

In:  segments the value log has already, in order of seq, with their places in it.
Out: commits of bronze, when enough bytes wait or when the reader asks for one; `committed_seq`.

The queue is bounded by bytes. If the reader waits for room longer than slow_seconds, or if the lake is out
of reach, the slow chaser starts: the queue is dropped, and the thread follows from the value log at
the lake's own pace, with one batch in memory. If the lake refuses, or any other error comes, the reader
gets the error at its next call. Nothing is lost: the value log has every segment without a
commit.

Order and exactly-once don't depend on a segment's way. One thread appends, each batch begins where the last
one ended, from memory as from disk, and bronze refuses gaps and repetitions.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Self

from tidegate.capture.chaser import ChaserStatus, SlowChaser
from tidegate.capture.checkpoint import check_attaches
from tidegate.capture.value_log.file import Pointer
from tidegate.capture.value_log.log import ValueLog
from tidegate.config import Capture
from tidegate.errors import LakeUnavailable
from tidegate.failpoint import failpoint
from tidegate.lake.bronze.table import Bronze
from tidegate.limits import LAKE_AGAIN_SECONDS_MAX
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag

log = logging.getLogger(__name__)


class LoggedSegment(NamedTuple):
    """A segment, and its place in the value log."""

    pointer: Pointer
    segment: Segment


@dataclass(frozen=True, slots=True)
class Backlog:
    """The value log's content beyond bronze when the run began. first: None if bronze couldn't be asked."""

    first: Pointer | None
    last: Pointer
    bytes: int


@dataclass(frozen=True, slots=True)
class LanderSettings:
    """As in the pipeline file's section `capture`."""

    land_bytes: int
    queue_bytes: int
    slow_seconds: float
    hold_seconds: float
    return_seconds: float

    @classmethod
    def of(cls, capture: Capture) -> LanderSettings:
        return cls(
            capture.land_bytes,
            capture.queue_bytes,
            capture.slow_seconds,
            capture.hold_seconds,
            capture.return_seconds,
        )


class Lander:
    """A context manager: the thread runs inside the block. Leaving it lands the waiting segments, except
    after an error.
    """

    def __init__(
        self, bronze: Bronze, value_log: ValueLog, settings: LanderSettings, may_land: Callable[[], None] = lambda: None
    ) -> None:
        self.committed_seq = 0
        self.whole_seq = 0  # the newest committed one that ends between transactions
        self.lake_error = ""
        self._bronze = bronze
        self._value_log = value_log
        self._settings = settings
        self._may_land = may_land  # called before each commit; it raises if another capture has begun
        self._land_bytes = min(settings.land_bytes, settings.queue_bytes)
        self._chaser = SlowChaser(settings.return_seconds)
        self._changed = threading.Condition()
        self._queue: list[LoggedSegment] = []
        self._bytes = 0  # of payloads in the queue, and in the batch that is being landed
        self._next: Pointer | None = None  # while chasing: place of the first record that isn't taken yet
        self._last: Pointer | None = None  # the newest record that may be landed
        self._behind_bytes = 0  # while chasing: of records from _next to _last
        self._unattached = False
        self._held_until: float | None = None
        self._landing_since: float | None = None
        self._due = False
        self._closing = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lander", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.drain()
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            self._thread.join()

    def committed(self, segments: Sequence[Segment]) -> None:
        """Bronze has these segments, the newest last."""
        self.committed_seq = segments[-1].seq
        # The value log may forget up to here, and no further: a start without the lake begins between two transactions.
        whole = (segment.seq for segment in reversed(segments) if not segment.flags & SegmentFlag.OPEN_AT_END)
        self.whole_seq = next(whole, self.whole_seq)

    # --- for the reader -----------------------------------------------------------------------------------

    @property
    def queued_bytes(self) -> int:
        """Bytes in memory: taken, and not committed yet."""
        return self._bytes

    @property
    def behind_bytes(self) -> int:
        """Bytes that only the value log has: neither committed nor in memory. 0 unless chasing."""
        return self._behind_bytes

    @property
    def chasing(self) -> bool:
        return self._chaser.on

    @property
    def troubled(self) -> bool:
        """Whether the lake fails, or the present landing takes long."""
        since = self._landing_since
        return bool(self.lake_error) or (
            since is not None and self._chaser.on and time.monotonic() - since > self._settings.slow_seconds
        )

    def status(self) -> ChaserStatus:
        with self._changed:
            return self._chaser.status()

    def begin(self, backlog: Backlog) -> None:
        """Call it before the thread starts: segments left in the value log land first."""
        self._next, self._last, self._behind_bytes = backlog.first, backlog.last, backlog.bytes
        self._unattached = backlog.first is None
        self._due = True
        self._chaser.turn_on("an earlier run left segments in the value log")

    def hold(self) -> None:
        """Call it before writing to the value log: it waits while the chaser returns, for hold_seconds at most."""
        with self._changed:
            if self._held_until is None:
                return
            self._changed.wait_for(lambda: self._held_until is None, max(0.0, self._held_until - time.monotonic()))
            # The time is up: None tells the thread to give up this return.
            self._held_until = None

    def put(self, placed: Iterable[LoggedSegment]) -> None:
        """Take synced segments: into the queue, or only as a place in the value log.

        Waits up to slow_seconds while the queue is full. Raises the thread's error.
        """
        for logged in placed:
            with self._changed:
                if not self._chaser.on:
                    room = self._changed.wait_for(self._has_room, self._settings.slow_seconds)
                    if not room:
                        self._turn_on(f"the lake took nothing more for {self._settings.slow_seconds:g} s")
                self._raise()
                self._last = logged.pointer
                if self._chaser.on:
                    self._next = self._next or logged.pointer
                    self._behind_bytes += logged.pointer.bytes
                    waiting = self._behind_bytes
                else:
                    self._queue.append(logged)
                    self._bytes += len(logged.segment.payload)
                    waiting = self._bytes
                if waiting >= self._land_bytes:
                    self._changed.notify_all()

    def flush(self) -> None:
        """Ask for a landing of the waiting segments. Doesn't wait for it."""
        with self._changed:
            self._raise()
            self._due = True
            self._changed.notify_all()

    def drain(self) -> bool:
        """Land the queue and wait for it. False if the chaser is on: then the value log has the
        rest.
        """
        self.flush()
        with self._changed:
            self._changed.wait_for(
                lambda: self._error or self._chaser.on or not (self._queue or self._landing_since is not None)
            )
            self._raise()
            return not self._chaser.on

    def _has_room(self) -> bool:
        return bool(self._error) or self._chaser.on or self._bytes < self._settings.queue_bytes

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _turn_on(self, reason: str) -> None:
        """Drop the queue: the value log has it. The caller holds the lock."""
        log.warning(
            "the lake is slower than the source: %s; segments wait in the value log, and capture goes on", reason
        )
        self._chaser.turn_on(reason)
        self._next = self._queue[0].pointer if self._queue else None
        failpoint("capture_at_chase_start")
        self._behind_bytes = sum(logged.pointer.bytes for logged in self._queue)
        # The batch that is being landed isn't in the queue any more. Its bytes count until it has landed.
        self._bytes -= sum(len(logged.segment.payload) for logged in self._queue)
        self._queue = []
        self._due = True
        self._changed.notify_all()

    # --- the thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            if self._unattached:
                self._attach()
            while self._wait():
                if self._chaser.on:
                    self._try_return()
                if batch := self._take():
                    if self._chaser.on:
                        failpoint("capture_in_first_catch_up")
                    self._land([logged.segment for logged in batch])
                    self._landed(batch)
        except BaseException as error:  # noqa: BLE001  handed to the reader, which raises it
            with self._changed:
                self._error = error
                self._landing_since = None
                self._changed.notify_all()

    def _wait(self) -> bool:
        """Wait until there is something to land, or a return to try. False when it is time to end."""
        with self._changed:
            while not self._closing:
                waiting = self._behind_bytes if self._chaser.on else self._bytes
                any_waits = waiting > 0 if self._chaser.on else bool(self._queue)  # a heartbeat has no payload
                if any_waits and (self._due or waiting >= self._land_bytes):
                    return True
                returns_in = self._chaser.may_return_in() if self._chaser.on else None
                if returns_in == 0 and self._behind_bytes <= self._settings.queue_bytes // 2:
                    return True
                self._changed.wait(returns_in or None)
            return False

    def _take(self) -> list[LoggedSegment]:
        """The next batch: the whole queue, or about land_bytes from the value log."""
        with self._changed:
            self._landing_since = time.monotonic()
            if not self._chaser.on:
                batch, self._queue, self._due = self._queue, [], False
                self._landing_since = self._landing_since if batch else None
                return batch
            start, last = self._next, self._last
            if start is None or last is None or not self._behind_bytes:
                self._landing_since, self._due = None, False
                return []
        # Without the lock, so the reader may append meanwhile: records up to `last` are synced, and don't change.
        batch, size = [], 0
        for pointer, segment in self._value_log.segments_from(start, last):
            batch.append(LoggedSegment(pointer, segment))
            size += len(segment.payload)
            if size >= self._land_bytes:
                break
        with self._changed:
            newest = batch[-1].pointer
            self._next = Pointer(newest.file, newest.end, 0)
            self._behind_bytes -= sum(logged.pointer.bytes for logged in batch)
            self._bytes += size
            self._due = self._behind_bytes > 0  # the rest is due at once: it has waited
        return batch

    def _land(self, batch: list[Segment]) -> None:
        """Append a batch, however long the lake is out of reach. Raises errors that don't pass by waiting,
        and any error when closing.
        """
        wait = 1.0
        while True:
            try:
                failpoint("capture_before_bronze_commit")
                self._may_land()
                self._bronze.append(batch)
                failpoint("capture_after_bronze_commit")
                # Only a landing under the lease counts. Without it, the lake may have been moved away before this
                # commit: then the value log must keep these segments. If they come again, bronze has them already.
                self._may_land()
            except LakeUnavailable as error:
                wait = self._after_failure(error, wait)
            else:
                self.lake_error = ""
                return

    def _after_failure(self, error: LakeUnavailable, wait: float) -> float:
        """Wait before the lake is tried again. Returns the next wait. Raises the error if the run is ending."""
        self.lake_error = str(error)
        log.warning("the lake fails, trying again in %.0f s; the value log keeps what comes: %s", wait, error)
        with self._changed:
            if not self._chaser.on:
                self._turn_on("the lake takes nothing")
            if self._changed.wait_for(lambda: self._closing, wait):
                raise error
        return min(2 * wait, LAKE_AGAIN_SECONDS_MAX)

    def _landed(self, batch: list[LoggedSegment]) -> None:
        with self._changed:
            self._landing_since = None
            self.committed([logged.segment for logged in batch])
            self._bytes -= sum(len(logged.segment.payload) for logged in batch)
            batch.clear()  # the payloads' memory is free before the reader wants more
            self._changed.notify_all()

    def _try_return(self) -> None:
        """The second catch-up: the rest goes into the queue while the reader is held."""
        with self._changed:
            few = self._behind_bytes <= self._settings.queue_bytes // 2
            if not few or self._chaser.may_return_in() > 0:
                return
            self._chaser.begin_return()
            self._held_until = time.monotonic() + self._settings.hold_seconds
            start, last = self._next, self._last
        rest: list[LoggedSegment] = []
        while True:
            if start is not None and last is not None:
                rest += [LoggedSegment(*placed) for placed in self._value_log.segments_from(start, last)]
            failpoint("capture_in_second_catch_up")  # the reader is held
            with self._changed:
                # The reader may have been working when it was held. A second round reads what it put then.
                done, again = self._last == last, self._held_until is not None
                if done or not again:
                    self._end_return(rest, done=done)
                    return
                start = Pointer(rest[-1].pointer.file, rest[-1].pointer.end, 0) if rest else self._next
                last = self._last

    def _end_return(self, rest: list[LoggedSegment], *, done: bool) -> None:
        """Let the reader go on. The caller holds the lock."""
        self._chaser.end_return(done=done)
        self._held_until = None
        if done:
            self._queue, self._next, self._behind_bytes = rest, None, 0
            self._bytes += sum(len(logged.segment.payload) for logged in rest)
            self._due = True
            failpoint("capture_at_chase_end")
            log.info("the lake keeps up again: bronze has all but %d segments", len(rest))
        self._changed.notify_all()

    def _attach(self) -> None:
        """Once bronze answers, find its end, and check that the value log continues there. Raises
        Fenced.
        """
        wait = 1.0
        while True:
            try:
                newest = self._bronze.last_segments()
                break
            except LakeUnavailable as error:
                wait = self._after_failure(error, wait)
        seq = newest[-1].seq if newest else 0
        shared = list(islice(self._value_log.heads(max(seq - 1, 0)), 2))
        check_attaches(
            [record.segment for record in shared],
            newest[-1] if newest else None,
            self._bronze.source,
            self._value_log.folder,
        )
        first = next((record for record in shared if record.segment.seq > seq), None)
        with self._changed:
            self.lake_error = ""
            self.committed_seq = seq
            self._next = first.pointer if first else None
            assert self._last is not None
            ours = [record.pointer for record in self._value_log.heads(seq) if record.pointer <= self._last]
            self._behind_bytes = sum(pointer.bytes for pointer in ours)
