"""Where capture of a source stands: all that the next segment must continue.

In:  the newest segments of bronze or of the value log.
Out: a Checkpoint, to ask the server for what comes next and to judge whether it fits.

When the newest segment ends inside a transaction, reading starts again at a segment before which none was
open, on the same server and in the same file, and what bronze has already is walked again and thrown away.
Hence `replay_from`, `replay_commit_ts` and `replay_ceiling_ms`; for a segment that ends between transactions they are
its end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from tidegate.errors import StrayValueLog
from tidegate.position import Position
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The end of what is captured. A source that was never captured stands at seq 0, file "" or where to begin."""

    seq: int
    server_id: int
    server_uuid: str
    file: str
    offset: int
    gtid_executed: str
    resolved_ts: int
    replay_from: int
    replay_commit_ts: int
    replay_ceiling_ms: int = 0

    @property
    def open(self) -> bool:
        """Whether a transaction is half captured."""
        return self.replay_from != self.offset

    @property
    def position(self) -> Position:
        return Position.of(self.file, self.offset)

    @classmethod
    def start(
        cls, file: str = "", offset: int = 4, gtid_executed: str = "", server_id: int = 0, server_uuid: str = ""
    ) -> Self:
        """Before the first segment."""
        return cls(0, server_id, server_uuid, file, offset, gtid_executed, 0, offset, 0)

    def without_open(self) -> Checkpoint:
        """The same between transactions: the one that is half captured is given up, and its rows with it."""
        return replace(self, replay_from=self.offset, replay_commit_ts=self.resolved_ts, replay_ceiling_ms=0)

    def after(self, segment: Segment) -> Checkpoint:
        """The checkpoint behind a segment that continues this one."""
        replay_from, replay_commit_ts, ceiling_ms = segment.end_pos, segment.resolved_ts, 0
        if segment.flags & SegmentFlag.OPEN_AT_END:
            ceiling_ms = segment.ceiling_ms
            if segment.flags & SegmentFlag.OPEN_AT_START:
                replay_from, replay_commit_ts = self.replay_from, self.replay_commit_ts
                # Of the segments before none had one, or this is theirs: what it changes in here it changes there.
                ceiling_ms = ceiling_ms or self.replay_ceiling_ms
            else:
                replay_from, replay_commit_ts = segment.start_pos, segment.prev_commit_ts
        return Checkpoint(
            seq=segment.seq,
            server_id=segment.server_id,
            server_uuid=segment.server_uuid,
            file=segment.file,
            offset=segment.end_pos,
            gtid_executed=segment.gtid_executed,
            resolved_ts=segment.resolved_ts,
            replay_from=replay_from,
            replay_commit_ts=replay_commit_ts,
            replay_ceiling_ms=ceiling_ms,
        )


def check_belongs(first: Segment, newest: Segment | None, source: str, folder: Path) -> None:
    """The value log's first segment beyond bronze must continue bronze's newest, in seq and in commit_ts.

    Another capture, with a value log of its own, may have landed other segments under the same numbers; then ours could
    leap over what it hasn't got. Raises StrayValueLog.
    """
    seq, resolved_ts = (newest.seq, newest.resolved_ts) if newest is not None else (0, 0)
    if first.source == source and first.seq == seq + 1 and first.prev_commit_ts == resolved_ts:
        return
    end = f"seq {seq}" + (f" at {newest.file}:{newest.end_pos}" if newest is not None else "")
    raise StrayValueLog(
        f"the value log goes on with seq {first.seq} at {first.file}:{first.start_pos}, bronze ends with {end}",
        where=str(folder),
        remedy="another capture went on, or it belongs to another lake: move it away",
    )
