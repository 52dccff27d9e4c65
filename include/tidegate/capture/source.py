"""The protocols each kind of source implements, for capture and for apply.

In:  nothing; these are promises.
Out: Source and SourceReader, as capture/run.py uses them; SchemaFeed, PrewriteFeed and Decoder for
     apply.

Why a reader that keeps these rules loses nothing and doubles nothing:

- `receive`, `cut_soon`, `cut_now` and `heartbeat` give segments in one order. Each continues the one
  before it in seq and in commit_ts, and `checkpoint` stands after the last one given. Therefore the given
  events are exactly those at or before `checkpoint`, and all others lie after it.
- The loop first syncs given segments to the value log. Only then it takes over `checkpoint` as its own,
  hands the segments to the lander, or lets the reader acknowledge them. Until then the source still has
  them: segments lost by a kill can be asked for again.
- A reader opened at a checkpoint gives the log after it, or `resume` has said why it can't
  (PositionLost). It gives nothing twice. If the source itself begins further back, the reader
  drops the log before the checkpoint.
- A segment names the transactions it may bring to a window. If its kind is one of WHOLE_KINDS
  (segments/segment.py), these are the ones in its range of commit_ts. They end in it, or in the
  segments that continue it.
- `resolved_ts` is below every transaction still to come, so no later segment changes a cut at or
  below it.
- `check_continues` checks every pair of neighbours once more as they land, by their rows
  alone.

Four places say how far capture of a source is. Each is at or before the one above it:

    reader.checkpoint      after the last segment given; lost with the process
    loop.checkpoint        after the last segment synced in the value log; a new connection
                           continues there
    captured.tail          the newest segment with bytes among those; continuity compares it with
                           the source's own
    lander.committed_seq   the last segment that bronze has; below it the value log may be deleted

The first two are equal between two turns of the loop. A new run finds the second one in the value
log, or, without a log, from bronze by the fourth (capture/recovery.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tidegate.schema.model.columns import TableVersion
from tidegate.segments.prewrites import Pending, PrewriteAnswer
from tidegate.segments.result import CommitSpan, DecodedSegment, Known
from tidegate.segments.segment import Segment

if TYPE_CHECKING:
    from tidegate.capture.captured import Captured
    from tidegate.capture.checkpoint import Checkpoint
    from tidegate.schema.ddl.statement import DdlStatement

TableName: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Retention:
    """When the source would purge uncaptured log, if capture stopped now.

    seconds_left: None if no rule of the source purges anything, or if it isn't known yet; 0: the
    next events are gone. rule: the one that comes first: age | size | hours (a service's own);
    gone; unkept: a service keeps no file. Without seconds_left it is "", or unread: a service's
    hours are hidden. oldest_file: the source's. files_before: how many files the source has before
    capture's.
    """

    seconds_left: float | None
    rule: str
    oldest_file: str
    files_before: int


@dataclass(frozen=True, slots=True)
class ClockState:
    """The source's clock compared with this machine's. ahead_seconds: at the last reading. doubted:
    it leapt, and isn't believed yet. lowered: how many segments of this run have transactions
    dated after that clock.
    """

    ahead_seconds: float = 0.0
    doubted: bool = False
    lowered: int = 0


class SourceReader(Protocol):
    """One connection to a source. It first finds the place to continue from, and then reads from
    there.

    Every method may raise SourceUnavailable: then this connection is useless, and a new one
    continues from the loop's checkpoint.
    """

    @property
    def checkpoint(self) -> Checkpoint[Any]:
        """After the last segment given. Valid once open() was called."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether the log read so far ends inside a transaction: none of it can be cut before more
        comes.
        """
        ...

    @property
    def waiting_bytes(self) -> int:
        """Bytes read, and not given yet."""
        ...

    @property
    def resolved_ts(self) -> int:
        """No transaction at or below it will be given any more."""
        ...

    @property
    def reply_due(self) -> bool:
        """Whether a commit at the source waits for us until the log read so far is durable here."""
        ...

    @property
    def sends_on(self) -> bool:
        """Whether the last heartbeat() saw that the source's log has more to send."""
        ...

    @property
    def source_ms(self) -> float:
        """The expected time of the source's clock, Unix milliseconds."""
        ...

    def first_checkpoint(self, captured: Captured) -> Checkpoint[Any]:
        """Where a source without captured log begins. The schema that is valid there is recorded.

        Raises PositionLost, SourceRefused, LakeUnavailable.
        """
        ...

    def resume(self, checkpoint: Checkpoint[Any], captured: Captured, *, patient: bool) -> Checkpoint[Any]:
        """The checkpoint from which this connection can continue.

        Raises PositionLost if it can't, or if the source no longer has the captured log. patient:
        SourceBehind while it may still get it.
        """
        ...

    def open(self, checkpoint: Checkpoint[Any]) -> None:
        """Begin to read after a checkpoint. Raises PositionLost, SourceRefused."""
        ...

    def receive(self, timeout_seconds: float) -> list[Segment]:
        """Wait for events, and give the segments that are full. [] doesn't mean an end. Raises
        StreamCorrupt.
        """
        ...

    def cut_soon(self) -> list[Segment]:
        """The bytes read so far, as one segment. Inside a transaction []: it is cut as soon as this
        one ends.
        """
        ...

    def cut_now(self) -> list[Segment]:
        """The bytes read so far, even inside a transaction: they must become durable."""
        ...

    def heartbeat(self) -> Segment | None:
        """A segment without bytes that moves resolved_ts, if the source has shown that its log is
        quiet up to there.
        """
        ...

    def acknowledge(self) -> None:
        """Reply to the source: everything that waits for a reply is durable. Only this ends
        reply_due.
        """
        ...

    def keep_time(self) -> None:
        """Called about once a second. It reads the source's clock when that is due."""
        ...

    def retention(self) -> Retention | None:
        """None before the first look."""
        ...

    def close(self) -> None:
        """Never raises."""
        ...


class Source(Protocol):
    """One source as a run sees it, over several connections."""

    @property
    def nothing(self) -> Checkpoint[Any]:
        """The checkpoint of a source without captured log: seq 0."""
        ...

    @property
    def promises(self) -> bool:
        """Whether commits are acknowledged because the value log has them. Then this log is never
        given up.
        """
        ...

    @property
    def clock(self) -> ClockState: ...

    def has_begun(self) -> bool:
        """Whether the lake has what a first start records of this source. Raises LakeUnavailable."""
        ...

    def connect(self) -> SourceReader:
        """Connect, and refuse a source that can't be captured, before anything is written.

        Raises SourceRefused, SourceUnavailable.
        """
        ...

    def check_continues(self, before: Segment, after: Segment) -> None:
        """Check that one segment's place at the source follows another's. Their seq and commit_ts
        are checked elsewhere.

        Raises StreamCorrupt for a gap or an overlap.
        """
        ...


class SchemaFeed(Protocol):
    """The facts in a segment about the definitions of tables, in log order."""

    def __call__(self, segment: Segment) -> Sequence[DdlStatement]:
        """Raises StreamCorrupt for broken bytes, UnknownEvent for an unknown event."""
        ...


class PrewriteFeed(Protocol):
    """The rows of a segment that wait for an answer, and the answers in it, in log order."""

    def __call__(self, segment: Segment) -> Sequence[Pending | PrewriteAnswer]:
        """Raises StreamCorrupt for broken bytes, UnknownEvent for an unknown event."""
        ...


class Decoder(Protocol):
    """A segment's changes, from its own bytes and the table versions alone."""

    def __call__(
        self,
        segment: Segment,
        versions: Mapping[TableName, Sequence[TableVersion]],
        windows: Mapping[TableName, CommitSpan],
        *,
        known: Known,
    ) -> Iterator[DecodedSegment]:
        """In several parts, in log order, with bounded memory. Raises StreamCorrupt, UnknownEvent.

        Prewrites are left out. With known.answers only the prewrites named there are given, each
        row with the commit_ts of its answer. They come in log order, not in the order of the
        answers.
        """
        ...
