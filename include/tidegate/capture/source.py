"""The protocols of each kind of source, towards capture and towards apply.

In:  nothing; these are promises.
Out: Source and SourceReader, a source as capture/run.py knows it; SchemaFeed, PrewriteFeed and
     Decoder for apply.

Why a reader under these rules loses nothing and doubles nothing:

- `receive`, `cut_soon`, `cut_now` and `heartbeat` give segments in one order, each continuing the
  one before in seq and in commit_ts, and `checkpoint` stands after the last one given. The given
  events are thus exactly those at or before `checkpoint`, and all missing ones lie after it.
- The loop syncs given segments to the value log before it takes over `checkpoint` as its own, hands
  them to the lander, or lets the reader acknowledge them. Until then the source still has them:
  segments lost by a kill can be asked for again.
- A reader opened at a checkpoint gives the log after it, or `resume` has said why it can't
  (PositionLost). It gives nothing twice, also where the source itself begins further back: it walks
  and drops the log before the checkpoint.
- A segment names the transactions it may bring to a window: those of its range of commit_ts, if its
  kind is one of WHOLE_KINDS (segments/segment.py), and none with an end outside of it and of its
  continuations.
- `resolved_ts` is below every transaction still to come: so no later segment changes anything cut
  below it.
- `check_continues` is asked once more of every pair of neighbours as they land, by their rows
  alone.

Where capture of a source stands is known in four places, each at or before the one above it:

    reader.checkpoint      after the last segment that was given; lost with the process
    loop.checkpoint        after the last segment that is synced in the value log: a new connection
                           continues there after a lost one
    captured.tail          the newest segment with bytes among those: continuity compares it with
                           the source's own
    lander.committed_seq   the last segment that bronze has: below it the value log may be deleted

The first two are equal between two turns of the loop. A new run finds the second again from the
value log, or, without one, from bronze: from the fourth (capture/recovery.py).
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
    """When the source purges uncaptured log, if capture stood still from now on.

    seconds_left: None when no rule of the source purges anything, or it can't be said yet; 0: the
    next events are gone. rule: age | size | hours (a service's own), whichever comes first; gone;
    unkept: a service keeps no file; for None "", or unread: a service's hours are hidden.
    oldest_file: the source's; files_before: the number of the source's files before capture's.
    """

    seconds_left: float | None
    rule: str
    oldest_file: str
    files_before: int


@dataclass(frozen=True, slots=True)
class ClockState:
    """The source's clock beside this machine's. ahead_seconds: as it was read last; doubted: it
    leapt, and isn't believed yet; lowered: segments of this run with transactions dated later than
    it.
    """

    ahead_seconds: float = 0.0
    doubted: bool = False
    lowered: int = 0


class SourceReader(Protocol):
    """One connection to a source: first the place to go on from is found, then it is read from
    there.

    Every method may raise SourceUnavailable: the connection is of no more use, and a new one goes
    on from the loop's checkpoint.
    """

    @property
    def checkpoint(self) -> Checkpoint[Any]:
        """Behind the last segment given; once open() was called."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether the log read so far ends inside a transaction: nothing of it can be cut before
        more comes.
        """
        ...

    @property
    def waiting_bytes(self) -> int:
        """Read and not yet given."""
        ...

    @property
    def resolved_ts(self) -> int:
        """No transaction at or below it will be given any more."""
        ...

    @property
    def reply_due(self) -> bool:
        """Whether a commit at the source waits until the log read so far is durable here."""
        ...

    @property
    def sends_on(self) -> bool:
        """Whether the source has shown, since heartbeat() was last called before, that more is to come from its log."""
        ...

    @property
    def source_ms(self) -> float:
        """The expected time of the source's clock, Unix milliseconds."""
        ...

    def first_checkpoint(self, captured: Captured) -> Checkpoint[Any]:
        """The beginning of a source without captured log; the schema true there is recorded.

        Raises PositionLost, SourceRefused, LakeUnavailable.
        """
        ...

    def resume(self, checkpoint: Checkpoint[Any], captured: Captured, *, patient: bool) -> Checkpoint[Any]:
        """The checkpoint as this connection can go on from it.

        Raises PositionLost when it can't, or no longer has the captured log; patient: SourceBehind
        while it may still get it.
        """
        ...

    def open(self, checkpoint: Checkpoint[Any]) -> None:
        """Begin to read after a checkpoint. Raises PositionLost, SourceRefused."""
        ...

    def receive(self, timeout_seconds: float) -> list[Segment]:
        """Wait for events, and give full segments; [] is no sign of an end. Raises
        StreamCorrupt.
        """
        ...

    def cut_soon(self) -> list[Segment]:
        """The read bytes as one segment; [] inside a transaction: it is then cut as soon as it
        ends.
        """
        ...

    def cut_now(self) -> list[Segment]:
        """The read bytes, even if they end inside a transaction: they must become durable."""
        ...

    def heartbeat(self) -> Segment | None:
        """A segment without bytes to move resolved_ts, after the source has shown a quiet log
        before it.
        """
        ...

    def acknowledge(self) -> None:
        """Reply to the source: all it asked a reply for is durable; only then is reply_due over."""
        ...

    def keep_time(self) -> None:
        """Called about once a second: reads the source's clock when due."""
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
        """Whether commits are acknowledged on the strength of the value log: then it is never given up."""
        ...

    @property
    def clock(self) -> ClockState: ...

    def has_begun(self) -> bool:
        """Whether the lake has what a first start records of it. Raises LakeUnavailable."""
        ...

    def connect(self) -> SourceReader:
        """Connect, and refuse a source unfit for capture, before anything is written.

        Raises SourceRefused, SourceUnavailable.
        """
        ...

    def check_continues(self, before: Segment, after: Segment) -> None:
        """Whether one segment's place at the source follows another's; seq and commit_ts are known
        to.

        Raises StreamCorrupt for a gap or an overlap.
        """
        ...


class SchemaFeed(Protocol):
    """The facts in a segment about tables' definitions, in log order."""

    def __call__(self, segment: Segment) -> Sequence[DdlStatement]:
        """Raises StreamCorrupt for broken bytes, UnknownEvent for what isn't known."""
        ...


class PrewriteFeed(Protocol):
    """The rows of a segment waiting for an answer, and its answers, in log order."""

    def __call__(self, segment: Segment) -> Sequence[Pending | PrewriteAnswer]:
        """Raises StreamCorrupt for broken bytes, UnknownEvent for what isn't known."""
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
        """In bounded memory: several parts, in log order. Raises StreamCorrupt, UnknownEvent.

        Prewrites are left out. With known.answers only the named ones are given, each row with the
        commit_ts of its answer; in log order, not in the order of the answers.
        """
        ...
