"""What an apply application knows between windows.

In:  a pipeline and its lake.
Out: Application, which lives as long as the Spark application.

Nothing here is truth: after a restart all of it is read again from bronze, control tables and silver's transactions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.checkpoints import Checkpoints
from spark_jobs.window.states import States
from spark_jobs.window.window import Window
from tidegate import tables
from tidegate.config import OWN_DATABASES, Pipeline, TidbSource
from tidegate.delta.lease import Lease
from tidegate.errors import CommitOverwritten
from tidegate.lake import control, judgements, prewrites
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.lake.followed import Followed, Physical
from tidegate.lake.followed import load as load_followed
from tidegate.lake.held import last_states, to_row
from tidegate.lake.schema_rows import needed_rows
from tidegate.limits import AT_ONCE_TABLES_MIN
from tidegate.remedy import Remedy
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.model.columns import VersionStatus
from tidegate.schema.replay.history import Bounds, SchemaHistory
from tidegate.segments.prewrites import Prewrites
from tidegate.segments.window import SegmentRef
from tidegate.snapshot.progress.event_log import EventLog
from tidegate.snapshot.progress.standing import Known
from tidegate.standing.standing import Standing
from tidegate.tables import State, splits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A shadow with no other version was there before the log was followed.
_NOT_BORN = (VersionStatus.UNPROVEN, VersionStatus.DROPPED)
_FOREVER = (1 << 63) - 1

# What apply alone appends to; the cut's first: who lost it writes nothing more.
CLAIMED = (
    tables.CUTS,
    tables.TABLE_STATES,
    tables.SCHEMA_HISTORY,
    tables.FOLLOWED,
    tables.SNAPSHOTS,
    tables.PREWRITES,
    tables.LEDGER,
    tables.LATENCY,
)
Memory = TypeVar("Memory")


@dataclass(slots=True)
class Application:
    """One running apply job.

    background: Spark, which may not be there yet. pool: for looks at tables' logs and files, and for commits. What is
    done in it waits for nothing else that is.
    """

    background: BackgroundSession
    pipeline: Pipeline
    lake: LakeFiles
    index: BronzeIndex
    lease: Lease | None = None  # of apply, or of rebuild; none in a test
    histories: dict[str, SchemaHistory] = field(default_factory=dict)
    states: States = field(default_factory=States)
    judged: dict[str, judgements.Judged] = field(default_factory=dict)  # per source: what persons said of its log
    cut_ts: int = 0
    followed: Followed = field(default_factory=Followed)
    merge_only: dict[str, str] = field(default_factory=dict)  # tables that the positional writer gave back, and why
    cautioned: set[str] = field(default_factory=set)  # tables whose unlogged changes were warned of
    snapshots: Known = field(init=False)
    prewrites: dict[str, Prewrites] = field(default_factory=dict)  # per source
    damaged: dict[tuple[str, Physical], str] = field(default_factory=dict)  # a wave's token and table -> why
    _memory: dict[type, Any] = field(default_factory=dict)
    control: ControlTables = field(init=False)
    checkpoints: Checkpoints = field(init=False)
    pool: ThreadPoolExecutor = field(init=False)
    _prewritten: dict[str, int] = field(default_factory=dict)  # per source: start_ts of the oldest that is needed
    _prewritten_below: dict[str, int] = field(default_factory=dict)  # the same, for windows below the cut
    _applied: dict[str, int] = field(default_factory=dict)
    _pairs: dict[str, tuple[str, str]] = field(default_factory=dict)  # logical name -> database and table
    _flows: tuple[list[int], dict[str, set[Physical]]] = field(default_factory=lambda: ([], {}))
    _states_version: int = -1
    _history_version: int = -1
    _checked: tuple[int, int] = (-1, -1)
    _noted: dict[str, Standing] = field(default_factory=dict)  # states that are to be recorded

    @property
    def spark(self) -> SparkSession:
        """Waits for it: not for what a small window does. Raises SparkUnavailable, ConfigError."""
        return self.background.session

    def __post_init__(self) -> None:
        self.control = ControlTables(self.lake)
        self.snapshots = Known(EventLog(self.lake))
        self.checkpoints = Checkpoints(self.lake)
        self.pool = ThreadPoolExecutor(max(AT_ONCE_TABLES_MIN, self.pipeline.apply.parallel_tables), "table")

    def memory(self, kind: type[Memory]) -> Memory:
        """What one step keeps between windows, made when it is first asked for."""
        found: Memory = self._memory.setdefault(kind, kind())
        return found

    def load(self) -> None:
        """Read what earlier applications left: the newest published cut, schema histories, table states."""
        self.cut_ts = control.application_version(self.lake, tables.CUTS, self.cuts_app_id) or 0
        self.followed = load_followed(self.lake)
        self.refresh_prewrites()
        self.refresh()

    def refresh_prewrites(self) -> None:
        """Read what is open, or answered above the cut; a person may have decided about an orphan."""
        found = prewrites.for_apply(self.lake, min([self.cut_ts, *self.followed.behind.values()]))
        self.prewrites = {source: Prewrites(source, found.get(source, ())) for source in self.pipeline.sources}

    def claim(self) -> None:
        """From now on this application alone writes apply's control tables: one that lives on from before is told so.

        Its cut would be true of what it knows, but not of a table that joined since, or was released; what it says of a
        table would count as news.
        """
        claimed = partial(self.control.claim, claim_id=f"tidegate/{self.pipeline.pipeline}/apply")
        list(self.pool.map(claimed, CLAIMED))

    def check_claim(self) -> None:
        """Raises Overtaken when another application has started since, or this one's lease is lost."""
        if self.lease is not None:
            self.lease.check()
        self.control.check(tables.CUTS)

    def publish(self, rows: Sequence[Mapping[str, Any]], app_transaction: tuple[str, int] | None = None) -> None:
        """Append to control/cuts. Raises Overtaken."""
        if self.lease is not None:
            self.lease.check()
        self.control.append(tables.CUTS, rows, app_transaction)

    @property
    def cuts_app_id(self) -> str:
        """Under which control/cuts records the newest published cut_ts, in the commit that publishes it."""
        return f"tidegate/{self.pipeline.pipeline}/cuts"

    def reload(self) -> None:
        """Forget everything in memory and read it again."""
        self._applied.clear()
        self._noted.clear()
        self._states_version, self._history_version = -1, -1
        self.snapshots = Known(EventLog(self.lake))
        self._checked = (-1, -1)  # what a try found out and did not record must be found out again
        self.load()

    def refresh(self) -> None:
        """Take in what capture (a baseline) or a person (a release) has written since the last window."""
        version = self.control.version(tables.TABLE_STATES)
        if version != self._states_version:
            self._states_version = version
            self._history_version = -1  # a release lets a statement be read again: on the history before it
            self.states = States(last_states(self.lake))
            self.judged = judgements.read(self.lake)
        self.snapshots.look()
        version = self.control.version(tables.SCHEMA_HISTORY)
        if version != self._history_version:
            self._history_version = version
            self._flows = ([], {})
            self._note_prewritten()
            needed = needed_rows(self.lake, self.pipeline.sources, self._floor)
            made = {}
            for source, of in needed.items():
                bounds = Bounds(of.next_id, of.floor, of.standing)
                made[source] = SchemaHistory(source, of.rows, partial(self.keeps, source), bounds=bounds)
            self.histories = made
            for history in self.histories.values():
                self._hold_in(history)

    def forget_versions(self) -> None:
        """After a published cut: let go of table versions that no window needs any more."""
        self._note_prewritten(waiting=False)
        for source, history in self.histories.items():
            history.forget(partial(self._floor, source))

    def _note_prewritten(self, *, waiting: bool = True) -> None:
        """From where on versions are needed, per source, for rows that are committed long after they were written.

        waiting: look too for those that are committed in windows which a table below the cut is still to see.
        """
        if waiting:
            lows = [state.applied_ts for _, state in self.states.of(State.HELD, State.RELEASED)]
            low_ts = min([*lows, *self.snapshots.open_lows()], default=self.cut_ts)
            below = dict.fromkeys(self.pipeline.sources, low_ts) if low_ts < self.cut_ts else {}
            self._prewritten_below = prewrites.first_needed(self.lake, below)
        # What a person decided is known for ever, and wanted only as long as a table may stand below it.
        decided = any(one.decided_by for found in self.prewrites.values() for one in found)
        below_cut = decided and (self.states.any(State.HELD, State.RELEASED) or bool(self.snapshots.open_lows()))
        self._prewritten = {}
        for source, found in self.prewrites.items():
            after_ts = 0 if below_cut else self.followed.position(source, self.cut_ts)
            due = (one.start_ts for one in found if one.waits or one.answer_ts > after_ts)
            self._prewritten[source] = min([self._prewritten_below.get(source, _FOREVER), *due])

    def _floor(self, source: str, database: str, table: str) -> int:
        """The commit_ts from which on a table's versions are needed: it is applied up to there."""
        position = min(self.followed.position(source, self.cut_ts), self._prewritten.get(source, _FOREVER))
        known = self.states.get(self.logical_name(database, table)) if table else None
        return min(position, known.applied_ts) if known and known.state.waits else position

    def _hold_in(self, history: SchemaHistory) -> None:
        """Tell a fresh history which tables wait because a statement could not be followed."""
        for database, table in history.tables():
            state = self.states.get(self.logical_name(database, table))
            if state is not None and state.state == State.HELD and state.is_unread:
                remedy, names = Remedy(needs=state.needs), (f"{database}.{table}",)
                history.held[(database, table)] = DdlNotRead(state.reason, remedy=remedy, tables=names)

    def unchecked(self) -> bool:
        """Whether schema_history or table_states changed since this was last asked."""
        now = (self._history_version, self._states_version)
        changed, self._checked = now != self._checked, now
        return changed

    def history_written(self, version: int) -> None:
        """Our own append to schema_history is in memory already, unless somebody's came before it."""
        if version == self._history_version + 1:
            self._history_version = version

    def applied(self, name: str) -> int:
        """applied_ts of a logical table: everything at or below it is in silver.

        Silver's transaction version, or the last published cut when that is larger: a table that had no
        changes is not touched, and the cut says that it is complete all the same.
        """
        return max(self.written(name), self.mark(name))

    def written(self, name: str) -> int:
        """Up to where silver itself says that it has a logical table."""
        if name not in self._applied:
            silver = self.lake.log(tables.silver_path(*self.pair(name))).state()
            self._applied[name] = silver.transaction(tables.app_id(self.pipeline.pipeline, name))
        return self._applied[name]

    def mark(self, name: str) -> int:
        """applied_ts as far as control tables tell: the cut; of a table that isn't followed up to there its own mark,
        or its source's position when it goes on with that one.
        """
        state = self.states.get(name)
        if state is None or state.state not in (State.HELD, State.RELEASED, State.LEFT):
            return self.cut_ts
        if state.source:
            return max(state.applied_ts, self.followed.position(state.source, self.cut_ts))
        return state.applied_ts

    def publications(self, window: Window) -> int:
        """A number that each published window below the cut makes larger; trying one again, or a release, doesn't."""
        if window.behind:
            return self.followed.number + 1
        return (control.application_version(self.lake, tables.TABLE_STATES, self._caught_up_id) or 0) + 1

    @property
    def _caught_up_id(self) -> str:
        return f"tidegate/{self.pipeline.pipeline}/caught_up"

    def is_held(self, name: str) -> bool:
        """Whether a table waits for a person, or for a pause."""
        state = self.states.get(name)
        return state is not None and state.state is State.HELD

    def waits_below(self, name: str, low_ts: int) -> bool:
        """Whether a table is released, and to catch up with low_ts first; at the cut: or with a source of its own."""
        state = self.states.get(name)
        waits = state is not None and state.state == State.RELEASED
        return waits and (self.mark(name) < low_ts or (low_ts >= self.cut_ts and bool(self.late_sources(name))))

    def late_sources(self, name: str) -> set[str]:
        """Those that feed a table and are behind the cut."""
        late = self.followed.behind.keys()
        return {one[0] for one in self.flows().get(name, ())} & late if late else set()

    def flows(self) -> Mapping[str, Collection[Physical]]:
        """Every kept logical table that histories know, and the physical ones that flow into it."""
        sizes = [history.names for history in self.histories.values()]
        if self._flows[0] != sizes:
            found: dict[str, set[Physical]] = {}
            for source, history in self.histories.items():
                for database, table in history.tables():
                    if self.keeps(source, database, table):
                        found.setdefault(self.logical_name(database, table), set()).add((source, database, table))
            self._flows = (sizes, found)
        return self._flows[1]

    def held_at(self, name: str, error: BaseException) -> int:
        """applied_ts of a table that is held with an error; what another writer overwrote in silver isn't applied."""
        if not isinstance(error, CommitOverwritten):
            return self.applied(name)
        self.lake.log(tables.silver_path(*self.pair(name))).accept_loss()
        self.forget_applied(name)
        return self.written(name)

    def note_applied(self, name: str, upto_ts: int) -> None:
        self._applied[name] = upto_ts

    def forget_applied(self, name: str) -> None:
        """After an error: ask silver again what was committed."""
        self._applied.pop(name, None)

    def note_states(self, found: dict[str, Standing]) -> None:
        """Take table_states events into memory; the next record_states appends them with its own, in one commit.

        A window's steps may note them up to the one that writes silver.
        """
        self._noted |= found
        self.states |= found

    def record_caught_up(self, window: Window, found: Mapping[str, Standing]) -> None:
        """What a window of tables that catch up made of them: with this it is published."""
        self.record_states(found, (self._caught_up_id, self.publications(window)))

    def record_states(self, found: Mapping[str, Standing], app_transaction: tuple[str, int] | None = None) -> None:
        """Append table_states events and take them into memory. app_transaction: as control.append has it.

        Events that were appended under it before are no news: what the table says since then counts.
        """
        found, self._noted = {**self._noted, **found}, {}
        if not found:
            return
        now = datetime.now(UTC)
        rows = [to_row(state, self.pipeline.pipeline, name, now) for name, state in found.items()]
        version = self.control.append(tables.TABLE_STATES, rows, app_transaction)
        if app_transaction is not None and version != self._states_version + 1:
            self.refresh()
            return
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
        return self.names_of(ref.source, ref.tables)

    def names_of(self, source: str, named: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The same of what a segment, or a prewrite, names of its source."""
        history = self.histories.get(source)  # none of a source that left the pipeline
        for text in named:
            if text == tables.EVERY_TABLE:
                names: Sequence[tuple[str, str]] = history.tables() if history else ()
            else:
                names = splits(text)
                if len(names) > 1:  # a name with a dot: as the table that there is
                    names = [name for name in names if history and history.versions(*name)] or names
            for name in names:
                if self.keeps(source, *name):
                    yield name

    def keeps(self, source: str, database: str, table: str) -> bool:
        """Whether a physical table is followed into silver: the pipeline's own, and shadows of theirs.

        A shadow is followed from its CREATE TABLE in the log; of one that was there before not all rows are known.
        """
        entry = self.pipeline.sources.get(source)
        if entry is None or (isinstance(entry, TidbSource) and database in OWN_DATABASES):
            return False  # TiDB logs rows of its own tables too
        if source in self.histories and self.histories[source].is_sequence((database, table)):
            return False
        patterns = self.pipeline.tables
        return patterns.keeps(database, table) or (
            patterns.shadows(database, table)
            and source in self.histories
            and any(one.status not in _NOT_BORN for one in self.histories[source].versions(database, table))
        )
