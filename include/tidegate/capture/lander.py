"""The lander: a thread that appends segments to bronze while the reader reads on.

In:  segments that the value log holds already, in order of seq.
Out: commits of bronze, by size or when the reader says that it is time; `committed_seq`.

The queue is bounded by bytes: a slow lake makes the reader wait in `put`. Whatever fails in here is raised in
the reader at its next call; nothing is lost, since the value log has all that isn't committed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Self

from tidegate.binlog.segment import Segment
from tidegate.capture.value_log_record import commit_ts_of
from tidegate.errors import LakeUnavailable
from tidegate.failpoint import failpoint
from tidegate.lake.bronze import Bronze


class Lander:
    """A context manager: the thread runs inside the block; leaving it lands what is waiting (not after an error)."""

    def __init__(self, bronze: Bronze, *, land_bytes: int, queue_bytes: int) -> None:
        self.committed_seq = 0
        self.committed_ts = 0
        self.waited_seconds = 0.0
        self._bronze = bronze
        self._land_bytes = min(land_bytes, queue_bytes)
        self._queue_bytes = queue_bytes
        self._changed = threading.Condition()
        self._waiting: list[Segment] = []
        self._bytes = 0
        self._landing = False
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

    @property
    def queued_bytes(self) -> int:
        """Taken and not yet committed."""
        return self._bytes

    def put(self, segments: Iterable[Segment]) -> None:
        """Queue segments; waits while the queue is full. Raises what the thread failed with."""
        for segment in segments:
            with self._changed:
                self._changed.wait_for(lambda: self._error or self._bytes < self._queue_bytes)
                self._raise()
                self._waiting.append(segment)
                self._bytes += len(segment.payload)
                if self._bytes >= self._land_bytes:
                    self._changed.notify_all()

    def flush(self) -> None:
        """Land what is waiting now; doesn't wait for it."""
        with self._changed:
            self._raise()
            self._due = True
            self._changed.notify_all()

    def drain(self, timeout: float | None = None) -> None:
        """Land all and wait for it. Raises what the thread failed with, LakeUnavailable after timeout seconds."""
        self.flush()
        with self._changed:
            done = self._changed.wait_for(lambda: self._error or not (self._waiting or self._landing), timeout)
            self._raise()
        if not done:
            raise LakeUnavailable(
                "bronze wasn't committed in time", where=self._bronze.url, remedy="check the lake's store"
            )

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing or (self._waiting and (self._due or self._bytes >= self._land_bytes))
                )
                if self._closing:
                    return
                batch, self._waiting = self._waiting, []
                self._due, self._landing = False, True
            try:
                failpoint("capture_before_bronze_commit")
                self._bronze.append(batch)
                failpoint("capture_after_bronze_commit")
            except BaseException as error:  # noqa: BLE001  handed to the reader, which raises it
                self._error = error
            with self._changed:
                self._landing = False
                if self._error is None:
                    self.committed_seq, self.committed_ts = batch[-1].seq, commit_ts_of(batch[-1])
                self._bytes -= sum(len(segment.payload) for segment in batch)
                self._changed.notify_all()
                if self._error is not None:
                    return
