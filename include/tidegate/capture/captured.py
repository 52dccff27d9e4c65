"""The captured part of a source, for a comparison with the source's own log.

In:  bronze, the value log, segments as they become durable.
Out: the newest segment with bytes, and those before it, the newest first.
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
    """The captured part of a source: tail is the newest segment with a payload, None when it isn't known."""

    bronze: Bronze
    value_log: ValueLog
    tail: Segment | None

    def add(self, segments: Sequence[Segment]) -> None:
        """Segments durable now."""
        with_bytes = [segment for segment in segments if segment.has_bytes]
        if with_bytes:  # without the bytes: their memory is used again
            self.tail = replace(with_bytes[-1], payload=b"", context=b"")

    def newest_first(self) -> Iterator[Segment]:
        """Segments with bytes, those in memory, the value log and bronze, each once; without
        context and payload.

        Back to a person's accepted loss: the server has nothing from before it.
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
        """The same with context and payload; None when it can't be had now."""
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
