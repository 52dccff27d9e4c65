"""A segment as capture might cut it, with every field set."""

from __future__ import annotations

from datetime import UTC, datetime

from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind


def segment(seq: int, payload: bytes = b"payload") -> Segment:
    """commit_ts seq * 10 + 1 to seq * 10 + 5."""
    return Segment(
        source="one",
        seq=seq,
        kind=SegmentKind.BINLOG,
        server_id=1,
        server_uuid="uuid",
        file="binlog.000001",
        start_pos=4,
        end_pos=11,
        gtid_executed="0-1-5",
        prev_commit_ts=seq * 10 - 5,
        min_commit_ts=seq * 10 + 1,
        max_commit_ts=seq * 10 + 5,
        resolved_ts=seq * 10 + 5,
        tables=("a.b", "ü.名"),
        flags=SegmentFlag.HAS_DDL | SegmentFlag.OPEN_AT_END,
        event_count=3,
        txn_count=1,
        context=b"context",
        payload=payload,
        payload_crc32c=77,
        captured_at=datetime(2026, 11, 21, 1, 2, 3, 456789, tzinfo=UTC),
    )
