"""What an apply application knows between windows, and what a window collects on its way through the steps.

In:  a pipeline and its lake.
Out: Application (lives as long as the Spark application) and Window (lives for one pass of the steps).

Nothing here is truth: after a restart all of it is read again from bronze, schema_history, cuts,
table_states and silver's own transaction versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from spark_jobs.checkpoints import Checkpoints
from spark_jobs.delta_commit import DeltaCommitter
from spark_jobs.upsert_target import StagedUpsert, UpsertTarget
from tidegate import tables
from tidegate.binlog.heal import Mismatch
from tidegate.config import Pipeline, Writer
from tidegate.lake import control, judgements
from tidegate.lake.bronze_index import BronzeIndex
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.lake.held import last_events
from tidegate.lake.latency import Percentiles
from tidegate.lake.schema_rows import needed_rows
from tidegate.lake.silver import applied_ts
from tidegate.merge.window import SegmentRef
from tidegate.schema.columns import TableVersion
from tidegate.schema.ddl_reader import DdlNotRead
from tidegate.schema.history import SchemaHistory
from tidegate.tables import splits
from tidegate.upsert.key_file import KeyFile

if TYPE_CHECKING:
    from spark_jobs.table_moves import Move

ACTIVE, HELD, RELEASED, DROPPED = "active", "held", "released", "dropped"
_NAMED_MAX = 5  # tables named in a window's line of the log
# table_states.error of a table whose DDL could not be followed: what comes later must not be replayed onto it.
DDL_NOT_READ = DdlNotRead.__name__


def needs_snapshot_reason(version: TableVersion) -> str:
    """One line for table_states: what, where, what to do."""
    place = f"{version.name} at {version.file}:{version.pos} of {version.source}"
    if version.kind == "rename":
        return f"{place}: renamed from another table ({version.ddl[:120]}); its rows need a snapshot"
    if version.kind == "create":
        made = f"{version.ddl[:120]} may have found it there, with rows that the binlog does not show"
        return f"{place}: {made}; truncate it at the source, or drop and create it"
    if version.kind == "baseline":
        return f"{place}: held rows before capture started; take a snapshot of it, or truncate it at the source"
    if version.moved is not None and version.moved.why:
        changed = f"{version.ddl[:120]} changed rows that the binlog does not show: {version.moved.why}"
        return f"{place}: {changed}; take a snapshot of it"
    changed = f"{version.kind} changed rows that the binlog does not show ({version.ddl[:120]})"
    return f"{place}: {changed}; take a snapshot of it"


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


def _state_of(row: Mapping[str, Any]) -> TableState:
    """From a row of control/table_states."""
    cells = {item.name: row[f"place_{item.name}"] for item in fields(Place)}
    place = None if cells["source"] is None else Place(**cells)
    return TableState(row["state"], row["reason"], row["error"], row["commit_ts"], place, row["recorded_at"])


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


@dataclass(slots=True)
class Window:
    """(low_ts, cut_ts]: what is to be applied, and what the steps found out."""

    low_ts: int
    cut_ts: int
    refs: list[SegmentRef]
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

    def writers(self) -> str:
        """Which tables each writer wrote, for the log: "7 by position; by MERGE: shop.log (no key)"."""
        wrote = [entry for name, entry in self.tables.items() if name in self.delta_versions]
        merged = [f"{e.name} ({e.why or 'by the pipeline file'})" for e in wrote if e.target is None]
        parts = [f"{len(wrote) - len(merged)} by position"] if len(merged) < len(wrote) else []
        more = f" and {len(merged) - _NAMED_MAX} more" if len(merged) > _NAMED_MAX else ""
        return "; ".join([*parts, *([f"by MERGE: {', '.join(merged[:_NAMED_MAX])}{more}"] if merged else [])])

    def hold(self, name: str, error: str, reason: str, applied: int | None = None, place: Place | None = None) -> None:
        """Take a table out of this window; the first reason counts."""
        entry = self.tables.pop(name, None)
        self.abandoned += entry.upserts if entry else []
        if name not in self.held:
            at = applied if applied is not None else (entry.after_ts if entry else self.low_ts)
            self.held[name] = TableState(HELD, reason, error, at, place)


@dataclass(slots=True)
class Application:
    """One running apply job."""

    spark: SparkSession
    pipeline: Pipeline
    lake: LakeFiles
    index: BronzeIndex
    histories: dict[str, SchemaHistory] = field(default_factory=dict)
    states: dict[str, TableState] = field(default_factory=dict)
    judged: dict[str, judgements.Judged] = field(default_factory=dict)  # per source: what persons said of its log
    cut_ts: int = 0
    large_tables: set[str] = field(default_factory=set)  # once large, not measured again
    merge_only: dict[str, str] = field(default_factory=dict)  # tables that the positional writer gave back, and why
    upkeep_windows: dict[str, int] = field(default_factory=dict)  # that wrote a table since its files were looked at
    upkeep_saved: dict[str, int] = field(default_factory=dict)  # bytes that a table may rewrite, saved up
    cautioned: set[str] = field(default_factory=set)  # tables whose unlogged changes were warned of
    _committer: DeltaCommitter | None = None
    control: ControlTables = field(init=False)
    checkpoints: Checkpoints = field(init=False)
    _applied: dict[str, int] = field(default_factory=dict)
    _pairs: dict[str, tuple[str, str]] = field(default_factory=dict)  # logical name -> database and table
    _states_version: int = -1
    _history_version: int = -1
    _checked: tuple[int, int] = (-1, -1)

    @property
    def committer(self) -> DeltaCommitter:
        if self._committer is None:
            self._committer = DeltaCommitter.of(self.spark)
        return self._committer

    def __post_init__(self) -> None:
        self.control = ControlTables(self.lake)
        self.checkpoints = Checkpoints(lambda: self.committer)

    def load(self) -> None:
        """Read what earlier applications left: the newest published cut, schema histories, table states."""
        self.control = ControlTables(self.lake)
        self.cut_ts = control.application_version(self.lake, tables.CUTS, self.cuts_app_id) or 0
        self.refresh()

    @property
    def cuts_app_id(self) -> str:
        """Under which control/cuts records the newest published cut_ts, in the commit that publishes it."""
        return f"tidegate/{self.pipeline.pipeline}/cuts"

    def reload(self) -> None:
        """Forget everything in memory and read it again."""
        self._applied.clear()
        self._states_version = self._history_version = -1
        self._checked = (-1, -1)  # what a try found out and did not record must be found out again
        self.load()

    def refresh(self) -> None:
        """Take in what capture (a baseline) or a person (a release) has written since the last window."""
        version = self.control.version(tables.TABLE_STATES)
        if version != self._states_version:
            self._states_version = version
            self._history_version = -1  # a release lets a statement be read again: on the history before it
            self.states = {table: _state_of(event) for table, event in last_events(self.lake).items()}
            self.judged = judgements.read(self.lake)
        version = self.control.version(tables.SCHEMA_HISTORY)
        if version != self._history_version:
            self._history_version = version
            needed = needed_rows(self.lake, self.pipeline.sources, self._floor)
            self.histories = {
                source: SchemaHistory(
                    source, found.rows, partial(self.keeps, source), next_id=found.next_id, floor=found.floor
                )
                for source, found in needed.items()
            }
            for history in self.histories.values():
                self._hold_in(history)

    def forget_versions(self) -> None:
        """After a published cut: let go of table versions that no window needs any more."""
        for source, history in self.histories.items():
            history.forget(partial(self._floor, source))

    def _floor(self, _source: str, database: str, table: str) -> int:
        """The commit_ts from which on a table's versions are needed: it is applied up to there."""
        state = self.states.get(self.logical_name(database, table)) if table else None
        waits = state is not None and state.state in (HELD, RELEASED)
        return min(self.low_ts, state.applied_ts) if waits and state else self.low_ts

    def _hold_in(self, history: SchemaHistory) -> None:
        """Tell a fresh history which tables wait because a statement could not be followed."""
        for database, table in history.tables():
            state = self.states.get(self.logical_name(database, table))
            if state is not None and state.state == HELD and state.error == DDL_NOT_READ:
                history.held[(database, table)] = DdlNotRead(state.reason, tables=(f"{database}.{table}",))

    def unchecked(self) -> bool:
        """Whether schema_history or table_states changed since this was last asked."""
        now = (self._history_version, self._states_version)
        changed, self._checked = now != self._checked, now
        return changed

    def history_written(self, version: int) -> None:
        """Our own append to schema_history is in memory already, unless somebody's came before it."""
        if version == self._history_version + 1:
            self._history_version = version

    @property
    def low_ts(self) -> int:
        """All tables that are not held have everything up to here; a released one may be behind the published cut."""
        return min([self.cut_ts, *(s.applied_ts for s in self.states.values() if s.state == RELEASED)])

    def applied(self, name: str) -> int:
        """applied_ts of a logical table: everything at or below it is in silver.

        Silver's transaction version, or the last published cut when that is larger: a table that had no
        changes is not touched, and the cut says that it is complete all the same. A held table's own mark counts.
        """
        state = self.states.get(name)
        if name not in self._applied:
            database, table = self.pair(name)
            uri = self.lake.uri(tables.silver_path(database, table))
            app_id = tables.app_id(self.pipeline.pipeline, name)
            self._applied[name] = applied_ts(uri, self.lake.storage_options, app_id)
        floor = state.applied_ts if state and state.state in (HELD, RELEASED) else self.cut_ts
        return max(self._applied[name], floor)

    def note_applied(self, name: str, upto_ts: int) -> None:
        self._applied[name] = upto_ts

    def forget_applied(self, name: str) -> None:
        """After an error: ask silver again what was committed."""
        self._applied.pop(name, None)

    def record_states(self, found: dict[str, TableState]) -> None:
        """Append table_states events and take them into memory."""
        if not found:
            return
        now = datetime.now(UTC)
        rows = [
            {
                "pipeline": self.pipeline.pipeline,
                "table": name,
                "state": state.state,
                "reason": state.reason,
                "error": state.error,
                "commit_ts": state.applied_ts,
                "recorded_at": now,
                **({f"place_{key}": value for key, value in asdict(state.place).items()} if state.place else {}),
            }
            for name, state in found.items()
        ]
        version = self.control.append(tables.TABLE_STATES, rows)
        self.states |= {name: replace(state, since=now) for name, state in found.items()}
        if version == self._states_version + 1:  # else somebody wrote too: the next refresh reads it
            self._states_version = version

    def logical(self, database: str, table: str) -> tuple[str, str, bool]:
        """(database, table, routed) of the logical table that a physical one flows into."""
        found = self.pipeline.tables.logical(database, table)
        self._pairs[f"{found[0]}.{found[1]}"] = found[:2]
        return found

    def logical_name(self, database: str, table: str) -> str:
        """`database.table` of the logical table that a physical one flows into: the key of states and windows."""
        return ".".join(self.logical(database, table)[:2])

    def pair(self, name: str) -> tuple[str, str]:
        """Database and table of a logical table's name, which may hold more than one dot."""
        if name not in self._pairs:
            for history in self.histories.values():
                for database, table in history.tables():
                    self.logical(database, table)
        return self._pairs.get(name) or splits(name)[0]

    def names_in(self, ref: SegmentRef) -> Iterator[tuple[str, str]]:
        """Every kept table, physical, that a segment may touch by what its row in bronze says."""
        history = self.histories.get(ref.source)  # none of a source that left the pipeline
        known = history.tables() if history else ()
        for text in ref.tables:
            for name in known if text == tables.EVERY_TABLE else splits(text):
                if self.keeps(ref.source, *name):
                    yield name

    def keeps(self, source: str, database: str, table: str) -> bool:
        """Whether a physical table is followed into silver: the pipeline's own, and shadows of theirs.

        A shadow is followed from its CREATE TABLE in the log; of one that was there before not all rows are known.
        """
        if source not in self.pipeline.sources:
            return False
        if source in self.histories and self.histories[source].is_sequence((database, table)):
            return False
        patterns = self.pipeline.tables
        return patterns.keeps(database, table) or (
            patterns.shadows(database, table)
            and source in self.histories
            and bool(self.histories[source].versions(database, table))
        )
