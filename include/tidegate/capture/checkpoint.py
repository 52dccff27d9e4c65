"""Where capture of a source stands: what the next segment continues.

In:  the newest segments of bronze or of the value log.
Out: a Checkpoint: it asks the source for its next events, and says whether they fit.

This module has the part all sources share. The rest, which finds the place at the source again,
belongs to the source. Capture hands it back unchanged. When a run begins from stored segments,
capture passes these to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from tidegate.errors import Fenced, StrayValueLog
from tidegate.segments.segment import NO_SERVER, Segment, Server


class SourcePlace(Protocol):
    """A place in a source, in the source's own form. Other code doesn't look into it."""

    def after(self, segment: Segment) -> Self:
        """The place after a segment that continues this one."""
        ...

    def __str__(self) -> str:
        """The place in words a person finds at the source."""
        ...


P = TypeVar("P", bound=SourcePlace)


@dataclass(frozen=True, slots=True)
class Checkpoint(Generic[P]):
    """The end of the captured log. A source never captured stands at seq 0.

    server: to which the place belongs. end: the place, for people, and for a comparison with the
    server's position.
    """

    seq: int
    resolved_ts: int
    server: Server
    end: str
    place: P

    @classmethod
    def before_all(cls, place: P, server: Server = NO_SERVER) -> Self:
        """Before the first segment."""
        return cls(0, 0, server, str(place), place)

    @property
    def in_log(self) -> dict[str, str | int]:
        """Fields of a line in our log: the end as file and position, if the source has these."""
        file, _, position = self.end.rpartition(":")
        return {"file": file, "position": int(position)} if file and position.isdecimal() else {}

    def after(self, segment: Segment) -> Checkpoint[P]:
        """The checkpoint after a segment that continues this one."""
        return Checkpoint(segment.seq, segment.resolved_ts, segment.server, segment.end, self.place.after(segment))


def check_alike(ours: Segment, theirs: Segment | None, folder: Path) -> None:
    """Check that a segment of the value log is the same in bronze. If it isn't, another capture has
    landed segments under these numbers from a value log of its own. Then this log may have the
    only copy of some segments. theirs: None if bronze no longer has it.

    Raises StrayValueLog.
    """
    if theirs is None or _mark(ours) == _mark(theirs):
        return
    raise StrayValueLog(
        f"the value log's segment {ours.seq} ends at {ours.end}, bronze's of this number at {theirs.end}",
        where=str(folder),
        remedy="another capture went on, or it belongs to another lake: move it away; what this log alone has is lost"
        " with it (`tidegate vlog cat` shows it)",
    )


def is_landed(ours: Segment, theirs: Segment | None) -> bool:
    """Whether bronze has this segment of a value log. theirs: bronze's segment of this number; None
    without one.
    """
    return theirs is not None and _mark(ours) == _mark(theirs)


def _mark(segment: Segment) -> tuple[str, int, int, int, int]:
    return (segment.source, segment.seq, segment.payload_crc32c, segment.prev_commit_ts, segment.resolved_ts)


def check_belongs(first: Segment, newest: Segment | None, source: str, folder: Path) -> None:
    """Check that the value log's first segment beyond bronze continues bronze's newest one, in seq
    and in commit_ts.

    Another capture may have landed other segments under the same numbers, from a value log of its
    own. Then ours would skip events it doesn't have. Raises StrayValueLog.
    """
    seq, resolved_ts = (newest.seq, newest.resolved_ts) if newest is not None else (0, 0)
    if first.source == source and first.seq == seq + 1 and first.prev_commit_ts == resolved_ts:
        return
    end = f"seq {seq}" + (f" at {newest.end}" if newest is not None else "")
    raise StrayValueLog(
        f"the value log goes on with seq {first.seq} at {first.start}, bronze ends with {end}",
        where=str(folder),
        remedy="another capture went on, or it belongs to another lake: move it away",
    )


def check_attaches(log_end: Sequence[Segment], newest: Segment | None, source: str, folder: Path) -> None:
    """Check that a value log, on which a run began without the lake, fits bronze as it is now.

    log_end: the log's segments from the number of bronze's newest on, or its last one. newest:
    bronze's. Raises Fenced.
    """
    seq = newest.seq if newest is not None else 0
    for segment in log_end:
        if segment.seq == seq:  # equal numbers prove nothing: another capture may have continued bronze
            check_alike(segment, newest, folder)
        elif segment.seq > seq:
            check_belongs(segment, newest, source, folder)
            return
    if not log_end or log_end[-1].seq != seq:
        raise Fenced(
            f"bronze ends at seq {seq}, the value log has none that follows it",
            where=str(folder),
            remedy="it belongs to another lake, or another capture went on: move it away",
        )
