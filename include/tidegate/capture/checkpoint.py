"""Where capture of a source stands: the state to be continued by the next segment.

In:  the newest segments of bronze or of the value log.
Out: a Checkpoint, to ask the source for its next events and to judge whether they fit.

Every source has the part of it in this module. The rest, for finding the place again, is the
source's own: capture hands it back unchanged, and folds segments into it when a run begins from
stored ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from tidegate.errors import Fenced, StrayValueLog
from tidegate.segments.segment import NO_SERVER, Segment, Server


class SourcePlace(Protocol):
    """A place in a source, as the source itself finds it again; nobody else looks into it."""

    def after(self, segment: Segment) -> Self:
        """The place after a segment that continues this one."""
        ...

    def __str__(self) -> str:
        """As a person finds it at the source."""
        ...


P = TypeVar("P", bound=SourcePlace)


@dataclass(frozen=True, slots=True)
class Checkpoint(Generic[P]):
    """The end of the captured log. A source never captured stands at seq 0.

    server: whose place it is; end: its position, for people and for comparing with the server's
    word.
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
        """For a line of our log: the end as file and position, where a source counts so."""
        file, _, position = self.end.rpartition(":")
        return {"file": file, "position": int(position)} if file and position.isdecimal() else {}

    def after(self, segment: Segment) -> Checkpoint[P]:
        """The checkpoint after a segment that continues this one."""
        return Checkpoint(segment.seq, segment.resolved_ts, segment.server, segment.end, self.place.after(segment))


def check_alike(ours: Segment, theirs: Segment | None, folder: Path) -> None:
    """A segment in both the value log and bronze is the same: else another capture, with a value
    log of its own, has landed under these numbers, and this log may have segments found nowhere
    else. theirs: None when bronze no longer has it.

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
    """Whether bronze has a value log's segment. theirs: bronze's of this number; None where it has none."""
    return theirs is not None and _mark(ours) == _mark(theirs)


def _mark(segment: Segment) -> tuple[str, int, int, int, int]:
    return (segment.source, segment.seq, segment.payload_crc32c, segment.prev_commit_ts, segment.resolved_ts)


def check_belongs(first: Segment, newest: Segment | None, source: str, folder: Path) -> None:
    """The value log's first segment beyond bronze must continue bronze's newest, in seq and in
    commit_ts.

    Another capture, with a value log of its own, may have landed other segments under the same
    numbers; then ours could leap over events it hasn't got. Raises StrayValueLog.
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
    """A value log, on which a run began without the lake, fits bronze as that is now.

    log_end: the log's segments from the number of bronze's newest on, or its last one; newest:
    bronze's. Raises Fenced.
    """
    seq = newest.seq if newest is not None else 0
    for segment in log_end:
        if segment.seq == seq:  # equal numbers prove nothing: capture may have gone on elsewhere
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
