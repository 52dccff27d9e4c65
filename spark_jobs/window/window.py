"""A window on its way through the steps.

In:  nothing; these are the values that steps hand on.
Out: Window (lives for one pass of the steps), TableWindow, StagedFile, Move.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from spark_jobs.window.plan import NOTHING_PLANNED, Change, TablePlan
from tidegate import tables
from tidegate.errors import Overtaken
from tidegate.lake.latency import Percentiles
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.partitions import RowsMoved
from tidegate.segments.result import Ledger, Problem
from tidegate.segments.window import SegmentRef
from tidegate.snapshot.chunks.chunk_table import ChunkRef
from tidegate.snapshot.progress.events import SnapshotEvent, TableKey
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.upsert.keys.file import KeyFile
from tidegate.upsert.target import StagedUpsert

Memory = TypeVar("Memory")
_NAMED_MAX = 5  # tables named in a window's line of the log


@dataclass(frozen=True, slots=True)
class Move:
    """old, new: the version that had the rows, and the one that has them now. giver, taker: logical names; maybe one.

    Around a rename they are one physical table's; where a partition changes tables they are two tables'.
    """

    old: TableVersion
    new: TableVersion
    giver: str
    taker: str

    @property
    def commit_ts(self) -> int:
        return self.new.commit_ts

    @property
    def moved(self) -> RowsMoved | None:
        """Of a partition; None for a rename."""
        return self.new.moved


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A Parquet file of decoded changes of one version of one physical table; path is relative to the lake."""

    source: str
    database: str
    table: str
    version: int
    path: str
    rows: int
    bytes: int
    min_commit_ts: int
    max_commit_ts: int


@dataclass(slots=True)
class MadeByKeys:
    """Tables, by logical name, of which a window has rows that foreign keys changed below the log.

    told: those changes, for tables that keep each, as rows of their changelogs. lacking: why a changelog goes without.
    """

    told: dict[str, list[pa.Table]] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why changes of a physical table in one segment could not be decoded."""

    source: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class Accounted:
    """What became of a segment's bytes. prewritten: of those of its rows that the window commits, and no others."""

    source: str
    seq: int
    ledger: Ledger
    prewritten: bool = False


@dataclass(frozen=True, slots=True)
class WaveChunk:
    """A chunk that a window takes: as rows of its table's `version`, with low_ts as their commit_ts."""

    ref: ChunkRef
    version: int
    low_ts: int

    @property
    def physical(self) -> Physical:
        return Physical(self.ref.chunk.source, self.ref.chunk.database, self.ref.chunk.table)


@dataclass(frozen=True, slots=True)
class DamagedChunk:
    """Why a wave of a table can't be taken. token: the wave's."""

    token: str
    physical: Physical
    reason: str


class DamagedWaves(dict[tuple[str, Physical], str]):
    """Why waves can't be taken, as an application has seen: by token and physical table."""


@dataclass(frozen=True, slots=True)
class PrewrittenSegment:
    """A segment with prewrites that the window commits: start_ts -> commit_ts of the answer.

    owner: the source that its tables are of, where that isn't the segment's own. names: the tables that take part,
    where the segment itself doesn't name them.
    """

    ref: SegmentRef
    answers: Mapping[int, int]
    owner: str = ""
    names: Collection[tuple[str, str]] = ()

    @property
    def source(self) -> str:
        return self.owner or self.ref.source


@dataclass(slots=True)
class TableWindow:
    """One logical table's share of a window: (after_ts, the window's cut_ts].

    changes: versions that begin in it (judge_ddl). plan: what is done to it (choose_writers). MERGE and the counting
    writer take `staged`, the positional writer `upserts`. chunks: of waves that end in the window. again_ts: silver
    has all up to here already, where waves begin below it: changes of a table with a key can be applied twice. shards:
    of a routed table those that take part from another commit_ts on: a wave's low mark, or where they begin.
    """

    name: str
    database: str
    table: str
    routed: bool
    after_ts: int
    physical: set[Physical] = field(default_factory=set)
    staged: list[StagedFile] = field(default_factory=list)
    upserts: list[StagedUpsert] = field(default_factory=list)
    chunks: list[WaveChunk] = field(default_factory=list)
    again_ts: int = 0
    shards: dict[Physical, int] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    plan: TablePlan = NOTHING_PLANNED

    def begins(self, physical: Physical) -> int:
        """A physical table's changes above it are the window's."""
        if not self.routed:
            return self.after_ts
        return self.shards.get(physical, max(self.after_ts, self.again_ts))

    def check_follows(self, after_ts: int, applied_ts: int) -> None:
        """Raises Overtaken when silver has a part of the rows phase that begins at after_ts: they would be in it twice.

        applied_ts: silver's, below the phase's end. A phase behind a DDL begins before it, for rows of the same
        commit_ts, and the DDL may have recorded its own.
        """
        if applied_ts > max(after_ts + (after_ts != self.after_ts), self.again_ts):
            raise Overtaken(
                f"silver has all up to {applied_ts}, where this window saw {after_ts}: another apply wrote to it",
                where=self.name,
                remedy="run one apply of a pipeline at a time; this window is tried again",
            )


@dataclass(frozen=True, slots=True)
class Sweep:
    """Rows of a physical table that neither a wave nor the log wrote from low_ts on aren't at the source."""

    snapshot: str
    physical: Physical
    low_ts: int
    end_ts: int


@dataclass(slots=True)
class WindowWaves:
    """What a window has of snapshots. logical tables by name.

    taken: waves of physical tables whose rows it has. answers: events to record before its cut, whatever becomes of its
    tables. sweeps: of tables that are whole from this window on. states: what tables become with it. lows: of a
    snapshot of a physical table the lowest low mark that was taken. opened, begun: events and versions of tables that
    begin with a wave, which aren't in the lake yet; fills: nor are their states (record_begun).
    """

    taken: list[tuple[str, SnapshotEvent]] = field(default_factory=list)
    answers: list[SnapshotEvent] = field(default_factory=list)
    sweeps: list[tuple[str, Sweep]] = field(default_factory=list)
    states: dict[str, Standing] = field(default_factory=dict)
    lows: dict[TableKey, int] = field(default_factory=dict)
    opened: list[SnapshotEvent] = field(default_factory=list)
    begun: list[TableVersion] = field(default_factory=list)
    fills: bool = False


@dataclass(slots=True)
class Window:
    """(low_ts, cut_ts]: what is to be applied, and what the steps found out.

    catches_up: of a window below the published cut, the released tables that it is for, with the physical ones of each.
    asked: per source the names (`database.table`) that its segments were looked for by. behind: the source that it is
    for instead. Both None: the main window, above the cut. began: time.monotonic().
    """

    low_ts: int
    cut_ts: int
    refs: list[SegmentRef]
    catches_up: Mapping[str, Collection[Physical]] | None = field(default=None, kw_only=True)
    asked: dict[str, set[str]] = field(default_factory=dict, kw_only=True)
    behind: str | None = field(default=None, kw_only=True)
    began: float = field(default_factory=time.monotonic, init=False)
    tables: dict[str, TableWindow] = field(default_factory=dict)
    held: dict[str, Standing] = field(default_factory=dict)
    ddl_times: dict[tuple[str, int], int] = field(default_factory=dict)  # (source, commit_ts) -> Unix microseconds
    ledger: list[Accounted] = field(default_factory=list)
    delta_versions: dict[str, int] = field(default_factory=dict)
    key_files: dict[str, KeyFile] = field(default_factory=dict)  # of a window that was decoded here, by path
    abandoned: list[StagedUpsert] = field(default_factory=list)  # whose files no commit will ever name
    moves: list[Move] = field(default_factory=list)  # renames that its tables have to follow
    latency: Percentiles | None = None  # of its markers
    gaps: list[SegmentRef] = field(default_factory=list)  # what persons accepted as lost
    gap_ts: dict[str, int] = field(default_factory=dict)  # logical table -> commit_ts of the last such
    waves: WindowWaves = field(default_factory=WindowWaves)
    prewritten: list[PrewrittenSegment] = field(default_factory=list)  # in order of (source, seq)
    _memory: dict[type, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Of the refs given, gaps are apart: they have no bytes."""
        self.gaps += [ref for ref in self.refs if ref.flags & tables.SegmentFlag.GAP]
        self.refs = [ref for ref in self.refs if not ref.flags & tables.SegmentFlag.GAP]

    @property
    def main(self) -> bool:
        return self.catches_up is None and self.behind is None

    def memory(self, kind: type[Memory]) -> Memory:
        """What steps of this window work out once, made when it is first asked for."""
        kept: Memory = self._memory.setdefault(kind, kind())
        return kept

    def reach(self, further: Window) -> None:
        """It ends where another one does; what was worked out for its former end is worked out again."""
        self.cut_ts, self.refs, self.gaps = further.cut_ts, further.refs, further.gaps
        self._memory.clear()

    def again(self) -> Window:
        """The same window from its first step."""
        refs = [*self.refs, *self.gaps]
        return Window(self.low_ts, self.cut_ts, refs, catches_up=self.catches_up, asked=self.asked, behind=self.behind)

    def writers(self) -> str:
        """Which tables each writer wrote, for the log: "7 by position; by MERGE: shop.log (no key)"."""
        written = [entry for name, entry in self.tables.items() if name in self.delta_versions]
        wrote = [entry for entry in written if entry.plan is not NOTHING_PLANNED]
        earlier = [f"{len(written) - len(wrote)} by an earlier try"] if len(wrote) < len(written) else []
        merged = [f"{e.name} ({e.plan.why or 'by the pipeline file'})" for e in wrote if e.plan.target is None]
        parts = [f"{len(wrote) - len(merged)} by position"] if len(merged) < len(wrote) else []
        more = f" and {len(merged) - _NAMED_MAX} more" if len(merged) > _NAMED_MAX else ""
        return "; ".join([*earlier, *parts, *([f"by MERGE: {', '.join(merged[:_NAMED_MAX])}{more}"] if merged else [])])

    def take_out(self, name: str, state: Standing) -> None:
        """A table takes no part in this window any more; the first cause counts (window/standing/standings.py)."""
        entry = self.tables.pop(name, None)
        self.abandon(entry.upserts if entry else ())
        self.held.setdefault(name, state)

    def abandon(self, staged: Iterable[StagedUpsert]) -> None:
        """No commit will name these files; merge_into_silver deletes them (spark_jobs/window/abandoned.py)."""
        self.abandoned += staged
