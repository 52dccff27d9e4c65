"""A source that is a text file, to show what capture needs of one: each line is a transaction.

In:  a file of lines "commit_ts text", appended by `write`; one that begins with "!" waits for capture's reply.
Out: a Source that keeps the promises of capture/source.py; what it acknowledged stands in the file `acknowledged`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tidegate.capture.captured import Captured
from tidegate.capture.checkpoint import Checkpoint
from tidegate.capture.source import ClockState, Retention
from tidegate.commit_ts import compose
from tidegate.errors import PositionLost, SourceUnavailable, StreamCorrupt
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind

_WRITING_MS = 300  # a line is dated before it stands in the file
_HEARTBEAT_MS = 200


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Bytes of the file."""

    offset: int = 0

    def after(self, segment: Segment) -> FilePlace:
        return FilePlace(segment.end_pos)

    def __str__(self) -> str:
        return f"lines:{self.offset}"


class FileSource:
    """begins: the byte before which the file has forgotten its lines. One object writes."""

    nothing = Checkpoint.before_all(FilePlace())
    clock = ClockState()

    def __init__(self, path: Path, segment_bytes: int, *, promises: bool = False, begins: int = 0) -> None:
        self.path = path
        self.segment_bytes = segment_bytes
        self.promises = promises
        self.begins = begins
        self._last = 0

    def write(self, *texts: str) -> None:
        """One transaction each, dated now."""
        now = compose(time.time_ns() // 1_000_000)
        with self.path.open("a") as file:
            self._last = max(self._last + 1, now)
            file.write("".join(f"{self._last + number} {text}\n" for number, text in enumerate(texts)))
            self._last += len(texts)

    def has_begun(self) -> bool:
        """It records nothing at a first start."""
        return True

    def connect(self) -> FileReader:
        if not self.path.exists():
            raise SourceUnavailable("isn't there", where=str(self.path))
        return FileReader(self)

    def check_continues(self, before: Segment, after: Segment) -> None:
        if after.start_pos != before.end_pos:
            raise StreamCorrupt(f"begins at {after.start}, expected {before.end}", where=after.source)


class FileReader:
    """in_transaction is never so: only whole lines are read."""

    in_transaction = False
    sends_on = False

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self.checkpoint: Checkpoint[FilePlace] = source.nothing
        self.resolved_ts = 0
        self.reply_due = False
        self._taken: list[bytes] = []
        self._quiet_ms = 0.0

    @property
    def source_ms(self) -> float:
        return time.time() * 1000

    @property
    def waiting_bytes(self) -> int:
        return sum(map(len, self._taken))

    def first_checkpoint(self, captured: Captured) -> Checkpoint[FilePlace]:
        assert captured.tail is None
        return self.source.nothing

    def resume(self, checkpoint: Checkpoint[FilePlace], captured: Captured, *, patient: bool) -> Checkpoint[FilePlace]:
        del captured, patient
        if checkpoint.place.offset < self.source.begins:
            raise PositionLost("is forgotten", where=checkpoint.end)
        return checkpoint

    def open(self, checkpoint: Checkpoint[FilePlace]) -> None:
        self.checkpoint, self.resolved_ts = checkpoint, checkpoint.resolved_ts
        self._file = self.source.path.open("rb")
        self._file.seek(checkpoint.place.offset)

    def receive(self, timeout_seconds: float) -> list[Segment]:
        asked_ms, line = self.source_ms, self._file.readline()
        if not line.endswith(b"\n"):
            self._file.seek(-len(line), 1)
            self._quiet_ms = asked_ms - _WRITING_MS
            time.sleep(timeout_seconds)
            return []
        self._taken.append(line)
        self.resolved_ts = int(line.split()[0])
        self.reply_due = self.reply_due or line.split()[1].startswith(b"!")
        return self.cut_now() if self.waiting_bytes >= self.source.segment_bytes else []

    def cut_now(self) -> list[Segment]:
        lines, self._taken = self._taken, []
        return [self._segment(SegmentKind.BINLOG, lines, self.resolved_ts)] if lines else []

    cut_soon = cut_now

    def heartbeat(self) -> Segment | None:
        proved = compose(int(self._quiet_ms))
        if self._taken or proved <= self.resolved_ts + compose(_HEARTBEAT_MS):
            return None
        self.resolved_ts = proved
        return self._segment(SegmentKind.HEARTBEAT, [], self.resolved_ts)

    def acknowledge(self) -> None:
        self.reply_due = False
        self.source.path.with_name("acknowledged").write_text(str(self.checkpoint.place.offset))

    def keep_time(self) -> None:
        pass

    def retention(self) -> Retention:
        return Retention(None, "", self.source.path.name, 0)

    def close(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def _segment(self, kind: SegmentKind, lines: list[bytes], resolved_ts: int) -> Segment:
        payload, before = b"".join(lines), self.checkpoint
        stamps = [int(line.split()[0]) for line in lines] or [0]
        segment = Segment(
            source="one",
            seq=before.seq + 1,
            kind=kind,
            server_id=1,
            server_uuid="",
            file="lines",
            start_pos=before.place.offset,
            end_pos=before.place.offset + len(payload),
            gtid_executed="",
            prev_commit_ts=before.resolved_ts,
            min_commit_ts=stamps[0],
            max_commit_ts=stamps[-1],
            resolved_ts=resolved_ts,
            tables=("shop.t",),
            flags=SegmentFlag(0),
            event_count=len(lines),
            txn_count=len(lines),
            context=b"",
            payload=payload,
            payload_crc32c=crc32c(payload),
            captured_at=datetime.now(UTC),
        )
        self.checkpoint = before.after(segment)
        return segment
