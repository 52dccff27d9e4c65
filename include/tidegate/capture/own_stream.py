"""Sources without a server that has a log: a Pump, or a changefeed's path. Their place is a count
of captured bytes.

In:  segments; the payload of the next one.
Out: a StreamPlace; the next Segment, as far as the last one and the payload decide it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from tidegate.capture.checkpoint import Checkpoint
from tidegate.errors import StreamCorrupt
from tidegate.segments.crc32c import crc32c
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """name: the Pump's, or the changefeed's path. offset: how many bytes of it are captured."""

    name: str = ""
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.name}:{self.offset}"

    def after(self, segment: Segment) -> StreamPlace:
        return StreamPlace(segment.file, segment.end_pos)


StreamCheckpoint: TypeAlias = Checkpoint[StreamPlace]
NOTHING: Final[StreamCheckpoint] = Checkpoint.before_all(StreamPlace())


def check_continues(before: Segment, after: Segment) -> None:
    """Raises StreamCorrupt."""
    if (after.file, after.start_pos) != (before.file, before.end_pos):
        raise StreamCorrupt(
            f"begins at {after.start}, expected {before.end}",
            where=after.source,
            remedy="another one was captured under this source's name: give each Pump and each changefeed its own",
        )


def following(before: StreamCheckpoint, source: str, payload: bytes) -> Segment:
    """The next segment. As it is, it is a heartbeat at the last place; the caller adds the payload
    and its facts.
    """
    return Segment(
        source=source,
        seq=before.seq + 1,
        kind=SegmentKind.HEARTBEAT,
        server_id=0,
        server_uuid="",
        file=before.place.name,
        start_pos=before.place.offset,
        end_pos=before.place.offset + len(payload),
        gtid_executed="",
        prev_commit_ts=before.resolved_ts,
        min_commit_ts=0,
        max_commit_ts=0,
        resolved_ts=before.resolved_ts,
        tables=(),
        flags=SegmentFlag(0),
        event_count=0,
        txn_count=0,
        context=b"",
        payload=payload,
        payload_crc32c=crc32c(payload),
        captured_at=datetime.now(UTC),
    )
