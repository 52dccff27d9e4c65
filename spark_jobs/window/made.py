"""The values that a window's steps make for later steps.

In:  nothing; these are the values.
Out: Planned, DdlReplayed, TakenWaves, Committed, StagedTable, StagedChanges, TableToWrite, Applied, GivenBack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from spark_jobs.window.plan import NOTHING_PLANNED, TablePlan
from spark_jobs.window.window import Accounted, PrewrittenSegment, StagedFile, Sweep, TableWindow, Window
from tidegate.errors import Overtaken
from tidegate.lake.figures.latency import Percentiles
from tidegate.merge.phases import DdlPhase
from tidegate.schema.ddl.statement import StatementTime
from tidegate.snapshot.progress.events import SnapshotEvent, TableKey
from tidegate.standing.standing import Standing
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.target import StagedUpsert

DdlTimes = Mapping[tuple[str, int], StatementTime]  # by (source, commit_ts)
_NAMED_MAX = 5  # tables named in a window's line of the log


class GivenBack(Exception):  # noqa: N818 - nothing went wrong
    """The positional writer can't do this table after all. why: in one phrase.

    window_only: only this window of the table is refused. Otherwise MERGE writes the table from
    here on.
    """

    def __init__(self, why: str, *, window_only: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.window_only = window_only


@dataclass(frozen=True, slots=True)
class Planned:
    """window: with its real end. gap_ts: logical table -> commit_ts of the last accepted loss in its window."""

    window: Window
    gap_ts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DdlReplayed:
    """window: with the segments its DDL calls for. ddl_times: when statements ran."""

    window: Window
    ddl_times: DdlTimes


@dataclass(frozen=True, slots=True)
class TakenWaves:
    """A window's share of snapshots. Logical tables are named `database.table`.

    taken: waves of physical tables whose rows it has. answers: events to record before its cut,
    whatever becomes of its tables. sweeps: of tables whole from this window on. states: tables' new
    standings. lows: for a snapshot of a physical table, the lowest low mark taken.
    """

    taken: list[tuple[str, SnapshotEvent]] = field(default_factory=list)
    answers: list[SnapshotEvent] = field(default_factory=list)
    sweeps: list[tuple[str, Sweep]] = field(default_factory=list)
    states: dict[str, Standing] = field(default_factory=dict)
    lows: dict[TableKey, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Committed:
    """Segments with rows apart from their commits, by (source, seq). ledger: of segments without
    any.
    """

    segments: Sequence[PrewrittenSegment]
    ledger: Sequence[Accounted]


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Changes of one table, laid out for its writer: MERGE and the counting writer take `files`,
    the positional writer `upserts`. Upserts that are in no commit stay in the list
    (positional/writer.py removes the others).
    """

    files: list[StagedFile] = field(default_factory=list)
    upserts: list[StagedUpsert] = field(default_factory=list)

    def take(self, staged: StagedFile | StagedUpsert) -> None:
        """Add what a stage gave."""
        if isinstance(staged, StagedUpsert):
            self.upserts.append(staged)
        else:
            self.files.append(staged)

    def __add__(self, more: StagedTable) -> StagedTable:
        return StagedTable([*self.files, *more.files], [*self.upserts, *more.upserts])


@dataclass(slots=True)
class MadeByKeys:
    """Tables, by logical name, whose rows foreign keys changed in a window below the log.

    told: those changes as rows of changelogs, for tables that have one. lacking: table -> why its
    changelog lacks them.
    """

    told: dict[str, list[pa.Table]] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """All staged changes of a window, by decoding and by foreign keys (follow_cascades).

    tables: by logical name; of those gone from the window meanwhile, too. key_files: of a window
    decoded in the driver, by path; each use takes one out.
    """

    tables: Mapping[str, StagedTable]
    key_files: KeyFilesAtHand
    by_keys: MadeByKeys = field(default_factory=MadeByKeys)

    def joined(self, made: Mapping[str, StagedTable]) -> StagedChanges:
        """With more, staged by a later step."""
        tables = dict(self.tables)
        for name, more in made.items():
            tables[name] = tables.get(name, StagedTable()) + more
        return replace(self, tables=tables)


@dataclass(frozen=True, slots=True)
class TableToWrite:
    """One table for its writer: its share of the window, its plan, and its changes."""

    entry: TableWindow
    plan: TablePlan = NOTHING_PLANNED
    staged: StagedTable = field(default_factory=StagedTable)

    @property
    def name(self) -> str:
        return self.entry.name

    def applied_again(self, after_ts: int, applied_ts: int) -> int:
        """Silver has the changes of the rows phase from after_ts up to this commit_ts already: they
        are applied again. Those of `begun` aren't in it.
        """
        return applied_ts if applied_ts > self._begun(after_ts) else after_ts

    def check_follows(self, after_ts: int, applied_ts: int) -> None:
        """Raises Overtaken if silver has a part of the rows phase from after_ts on already: rows
        would be written twice.

        applied_ts: silver's, below the phase's end.
        """
        if applied_ts > max(self._begun(after_ts), self.entry.again_ts):
            raise Overtaken(
                f"silver has all up to {applied_ts}, where this window saw {after_ts}: another apply wrote to it",
                where=self.name,
                remedy="run one apply of a pipeline at a time; this window is tried again",
            )

    def _begun(self, after_ts: int) -> int:
        """The commit_ts that silver may have recorded where a rows phase begins: after a DDL also the DDL's own. That
        phase begins before the DDL, for rows of the same commit_ts.
        """
        ddl = (planned.phase for planned in self.plan.phases if isinstance(planned.phase, DdlPhase))
        return after_ts + any(phase.upto_ts == after_ts + 1 for phase in ddl)


@dataclass(frozen=True, slots=True)
class Applied:
    """An applied window. rows: decoded changes. versions: Delta's, of the written tables."""

    window: Window
    rows: int
    versions: Mapping[str, int]
    plans: Mapping[str, TablePlan]
    latency: Percentiles | None = None

    def writers(self) -> str:
        """The tables of each writer, for the log: "7 by position; by MERGE: shop.log (no key)"."""
        written = {name: self.plans[name] for name in self.window.tables if name in self.versions}
        wrote = {name: plan for name, plan in written.items() if plan is not NOTHING_PLANNED}
        earlier = [f"{len(written) - len(wrote)} by an earlier try"] if len(wrote) < len(written) else []
        merged = [f"{name} ({p.why or 'by the pipeline file'})" for name, p in wrote.items() if p.target is None]
        parts = [f"{len(wrote) - len(merged)} by position"] if len(merged) < len(wrote) else []
        more = f" and {len(merged) - _NAMED_MAX} more" if len(merged) > _NAMED_MAX else ""
        return "; ".join([*earlier, *parts, *([f"by MERGE: {', '.join(merged[:_NAMED_MAX])}{more}"] if merged else [])])
