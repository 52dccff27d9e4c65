"""Where capture stands in a server's binlog: a Checkpoint's place for MySQL and MariaDB.

In:  where to begin, then one segment after another.
Out: a BinlogPlace: it asks the server for the next events, and says whether they fit.

If the newest segment ends inside a transaction, reading starts again at the last segment that
begins between transactions, on the same server and in the same file. The part in bronze is walked
again and dropped. For this there are `replay_from`, `replay_commit_ts` and `replay_ceiling_ms`.
After a segment that ends between transactions they are its end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from tidegate.capture.checkpoint import Checkpoint
from tidegate.errors import StreamCorrupt
from tidegate.position import Position
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag, SegmentKind


@dataclass(frozen=True, slots=True)
class BinlogPlace:
    """The end of what is captured. file "": the server chooses it, by GTID."""

    file: str
    offset: int
    gtid_executed: str
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

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    def after(self, segment: Segment) -> BinlogPlace:
        """The place after a segment that continues this one."""
        replay_from, replay_commit_ts, ceiling_ms = segment.end_pos, segment.resolved_ts, 0
        if segment.flags & SegmentFlag.OPEN_AT_END:
            ceiling_ms = segment.ceiling_ms
            if segment.flags & SegmentFlag.OPEN_AT_START:
                replay_from, replay_commit_ts = self.replay_from, self.replay_commit_ts
                # Of the segments before none had one, or this is theirs: what it changes in here it changes there.
                ceiling_ms = ceiling_ms or self.replay_ceiling_ms
            else:
                replay_from, replay_commit_ts = segment.start_pos, segment.prev_commit_ts
        return BinlogPlace(
            segment.file, segment.end_pos, segment.gtid_executed, replay_from, replay_commit_ts, ceiling_ms
        )


BinlogCheckpoint: TypeAlias = Checkpoint[BinlogPlace]


def beginning(
    file: str = "", offset: int = 4, gtid_executed: str = "", server_id: int = 0, server_uuid: str = ""
) -> BinlogCheckpoint:
    """Before the first segment."""
    place = BinlogPlace(file, offset, gtid_executed, offset, 0)
    return Checkpoint.before_all(place, (server_id, server_uuid))


NOTHING: Final = beginning()


def without_open(checkpoint: BinlogCheckpoint) -> BinlogCheckpoint:
    """The same between transactions: the one that is half captured is given up, and its rows with it."""
    place = checkpoint.place
    given_up = replace(place, replay_from=place.offset, replay_commit_ts=checkpoint.resolved_ts, replay_ceiling_ms=0)
    return replace(checkpoint, place=given_up)


def check_continues(before: Segment, after: Segment) -> None:
    """Refuse a gap or an overlap of places. Raises StreamCorrupt.

    In one file of one server the bytes touch, or they leap forward (only between transactions, if
    GTIDs prove that nothing is missing). The next file begins at its beginning, or by GTID. Another
    server: only by GTID. Around a loss that a person accepted, positions have no order.
    """
    if SegmentKind.GAP in (before.kind, after.kind):
        return
    end, start = Position.of(before.file, before.end_pos), Position.of(after.file, after.start_pos)
    same = (*before.server, end.base) == (*after.server, start.base)
    open_there = bool(before.flags & SegmentFlag.OPEN_AT_END)
    if same and start == end:
        return
    by_gtid = before.gtid_executed != "" and not open_there
    touches_next = same and start.number > end.number and (start.offset == 4 or by_gtid)
    if touches_next or (by_gtid and (not same or start > end)):
        return
    # A transaction that the server died in comes from its beginning: another server's, or this one's in its next file.
    if (
        (not same or start.number > end.number)
        and open_there
        and before.gtid_executed
        and not after.flags & SegmentFlag.OPEN_AT_START
    ):
        return
    raise StreamCorrupt(f"begins at {start}, expected {end}", where=after.source, remedy="restart capture")
