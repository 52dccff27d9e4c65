"""The state of a pipeline, read at most every few seconds, however many readers there are: people on the page, a
metrics scraper.

In:  a pipeline; its lake, and its sources, by whoever's connections.
Out: PipelineView. A lake is kept open between looks, so only its new part is read.

Sources are asked side by side, and nobody waits for slow ones: their answers are in a later view.
Until then the view says that they haven't answered.
"""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tidegate.errors import TidegateError
from tidegate.home import state_folder
from tidegate.limits import CAPTURE_KNOWN_SECONDS, PAGE_ASK_SECONDS, PAGE_CHANGED_ROWS_MAX, PAGE_LOOK_SECONDS
from tidegate.pipelines.opened import asking, open_lake, seen_standing
from tidegate.text_layout import age_text, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tidegate.capture.health import Health
    from tidegate.capture.standing import Ask, CaptureStanding, SourceAnswer
    from tidegate.capture.status_file import CaptureStatus
    from tidegate.config import Pipeline
    from tidegate.connections import Connections
    from tidegate.lake.bronze.first_commits import FirstCommits
    from tidegate.lake.figures.maintained import LastMaintain
    from tidegate.lake.figures.timeline import Timeline
    from tidegate.lake.figures.verified import Verified
    from tidegate.lake.files import LakeFiles
    from tidegate.lake.people.audit import Recorded
    from tidegate.lake.schema_history.schema_changes import SchemaChange
    from tidegate.segments.prewrites import Prewrite
    from tidegate.snapshot.progress.events import TableProgress
    from tidegate.snapshot.progress.shown import ShownSnapshots
    from tidegate.standing.standing import Standing
    from tidegate.tables.form import Table

T = TypeVar("T")
_ASKED_AT_ONCE_MAX: Final = 16
_TABLES_KEPT: Final = 32  # of which the versions stay in memory
_SHARDS_SHOWN: Final = 8
_DIFFERENT_NAMED: Final = 5
# The name of a range of history -> seconds.
RANGES: Final = {"hour": 3600, "day": 86_400, "week": 7 * 86_400}


@dataclass(frozen=True, slots=True)
class PipelineView:
    """One look. error: why the lake can't be read, fault: its class; the rest is of no lake then. at:
    Unix seconds. is_old: the lake gives no answer to a newer look. is_before_act: somebody has acted
    since, and a newer look is under way.

    failed_snapshots: of each table of a source whose last snapshot to end failed. captures: by
    source, the last words of captures on this machine. changes: (logical table, change), the newest
    first. prewrites: prepared transactions without an answer. These and `maintained` are of a look
    with a history.
    """

    pipeline: Pipeline
    at: float
    error: str = ""
    standing: CaptureStanding | None = None
    snapshots: tuple[TableProgress, ...] = ()
    verified: Mapping[str, Verified] = field(default_factory=dict)
    timeline: Timeline | None = None
    failed_snapshots: tuple[TableProgress, ...] = ()
    captures: Mapping[str, CaptureStatus] = field(default_factory=dict)
    changes: tuple[tuple[str, SchemaChange], ...] = ()
    prewrites: tuple[Prewrite, ...] = ()
    maintained: LastMaintain | None = None
    fault: str = ""
    is_old: bool = False
    is_before_act: bool = False

    @property
    def clock(self) -> str:
        """The time of day of the look."""
        return time.strftime("%H:%M:%S UTC", time.gmtime(self.at))

    @property
    def health(self) -> Health:
        """The state in one word."""
        from tidegate.capture.health import health

        return health(None if self.is_old else self.standing)

    @property
    def why(self) -> str:
        """The state in a sentence."""
        from tidegate.capture.health import why

        if self.standing is None:
            return f"The lake can't be read: {self.error}"
        if self.is_old:
            ago = age_text(max(0.0, time.time() - self.at))
            return f"The lake hasn't answered since {self.clock}, {ago} ago. This is its state of that time."
        failing = []
        for name, capture in self.captures.items():
            if capture.lake_error and self.at - capture.written_at < CAPTURE_KNOWN_SECONDS:
                failing.append(f"The lake takes nothing of what capture of {name} reads: {capture.lake_error}.")
        return " ".join([why(self.standing), *self._differing_words(), *failing])

    @property
    def different(self) -> list[str]:
        """The tables whose newest verification found rows that aren't the source's."""
        from tidegate.verify.report import Outcome

        alive = self.standing.alive if self.standing is not None else ()
        return [name for name in alive if (known := self.verified.get(name)) and known.outcome == Outcome.DIFFERENT]

    def _differing_words(self) -> Iterator[str]:
        if names := self.different:
            named = ", ".join(names[:_DIFFERENT_NAMED]) + (", ..." if len(names) > _DIFFERENT_NAMED else "")
            count = counted(len(names), "table differs", "tables differ")
            name = self.pipeline.pipeline
            yield (
                f"{count} from the source by the last verification: {named}. `tidegate verify {name}` shows the rows,"
                " and `--repair` copies them again."
            )

    def in_silver(self, name: str, change: SchemaChange) -> str:
        """The fate of a change of a logical table's columns, in a few words."""
        from tidegate.tables import State  # imports pyarrow

        tables = self.standing.tables if self.standing is not None else ()
        table = next((each for each in tables if each.table == name), None)
        if table is None:
            return "not in silver"
        if table.applied_ts < change.version.commit_ts:
            return "no: the table is held" if table.state is State.HELD else "not yet"
        return "yes, and the table is held" if table.state is State.HELD else "yes"


def look(
    pipeline: Pipeline,
    lake: LakeFiles,
    ask: Ask,
    now: float,
    snapshots: ShownSnapshots | None = None,
    state_dir: Path | None = None,
) -> PipelineView:
    """All but the history. now: Unix seconds. snapshots, state_dir: as of seen_standing.

    Raises LakeUnavailable, OSError.
    """
    from tidegate.lake.figures.verified import verified
    from tidegate.snapshot.progress.shown import ShownSnapshots, under_way_and_failed

    snapshots = snapshots or ShownSnapshots(lake)
    stands = seen_standing(pipeline, lake, ask, snapshots, state_dir)
    under_way, failed = under_way_and_failed(snapshots.tables())
    ended = {table.table for table in stands.tables if table.has_ended}
    tables = pipeline.tables
    failed = [
        table
        for table in failed
        if table.source in pipeline.sources
        and tables.keeps(*table.name)
        and tables.logical(*table.name).name not in ended
    ]
    return PipelineView(pipeline, now, "", stands, tuple(under_way), verified(lake), failed_snapshots=tuple(failed))


def recent(pipeline: Pipeline, lake: LakeFiles) -> tuple[tuple[str, SchemaChange], ...]:
    """PipelineView.changes. Raises LakeUnavailable."""
    from tidegate.lake.schema_history.schema_changes import recent_changes

    def logical(pair: tuple[str, str]) -> str:
        return pipeline.tables.logical(*pair).name if pipeline.tables.keeps(*pair) else ""

    return tuple(recent_changes(lake, logical, PAGE_CHANGED_ROWS_MAX))


class PipelineReader:
    """The reader of one pipeline. Its methods may be called from any thread.

    lake_connections, source_connections: by the id of a connection.
    """

    def __init__(self, pipeline: Pipeline, lake_connections: Connections, source_connections: Connections) -> None:
        self.pipeline = pipeline
        self._lake_connections, self._source_connections = lake_connections, source_connections
        self._lock = threading.Lock()
        self._lake: LakeFiles | None = None
        self._snapshots: ShownSnapshots | None = None
        self._firsts: FirstCommits | None = None
        self._view: PipelineView | None = None
        self._changed_at = 0.0
        self._histories: dict[str, tuple[float, Timeline]] = {}
        self._pool = ThreadPoolExecutor(min(_ASKED_AT_ONCE_MAX, len(pipeline.sources)), "tidegate-ask")
        self._asking: Ask | None = None
        self._changes: dict[str, list[SchemaChange]] = {}  # of the version below of control/schema_history
        self._changes_at = -1
        self._read: dict[str, tuple[int, Any]] = {}  # of each control table, with its version
        self._asked: dict[str, Future[SourceAnswer]] = {}
        self._answers: dict[str, SourceAnswer] = {}

    def view(self, span: str | None = "hour") -> PipelineView:
        """span: a key of RANGES; None: without the history."""
        with self._lock:
            now = time.time()
            if self._view is None or now - self._view.at > PAGE_LOOK_SECONDS or self._view.at <= self._changed_at:
                self._view = self._look(now)
            if self._view.error or span is None:
                return self._view
            try:
                past, stands, changed = self._history(span, now), self._view.standing, self._changed()
                waiting, maintained = self._waiting(), self._last_maintain()
            except Exception as error:  # noqa: BLE001 - as in _look
                return self._unreadable(now, error)
            if past is not None and stands is not None:
                past = past.with_lag_now(stands.lag_seconds)
            return replace(self._view, timeline=past, changes=changed, prewrites=waiting, maintained=maintained)

    def schema_changes(self, name: str) -> list[SchemaChange]:
        """Versions of the tables at the source behind a logical table, the newest first; [] if it
        can't be read.

        Only a few of many shards: they change alike.
        """
        from tidegate.lake import control
        from tidegate.lake.schema_history.schema_changes import schema_changes
        from tidegate.mysql.start.recorded import newest_statuses
        from tidegate.table_names import Physical
        from tidegate.tables import SCHEMA_HISTORY

        with self._lock, suppress(TidegateError, OSError):
            lake = self._open()
            if (at := control.version(lake, SCHEMA_HISTORY)) != self._changes_at or len(self._changes) >= _TABLES_KEPT:
                self._changes, self._changes_at = {}, at
            if name not in self._changes:
                shards: list[Physical] = []
                for source in self.pipeline.owners:
                    for physical in itertools.starmap(partial(Physical, source), newest_statuses(lake, source)):
                        shards += [physical] * (self.pipeline.tables.logical(*physical.pair).name == name)
                self._changes[name] = schema_changes(lake, sorted(shards)[:_SHARDS_SHOWN])
            return self._changes[name]
        return []

    def _changed(self) -> tuple[tuple[str, SchemaChange], ...]:
        from tidegate.tables import SCHEMA_HISTORY

        return self._of_table(SCHEMA_HISTORY, partial(recent, self.pipeline), ())

    def _waiting(self) -> tuple[Prewrite, ...]:
        from tidegate.lake.bronze import prewrites
        from tidegate.tables.prewrites_table import PREWRITES

        return self._of_table(PREWRITES, prewrites.waiting, ())

    def _last_maintain(self) -> LastMaintain | None:
        from tidegate.lake.figures.maintained import last_maintain
        from tidegate.tables import MAINTENANCE

        return self._of_table(MAINTENANCE, last_maintain, None)

    def _of_table(self, table: Table, read: Callable[[LakeFiles], T], nothing: T) -> T:
        """The content of a control table, read again once it has a new version. nothing: of a missing table."""
        from tidegate.lake import control

        lake = self._open()
        known: tuple[int, T] = self._read.get(table.path, (-1, nothing))
        if (at := control.version(lake, table)) != known[0]:
            self._read[table.path] = known = at, read(lake)
        return known[1]

    def standing_of(self, name: str) -> Standing | None:
        """A logical table's; None for one without a row. Raises LakeUnavailable, LakeRefused."""
        from tidegate.lake.standing.held import state_of

        with self._lock:
            return state_of(self._open(), name)

    def actions_on(self, name: str) -> list[Recorded]:
        """The actions of people on a logical table, the newest first; [] if they can't be read."""
        from tidegate.lake.people.audit import actions

        with self._lock, suppress(TidegateError, OSError):
            return [known for known in actions(self._open()) if name in known.action.tables]
        return []

    def snapshots_of(self, name: str) -> list[TableProgress]:
        """The snapshots behind a logical table that aren't over, as of the last look."""
        logical = self.pipeline.tables.logical
        return [each for each in self.view(None).snapshots if logical(*each.name).name == name]

    def look_again(self) -> None:
        """Make the next view a fresh one, after a change. Never waits: the lake may hang a look."""
        self._changed_at = time.time()

    def _look(self, now: float) -> PipelineView:
        try:
            lake = self._open()
            if self._asking is None:
                self._asking = asking(self.pipeline, lake, self._source_connections)
            view = look(self.pipeline, lake, self._ask(self._asking), now, self._snapshots)
            from tidegate.capture import status_file

            return replace(view, captures=status_file.read_all(self.pipeline, state_folder()))
        except Exception as error:  # noqa: BLE001 - of whatever a store says; a view is where people and alerts look
            return self._unreadable(now, error)

    def _unreadable(self, now: float, error: Exception) -> PipelineView:
        self._lake = None
        return PipelineView(self.pipeline, now, " ".join(str(error).split())[:500], fault=type(error).__name__)

    def _open(self) -> LakeFiles:
        if self._lake is None:
            self._lake = open_lake(self.pipeline, self._lake_connections)
            self._lake.carry()
            from tidegate.lake.bronze.first_commits import FirstCommits
            from tidegate.snapshot.progress.shown import ShownSnapshots

            self._snapshots, self._firsts = ShownSnapshots(self._lake), FirstCommits(self._lake)
        return self._lake

    def _ask(self, ask: Ask) -> Ask:
        """The sources' answers; a slow source's last answer counts until it answers again."""
        from tidegate.capture.standing import SourceAnswer

        for name in self.pipeline.sources:
            if name not in self._asked:
                self._asked[name] = self._pool.submit(ask, name)
        until = time.monotonic() + PAGE_ASK_SECONDS
        for name, answer in list(self._asked.items()):
            with suppress(TimeoutError):  # it goes on, and the next look takes its answer
                self._answers[name] = answer.result(max(0.0, until - time.monotonic()))
                del self._asked[name]
        nothing = SourceAnswer(error="it hasn't answered yet")
        return lambda name: self._answers.get(name, nothing)

    def _history(self, span: str, now: float) -> Timeline | None:
        """A longer range is read less often: it changes less."""
        from tidegate.lake.figures.timeline import STEPS, timeline

        read_at, known = self._histories.get(span, (0.0, None))
        if known is None or now - read_at > max(PAGE_LOOK_SECONDS, RANGES[span] / STEPS / 4):
            lake = self._open()
            known = timeline(lake, now, RANGES[span], self.pipeline.sources, self._firsts)
            self._histories[span] = (now, known)
        return known


class PipelineReaders:
    """A PipelineReader per pipeline, made anew when its file says something else."""

    def __init__(self, lake_connections: Connections, source_connections: Connections) -> None:
        self._connections = (lake_connections, source_connections)
        self._lock = threading.Lock()
        self._readers: dict[str, PipelineReader] = {}

    def of(self, pipeline: Pipeline) -> PipelineReader:
        with self._lock:
            known = self._readers.get(pipeline.pipeline)
            if known is None or known.pipeline != pipeline:
                known = self._readers[pipeline.pipeline] = PipelineReader(pipeline, *self._connections)
            return known
