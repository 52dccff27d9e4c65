"""A Pump's stored segments, in bronze and in the value log.

In:  the captured segments, and a timestamp.
Out: the segments that name a timestamp at or above it, with their payloads, in order; bronze is
     read a row group at a time.

For resolved_ts, every prewrite without an answer lies in one of them: something at or above
resolved_ts was named before it came, or by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidegate.capture.captured import Captured
from tidegate.lake.bronze.index import BronzeIndex, read_segments
from tidegate.lake.files import LakeFiles
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentKind


def stored_in(lake: LakeFiles, source: str) -> Callable[[Captured, int], Iterator[Segment]]:
    def stored(captured: Captured, from_ts: int) -> Iterator[Segment]:
        """Raises LakeUnavailable, StreamCorrupt, ValueLogError."""
        logged = [record for record in captured.value_log.heads() if record.segment.kind is SegmentKind.TIDB]
        first = logged[0].segment.seq if logged else None
        index = BronzeIndex(lake)
        index.refresh(from_ts - 1)
        refs = index.refs.get(source, [])
        wanted = [ref for ref in refs if ref.max_commit_ts >= from_ts and (first is None or ref.seq < first)]
        for _, segment in read_segments(lake, wanted):
            if segment.kind is SegmentKind.TIDB:
                yield segment
        for record in logged:
            if record.segment.max_commit_ts >= from_ts:
                yield captured.value_log.segment(record.pointer)

    return stored
