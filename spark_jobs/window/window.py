"""A window on its way through the steps, and what is known of a table that waits.

In:  nothing; these are the values that steps hand on.
Out: Window (lives for one pass of the steps), TableWindow, TableState, Place.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidegate import tables
from tidegate.binlog.heal import Mismatch
from tidegate.config import Writer
from tidegate.errors import RECREATE, REFILL, Overtaken
from tidegate.lake.latency import Percentiles
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.model.columns import TableVersion, VersionStatus, why_unproven
from tidegate.segments.window import SegmentRef
from tidegate.upsert.key_file import KeyFile
from tidegate.upsert.target import StagedUpsert, UpsertTarget

if TYPE_CHECKING:
    from spark_jobs.window.moves import Move

ACTIVE, HELD, RELEASED, DROPPED, LEFT = "active", "held", "released", "dropped", "left"
_NAMED_MAX = 5  # tables named in a window's line of the log
# table_states.error of a table whose DDL could not be followed: what comes later must not be replayed onto it.
DDL_NOT_READ = DdlNotRead.__name__


def needs_snapshot_reason(version: TableVersion) -> str:
    """One line for table_states: what, where, what to do."""
    place = f"{version.name} at {version.file}:{version.pos} of {version.source}"
    if version.status is VersionStatus.UNPROVEN:
        return f"{place}: {why_unproven(version)}; {RECREATE}"
    if version.kind == "rename":
        return f"{place}: renamed from another table ({version.ddl[:120]}); {REFILL}"
    if version.kind == "baseline":
        return f"{place}: held rows before capture started; {REFILL}"
    if version.moved is not None and version.moved.why:
        changed = f"{version.ddl[:120]} changed rows that the binlog does not show: {version.moved.why}"
        return f"{place}: {changed}; {REFILL}"
    changed = f"{version.kind} changed rows that the binlog does not show ({version.ddl[:120]})"
    return f"{place}: {changed}; {REFILL}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a source's log a table's trouble is.

    database, table: the physical table's. pos: of a DDL its end, else the start of an event; ddl: "" when it is none.
    """

    source: str
    database: str
    table: str
    file: str
    pos: int
    at_ts: int
    ddl: str = ""

    @classmethod
    def of(cls, version: TableVersion) -> Place:
        """Where a version begins."""
        name = (version.source, version.database, version.table)
        return cls(*name, version.file, version.pos, version.commit_ts, version.ddl)


@dataclass(frozen=True, slots=True)
class TableState:
    """Why a logical table waits. applied_ts: all changes up to it are in silver (held and released tables).

    since: when this was recorded.
    """

    state: str
    reason: str = ""
    error: str = ""
    applied_ts: int = 0
    place: Place | None = None
    since: datetime | None = field(default=None, compare=False)

    @property
    def behind_source(self) -> str:
        """The source that a released table goes on with; "" when it catches up by itself."""
        word, _, source = self.error.partition(" ")
        return source if self.state == RELEASED and word == tables.BEHIND_SOURCE else ""


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
class TableWindow:
    """One logical table's share of a window: (after_ts, the window's cut_ts].

    writer, why: chosen by choose_writers, with the reason in one phrase. MERGE takes `staged`, the positional writer
    `upserts`.
    """

    name: str
    database: str
    table: str
    routed: bool
    after_ts: int
    physical: set[tuple[str, str, str]] = field(default_factory=set)  # (source, database, table)
    staged: list[StagedFile] = field(default_factory=list)
    writer: Writer = Writer.MERGE
    why: str = ""
    target: UpsertTarget | None = None  # of a table that the positional writer takes
    upserts: list[StagedUpsert] = field(default_factory=list)

    def check_follows(self, after_ts: int, applied_ts: int) -> None:
        """Raises Overtaken when silver has a part of the rows phase that begins at after_ts: they would be in it twice.

        applied_ts: silver's, below the phase's end. A phase behind a DDL begins before it, for rows of the same
        commit_ts, and the DDL may have recorded its own.
        """
        if applied_ts > after_ts + (after_ts != self.after_ts):
            raise Overtaken(
                f"silver has all up to {applied_ts}, where this window saw {after_ts}: another apply wrote to it",
                where=self.name,
                remedy="run one apply of a pipeline at a time; this window is tried again",
            )


@dataclass(slots=True)
class Window:
    """(low_ts, cut_ts]: what is to be applied, and what the steps found out.

    catches_up: of a window below the published cut, the released tables that it is for, with the physical ones of each.
    behind: ... the source that it is for instead. Both None: the main window, above the cut. began: time.monotonic().
    """

    low_ts: int
    cut_ts: int
    refs: list[SegmentRef]
    catches_up: Mapping[str, Collection[tuple[str, str, str]]] | None = field(default=None, kw_only=True)
    behind: str | None = field(default=None, kw_only=True)
    began: float = field(default_factory=time.monotonic, init=False)
    tables: dict[str, TableWindow] = field(default_factory=dict)
    held: dict[str, TableState] = field(default_factory=dict)
    ddl_times: dict[tuple[str, int], int] = field(default_factory=dict)  # (source, commit_ts) -> Unix microseconds
    ledger: list[dict[str, Any]] = field(default_factory=list)
    delta_versions: dict[str, int] = field(default_factory=dict)
    key_files: dict[str, KeyFile] = field(default_factory=dict)  # of a window that was decoded here, by path
    abandoned: list[StagedUpsert] = field(default_factory=list)  # whose files no commit will ever name
    mismatches: dict[tuple[str, str, str], Mismatch] = field(default_factory=dict)  # physical table -> the first one
    moves: list[Move] = field(default_factory=list)  # renames that its tables have to follow
    latency: Percentiles | None = None  # of its markers
    gaps: list[SegmentRef] = field(default_factory=list)  # what persons accepted as lost
    gap_ts: dict[str, int] = field(default_factory=dict)  # logical table -> commit_ts of the last such

    def __post_init__(self) -> None:
        """Of the refs given, gaps are apart: they have no bytes."""
        self.gaps += [ref for ref in self.refs if ref.flags & tables.SegmentFlag.GAP]
        self.refs = [ref for ref in self.refs if not ref.flags & tables.SegmentFlag.GAP]

    @property
    def main(self) -> bool:
        return self.catches_up is None and self.behind is None

    def again(self) -> Window:
        """The same window from its first step."""
        refs = [*self.refs, *self.gaps]
        return Window(self.low_ts, self.cut_ts, refs, catches_up=self.catches_up, behind=self.behind)

    def writers(self) -> str:
        """Which tables each writer wrote, for the log: "7 by position; by MERGE: shop.log (no key)"."""
        wrote = [entry for name, entry in self.tables.items() if name in self.delta_versions]
        merged = [f"{e.name} ({e.why or 'by the pipeline file'})" for e in wrote if e.target is None]
        parts = [f"{len(wrote) - len(merged)} by position"] if len(merged) < len(wrote) else []
        more = f" and {len(merged) - _NAMED_MAX} more" if len(merged) > _NAMED_MAX else ""
        return "; ".join([*parts, *([f"by MERGE: {', '.join(merged[:_NAMED_MAX])}{more}"] if merged else [])])

    def wait(self, name: str, state: TableState) -> None:
        """Take a table out of this window for another reason than an error."""
        entry = self.tables.pop(name, None)
        self.abandoned += entry.upserts if entry else []
        self.held.setdefault(name, state)

    def hold(self, name: str, error: str, reason: str, applied: int | None = None, place: Place | None = None) -> None:
        """Take a table out of this window; the first reason counts."""
        entry = self.tables.pop(name, None)
        self.abandoned += entry.upserts if entry else []
        if name not in self.held:
            at = applied if applied is not None else (entry.after_ts if entry else self.low_ts)
            self.held[name] = TableState(HELD, reason, error, at, place)
