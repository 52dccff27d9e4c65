"""The captured part of a source, for a comparison with the source's own log.

In:  bronze, the value log, segments that have become durable.
Out: the newest segment with bytes; then those before it, the newest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from tidegate.capture.value_log.log import ValueLog
from tidegate.errors import LakeUnavailable
from tidegate.lake.bronze.table import Bronze
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentKind


@dataclass(slots=True)
class Captured:
    """The captured part of a source. tail: the newest segment with bytes; None if it isn't known."""

    bronze: Bronze
    value_log: ValueLog
    tail: Segment | None

    def add(self, segments: Sequence[Segment]) -> None:
        """These segments are durable now."""
        with_bytes = [segment for segment in segments if segment.has_bytes]
        if with_bytes:  # the tail is kept without its bytes: their memory is used again
            self.tail = replace(with_bytes[-1], payload=b"", context=b"")

    def newest_first(self) -> Iterator[Segment]:
        """Segments with bytes, the newest first, each once: in memory, in the value log, in bronze.
        Without context and payload.

        It ends at a loss a person accepted: the server has nothing from before it.
        """
        logged = [record.segment for record in self.value_log.heads()][::-1]
        seen = self.tail.seq + 1 if self.tail else None
        for segment in chain([self.tail] if self.tail else [], logged, self._of_bronze()):
            if segment.kind is SegmentKind.GAP:
                return
            if segment.has_bytes and (seen is None or segment.seq < seen):
                seen = segment.seq
                yield segment

    def whole(self, segment: Segment) -> Segment | None:
        """The same segment with context and payload; None if they can't be had now."""
        for record in self.value_log.heads(segment.seq - 1):
            if record.segment.seq == segment.seq:
                return self.value_log.segment(record.pointer)
        try:
            return self.bronze.segment(segment.seq, whole=True)
        except LakeUnavailable:
            return None

    def _of_bronze(self) -> Iterator[Segment]:
        try:
            yield from self.bronze.newest_first()
        except LakeUnavailable:
            return
