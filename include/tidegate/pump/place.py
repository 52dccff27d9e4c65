"""Where a Pump's own stream stands.

In:  segments.
Out: a PumpPlace: bytes taken so far, and the latest timestamp that was named. Nobody can be asked for them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from tidegate.capture.checkpoint import Checkpoint
from tidegate.errors import StreamCorrupt
from tidegate.segments.segment import Segment


@dataclass(frozen=True, slots=True)
class PumpPlace:
    """node: the Pump's name. latest_ts: the latest timestamp that its binlogs name."""

    node: str = ""
    offset: int = 0
    latest_ts: int = 0

    def __str__(self) -> str:
        return f"{self.node}:{self.offset}"

    def after(self, segment: Segment) -> PumpPlace:
        return PumpPlace(segment.file, segment.end_pos, max(self.latest_ts, segment.max_commit_ts))


PumpCheckpoint: TypeAlias = Checkpoint[PumpPlace]
NOTHING: Final[PumpCheckpoint] = Checkpoint.before_all(PumpPlace())


def check_continues(before: Segment, after: Segment) -> None:
    """Raises StreamCorrupt."""
    if (after.file, after.start_pos) != (before.file, before.end_pos):
        raise StreamCorrupt(
            f"begins at {after.start}, expected {before.end}",
            where=after.source,
            remedy="another Pump wrote under this source's name: give each a source of its own",
        )
