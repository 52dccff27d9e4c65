"""Where capture of a changefeed stands: a commit_ts is all there is to know.

In:  segments.
Out: a ChangefeedPlace, which finds its place in every folder again (stream.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from tidegate.capture.checkpoint import Checkpoint
from tidegate.commit_ts import time_text
from tidegate.errors import StreamCorrupt
from tidegate.segments.segment import Segment


@dataclass(frozen=True, slots=True)
class ChangefeedPlace:
    """path: the changefeed's. offset: bytes captured of it. resolved_ts: all up to here is."""

    path: str = ""
    offset: int = 0
    resolved_ts: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.resolved_ts} ({time_text(self.resolved_ts)})"

    def after(self, segment: Segment) -> ChangefeedPlace:
        return ChangefeedPlace(segment.file, segment.end_pos, segment.resolved_ts)


ChangefeedCheckpoint: TypeAlias = Checkpoint[ChangefeedPlace]
NOTHING: Final[ChangefeedCheckpoint] = Checkpoint.before_all(ChangefeedPlace())


def check_continues(before: Segment, after: Segment) -> None:
    """Raises StreamCorrupt."""
    if (after.file, after.start_pos) != (before.file, before.end_pos):
        raise StreamCorrupt(
            f"begins at {after.start}, expected {before.end}",
            where=after.source,
            remedy="another changefeed was captured under this source's name: give each a source of its own",
        )
