"""A window, its participants, and its contents.

In:  nothing; steps hand these values on. Their results: made.py.
Out: Window, Taking, TableWindow, StagedFile, Move.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidegate import tables
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.partitions import RowsMoved
from tidegate.segments.result import Ledger, Problem
from tidegate.segments.window import SegmentRef
from tidegate.snapshot.chunks.chunk_table import ChunkRef
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical


@dataclass(frozen=True, slots=True)
class Move:
    """old, new: the rows' version before, and now. giver, taker: logical names; maybe one.

    For a rename both versions are of one physical table. For a partition that changes tables they
    are of two.
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
        """The move of a partition's rows; None for a rename."""
        return self.new.moved


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A Parquet file of decoded changes of one version of one physical table; path is relative to the lake.

    read_upto_ts: of a snapshot's rows, as WaveChunk's; 0 of changes.
    """

    source: str
    database: str
    table: str
    version: int
    path: str
    rows: int
    bytes: int
    min_commit_ts: int
    max_commit_ts: int
    read_upto_ts: int = 0

    @property
    def physical(self) -> Physical:
        return Physical(self.source, self.database, self.table)

    @property
    def owner(self) -> tuple[str, str, str, int]:
        """The owner of the changes: source, database, table, version."""
        return self.source, self.database, self.table, self.version


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why changes of a physical table in one segment couldn't be decoded."""

    source: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class Accounted:
    """The fate of a segment's bytes. prewritten: only of its rows committed by the window."""

    source: str
    seq: int
    ledger: Ledger
    prewritten: bool = False


@dataclass(frozen=True, slots=True)
class WaveChunk:
    """A chunk that a window takes. Its rows have the columns of the table's `version`, and low_ts
    as their commit_ts. exact: the wave's chunks are the whole table as it was at low_ts. high_ts:
    commit_ts of the wave's high mark.
    """

    ref: ChunkRef
    version: int
    low_ts: int
    exact: bool = False
    high_ts: int = 0

    @property
    def read_upto_ts(self) -> int:
        """The rows don't have changes above this commit_ts."""
        return self.low_ts if self.exact else self.high_ts

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
    """Damaged waves that an application has met -> why they can't be taken; by token and physical
    table.
    """


@dataclass(frozen=True, slots=True)
class PrewrittenSegment:
    """A segment with the window's committed prewrites: start_ts -> commit_ts of the answer.

    owner: the source of its tables, if not the segment's own. names: the tables taking part, where
    the segment itself doesn't name them.
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

    chunks: of waves that end in the window. again_ts: silver has everything up to it already; waves
    begin below it, and changes of a table with a key can be applied twice. shards: shards of a
    routed table that take part from another commit_ts on, a wave's low mark or their beginning.
    begun: of these, the ones that begin there without rows. Silver has nothing of them from there
    on, however far it is with the others.
    """

    name: str
    database: str
    table: str
    routed: bool
    after_ts: int
    physical: set[Physical] = field(default_factory=set)
    chunks: list[WaveChunk] = field(default_factory=list)
    again_ts: int = 0
    shards: dict[Physical, int] = field(default_factory=dict)
    begun: set[Physical] = field(default_factory=set)

    def begins(self, physical: Physical) -> int:
        """Changes of a physical table above this commit_ts belong to the window."""
        if not self.routed:
            return self.after_ts
        return self.shards.get(physical, max(self.after_ts, self.again_ts))


@dataclass(frozen=True, slots=True)
class Sweep:
    """Orders to delete rows of a physical table that neither a wave nor the log has written since
    low_ts: the source doesn't have them.
    """

    snapshot: str
    physical: Physical
    low_ts: int
    end_ts: int


@dataclass(slots=True)
class Taking:
    """The tables that take part in a window: the only thing that its steps change.

    tables: logical name -> its share. held: the new standings of tables that left the window.
    moves: renames and moved partitions, known once the window's DDL is replayed. They tie two
    tables: both leave the window together (standing/standings.py).
    """

    tables: dict[str, TableWindow] = field(default_factory=dict)
    held: dict[str, Standing] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)

    def take_out(self, name: str, state: Standing) -> None:
        """Take a table out of the window. The first cause counts."""
        self.tables.pop(name, None)
        self.held.setdefault(name, state)


@dataclass(frozen=True, slots=True)
class Window:
    """(low_ts, cut_ts]: the changes to be applied. A step with news of more segments gives the
    window with them.

    catches_up: for a window below the published cut, its released tables, with the physical ones of
    each. asked: per source the names (`database.table`) by which its segments were looked for.
    behind: its source instead. Both None: the main window, above the cut. gaps: losses accepted by
    persons; of the refs given, too: they have no bytes. began: time.monotonic().
    """

    low_ts: int
    cut_ts: int
    refs: Sequence[SegmentRef]
    catches_up: Mapping[str, Collection[Physical]] | None = field(default=None, kw_only=True)
    asked: Mapping[str, Collection[str]] = field(default_factory=dict, kw_only=True)
    behind: str | None = field(default=None, kw_only=True)
    gaps: Sequence[SegmentRef] = field(default=(), kw_only=True)
    began: float = field(default_factory=time.monotonic, kw_only=True)
    taking: Taking = field(default_factory=Taking, kw_only=True)

    def __post_init__(self) -> None:
        lost = [ref for ref in self.refs if ref.flags & tables.SegmentFlag.GAP]
        if lost:
            object.__setattr__(self, "gaps", [*self.gaps, *lost])
            object.__setattr__(self, "refs", [ref for ref in self.refs if not ref.flags & tables.SegmentFlag.GAP])

    @property
    def main(self) -> bool:
        return self.catches_up is None and self.behind is None

    @property
    def has_parts(self) -> bool:
        """Whether a smaller window, with an end below cut_ts, would still have segments."""
        return any(self.low_ts < ref.ends_ts < self.cut_ts for ref in self.refs)

    @property
    def tables(self) -> Mapping[str, TableWindow]:
        return self.taking.tables

    @property
    def held(self) -> Mapping[str, Standing]:
        return self.taking.held

    @property
    def moves(self) -> Sequence[Move]:
        return self.taking.moves

    def again(self) -> Window:
        """The same window before its first step."""
        return replace(self, began=time.monotonic(), taking=Taking())
