"""Snapshots as a person or a DAG wants them: tables are asked for, and read until they are marked.

In:  a pipeline, its lake, how to reach its sources; names of logical tables, or none for all that
     wait.
Out: requests in control/snapshots; SnapshotReader's work; lines about the progress; TableProgress
     at the end.

The lake alone has the position, so after a stop, a kill or another try the rest is read. There is
one reader per source: it holds a lease, and the epoch of claim_reader refuses the chunks of a
former holder.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from tidegate.commit_ts import physical_ms
from tidegate.config import Pipeline, Snapshot, SnapshotMode, named_tables
from tidegate.errors import TidegateError, UsageError
from tidegate.lake import control
from tidegate.lake.figures.status import cut_ts, source_status
from tidegate.lake.files import LakeFiles
from tidegate.lake.jobs.leases import take_lease
from tidegate.lake.standing.followed import check_owner
from tidegate.lake.standing.held import held_tables
from tidegate.limits import (
    REPORT_SECONDS,
    SNAPSHOT_CHUNK_BYTES_MIN,
    SNAPSHOT_STATEMENT_SECONDS,
    SNAPSHOT_WAITING_PER_CPU_SECONDS,
    SNAPSHOT_WAITING_SECONDS,
    SNAPSHOT_WAVE_BYTES_DEFAULT,
    SNAPSHOT_WAVE_SECONDS_DEFAULT,
)
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.tables_there import There, tables_there
from tidegate.schema.model.types import ZeroDates
from tidegate.snapshot.load_guard import LoadBounds
from tidegate.snapshot.progress.automatic import due, waiting
from tidegate.snapshot.progress.captured_reading import lost_ends
from tidegate.snapshot.progress.events import BY_ITSELF, EventKind, SnapshotState, TableProgress
from tidegate.snapshot.progress.held_back import Place, held_back, in_vain, is_held_back
from tidegate.snapshot.progress.requests import Told, request, tell_tables
from tidegate.snapshot.progress.unheard import Unheard
from tidegate.snapshot.reader import ReaderSettings, SnapshotReader
from tidegate.snapshot.reading.left_out import unasked
from tidegate.snapshot.reading.table_reader import ChunkBounds
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.tables import SCHEMA_HISTORY, TABLE_STATES
from tidegate.text_layout import age_text, counted

_READ: Final = (SnapshotState.ENDED, SnapshotState.DONE)
_OPEN: Final = (SnapshotState.REQUESTED, SnapshotState.RUNNING)
_NAMED_MAX: Final = 5
_SHARE_MAX: Final = 99  # of an estimate; the last percent is the end mark's


def settings_of(section: Snapshot, zero_dates: ZeroDates = ZeroDates.NULL) -> ReaderSettings:
    """The section of a pipeline file as the reader takes it; zero_dates: apply's."""
    wave, chunk, rate = SNAPSHOT_WAVE_BYTES_DEFAULT, section.chunk_bytes, section.bytes_per_second
    if rate:  # the reader sleeps after a fast wave, and can't be stopped then: so waves are small
        wave = min(wave, max(SNAPSHOT_CHUNK_BYTES_MIN, int(rate * SNAPSHOT_WAVE_SECONDS_DEFAULT)))
        chunk = min(chunk, max(SNAPSHOT_CHUNK_BYTES_MIN, wave // section.parallel))
    return ReaderSettings(
        parallel=section.parallel,
        chunk=ChunkBounds(section.chunk_rows, chunk, SNAPSHOT_STATEMENT_SECONDS),
        wave_bytes=wave,
        load=LoadBounds(section.threads_running_max, section.history_list_max, section.replica_lag_seconds_max),
        bytes_per_second=rate,
        zero_dates=zero_dates,
        marks=section.marks,
    )


def logical_name(pipeline: Pipeline, table: TableProgress) -> str:
    """The table as in silver."""
    return pipeline.tables.logical(*table.name).name


def is_read(table: TableProgress) -> bool:
    """Whether nothing of it is left to the reader."""
    return table.state in _READ


def newest(tables: Collection[TableProgress]) -> list[TableProgress]:
    """The last snapshot of each physical table. tables: in order of their requests."""
    return sorted(
        {(table.source, table.name): table for table in tables}.values(), key=lambda table: (table.source, table.name)
    )


@dataclass(slots=True)
class SnapshotWork:
    """Work on the snapshots of one pipeline. info_of: how to reach a source; report: takes a line.
    replica_of: how to reach the replica whose lag counts, if a source names one.

    stop: set by whoever wants it to end after the wave that is being read.
    """

    pipeline: Pipeline
    lake: LakeFiles
    info_of: Callable[[str], ConnectionInfo]
    report: Callable[[str], None]
    stop: threading.Event = field(default_factory=threading.Event)
    replica_of: Callable[[str], ConnectionInfo | None] = field(default=lambda _: None)
    told: Told = field(init=False)
    _unheard: Unheard = field(init=False)
    _asking: threading.Lock = field(default_factory=threading.Lock)
    _waits: dict[str, tuple[Physical, ...]] = field(default_factory=dict)
    _waits_at: list[int] = field(default_factory=list)  # versions of the tables that say so
    _held: Mapping[str, Standing] = field(default_factory=dict)
    _held_at: int | None = None  # version of the table that says so
    _asked: set[str] = field(default_factory=set)  # ids of what was asked for by itself

    def __post_init__(self) -> None:
        self.told = Told(self.lake, self.pipeline.pipeline)
        self._unheard = Unheard(self.pipeline, self.lake, self.info_of)

    def request(self, names: Collection[str] = (), *, snapshot: str = "") -> list[Physical]:
        """Ask for the tables that `wanted` gives for these names; they are the new events. Raises as `wanted`."""
        new = self.wanted(names, snapshot=snapshot)
        if new:
            request(self.lake, self.pipeline.pipeline, new, snapshot=snapshot)
        return new

    def wanted(self, names: Collection[str] = (), *, snapshot: str = "") -> list[Physical]:
        """The tables at the source behind these logical tables, by name or pattern; without any, behind all that wait
        for a snapshot.

        A table whose snapshot isn't over isn't among them, nor one that `snapshot`, an id, has had already.
        Raises UsageError for a table that no source has, or that no snapshot helps; ConfigError, SourceRefused,
        SourceUnavailable, LakeUnavailable.
        """
        patterns = self.pipeline.tables
        shards: set[Physical] = set()
        wanted = set(names)
        if not names:
            wanted = {name for name, state in held_tables(self.lake).items() if state.lacks_rows}
            waits = waiting(self.pipeline, self.lake)
            shards = {shard for name, of in waits.items() if name not in wanted for shard in of}
            shards = {shard for shard in shards if patterns.logical(*shard.pair).routed}
        if not wanted and not shards:
            return []
        kept = {
            Physical(source, *name): patterns.logical(*name).name
            for source in self.pipeline.owners
            if not self.pipeline.lacks_snapshots(source)
            for name in self._there(source)
            if patterns.keeps(*name)
        }
        known_names = set(kept.values())
        if names:
            wanted = set(
                named_tables(
                    names,
                    known_names,
                    where=self.pipeline.pipeline,
                    lacks="no source has a table {} that the pipeline keeps",
                    remedy="give database.table as in silver; our account must have SELECT on it; tidegate status names"
                    " those that wait",
                )
            )
        vain = in_vain(self.pipeline, self.lake, [shard.pair for shard, name in kept.items() if name in wanted])
        if vain and wanted == vain.keys():
            raise UsageError("; ".join(vain.values()), where=self.pipeline.pipeline)
        for line in vain.values():
            self.report(line)
        wanted -= vain.keys()
        asked_for = [physical for physical, name in kept.items() if name in wanted or physical in shards]
        for name in sorted(wanted - known_names):
            self.report(f"{name} waits, but no snapshot can fill it: no source has it as a table of its own")
        known = self.told.tables()
        had = {
            Physical(past.source, *past.name) for past in known if not past.state.is_over or past.snapshot == snapshot
        }
        return [physical for physical in asked_for if physical not in had]

    def ask(self) -> list[Physical]:
        """Ask for the tables in wait without a need of a request; none with snapshot.mode manual. The new events.

        Raises LakeUnavailable; LakeRefused in another pipeline's lake.
        """
        if self.pipeline.snapshot.mode is SnapshotMode.MANUAL:
            return []
        with self._asking:
            versions = [control.version(self.lake, table) for table in (TABLE_STATES, SCHEMA_HISTORY)]
            if versions != self._waits_at:
                self._waits, self._waits_at = waiting(self.pipeline, self.lake), versions
            waits = dict(self._waits)
            for physical in self._unheard.tables():
                name = self.pipeline.tables.logical(*physical.pair).name
                waits[name] = tuple(sorted({*waits.get(name, ()), physical}))
            new = due(self.pipeline, waits, self.told.tables())
            if new:
                check_owner(self.lake, self.pipeline.pipeline)
                self._asked.add(request(self.lake, self.pipeline.pipeline, new, {BY_ITSELF: True}))
                names = [f"{database}.{table}" for _, database, table in new]
                more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
                self.report(f"asked for by itself: {', '.join(names[:_NAMED_MAX])}{more}")
        return new

    def _is_held_back(self, table: TableProgress) -> bool:
        """Whether its waves wait for the end of a hold. Raises LakeUnavailable."""
        with self._asking:
            version = control.version(self.lake, TABLE_STATES)
            if version != self._held_at:
                self._held, self._held_at = held_tables(self.lake), version
            return is_held_back(table, self._held.get(logical_name(self.pipeline, table)))

    @property
    def unasked(self) -> list[TidegateError]:
        """Why sources couldn't be asked which quiet tables they have."""
        return list(self._unheard.unasked.values())

    def open(self) -> list[TableProgress]:
        """Tables that a reader has to go on with; those whose end mark was lost are among them again.

        Raises LakeUnavailable.
        """
        if lost := lost_ends(self.lake, self.told.going()):
            reason = "its end mark was written at another server than capture reads now"
            tell_tables(self.lake, self.pipeline.pipeline, lost, EventKind.RESUMED, reason)
        going = self.told.going()
        return [table for table in going if table.state in _OPEN and table.source in self.pipeline.sources]

    def read(self, *, snapshot: str = "") -> list[TableProgress]:
        """Read what is open, all sources at the same time, until it is read and marked or `stop` is set; how far it is.

        With snapshot.mode auto so is what comes to wait meanwhile.

        snapshot: the id of a request whose tables are told of even if they are over.
        Raises ConfigError, and what SnapshotReader.run raises; LeaseHeld where somebody else reads the source.
        """
        active: set[tuple[str, str, tuple[str, str]]] = set()
        failed: list[BaseException] = []
        running: dict[str, Future[None]] = {}  # by source; those that failed stay
        with ThreadPoolExecutor(len(self.pipeline.sources), "snapshots") as pool:
            while True:
                active |= (now := {(table.snapshot, table.source, table.name) for table in self.open()})
                for source in sorted({source for _, source, _ in now} - running.keys()):
                    if not self.stop.is_set():  # else the tables that are left are another run's
                        running[source] = pool.submit(self._read, source)
                at_work = [reading for reading in running.values() if not reading.done()]
                if not at_work:
                    failed = [error for reading in running.values() if (error := reading.exception()) is not None]
                    running.clear()
                    if failed or self.stop.is_set() or not self.ask():
                        break
                wait(at_work, SNAPSHOT_WAITING_SECONDS, FIRST_COMPLETED)
                for source in [
                    name for name, reading in running.items() if reading.done() and reading.exception() is None
                ]:
                    del running[source]  # it may come to have tables again, while others are read
        if failed:
            raise failed[0]
        after = self.told.tables()
        snapshots = self._asked | {snapshot}
        return [
            table
            for table in after
            if (table.snapshot, table.source, table.name) in active or table.snapshot in snapshots
        ]

    def _read(self, source: str) -> None:
        try:
            info = self.info_of(source)
            with take_lease(self.lake, source, "snapshot", report=self.report, stop=self.stop) as lease:
                rows = {name: at_source.rows for name, at_source in self._there(source).items()}
                watch, looks = _Watch(self, source, rows), Looks(time.monotonic())

                def over() -> bool:
                    lease.check()
                    watch.look()
                    if looks.are_due(time.monotonic()):
                        before = time.thread_time()
                        self.ask()
                        looks.took(time.thread_time() - before, time.monotonic())
                    return self.stop.is_set()

                settings = settings_of(self.pipeline.snapshot, ZeroDates(self.pipeline.apply.zero_dates))
                load = settings.load
                if load.replica_lag_seconds:  # else nobody asks it, nor needs its connection
                    load = replace(load, replica=self.replica_of(source))
                changefeed = self.pipeline.sources[source].traits.changefeed
                settings = replace(settings, is_held_back=self._is_held_back, load=load, changefeed=changefeed)
                settings = replace(settings, left_out=partial(unasked, self.pipeline))
                reader = SnapshotReader(self.pipeline.pipeline, source, info, self.lake, settings, self.report)
                reader.run(over)
                watch.look(last=True)
        except TidegateError as error:
            if len(self.pipeline.sources) > 1:  # it is raised when the other sources' readers have ended
                self.report(f"{source}: {error}")
            raise

    def _there(self, source: str) -> dict[tuple[str, str], There]:
        """The tables by database and table, as silver names them."""
        in_silver = self.pipeline.sources[source].traits.in_silver
        known = tables_there(self.info_of(source), lambda *name: self.pipeline.tables.keeps(*in_silver(*name)))
        return {in_silver(*name): at_source for name, at_source in known.items()}


@dataclass(slots=True)
class Looks:
    """When a reader looks again for tables that have come to wait. A look reads all tables, and snapshots change them
    all the time. With many tables looks are rare, for a small share of the reader's time.

    at: of the last one, by time.monotonic().
    """

    at: float
    pause: float = SNAPSHOT_WAITING_SECONDS

    def are_due(self, now: float) -> bool:
        """now: time.monotonic()."""
        return now - self.at > self.pause

    def took(self, seconds: float, now: float) -> None:
        """seconds: CPU of a look that ended now."""
        self.at, self.pause = now, max(SNAPSHOT_WAITING_SECONDS, seconds * SNAPSHOT_WAITING_PER_CPU_SECONDS)


class _Watch:
    """Says how far the snapshots of a source are, now and then."""

    def __init__(self, work: SnapshotWork, source: str, rows: Mapping[tuple[str, str], int | None]) -> None:
        self._work, self._source, self._rows = work, source, rows
        self._mine: set[tuple[str, tuple[str, str]]] = set()
        self._said, self._before = time.monotonic(), -1
        self._take_in()

    def _take_in(self) -> None:
        """The tables that were read meanwhile, at anybody's request."""
        going = self._work.told.going(self._source)
        self._mine |= {(table.snapshot, table.name) for table in going if table.state in _OPEN}

    def look(self, *, last: bool = False) -> None:
        """A line, when it is time for one or this is the last."""
        now = time.monotonic()
        if not last and now - self._said < REPORT_SECONDS:
            return
        self._take_in()
        tables = [table for table in self._work.told.tables(self._source) if (table.snapshot, table.name) in self._mine]
        rows = sum(table.rows for table in tables)
        seconds, before = now - self._said, self._before
        self._said, self._before = now, rows
        rate = (rows - before) / seconds if before >= 0 and seconds > 0 else None
        held = held_back(self._work.pipeline, self._work.lake, tables)
        others = any(table.waiting and (table.source, table.name) not in held for table in tables)
        waits = where_others_are(self._work.lake, self._source) if others else ""
        self._work.report(progress_line(self._source, tables, self._rows, None if last else rate, waits, held))
        for (_, name), why in held.items():
            self._work.report(
                f"{self._source}: {'.'.join(name)} is held, and its waves wait for the end of that: {why}"
            )


def where_others_are(lake: LakeFiles, source: str) -> str:
    """The positions of capture and apply, so that a person sees which one the reader waits for."""
    captured, cut = source_status(lake, source), cut_ts(lake)

    def ago(commit_ts: int) -> str:
        return f"{age_text(max(0.0, time.time() - physical_ms(commit_ts) / 1000))} ago"

    capture = f"at {ago(captured.resolved_ts)}" if captured and captured.resolved_ts else "not begun"
    return f"capture is {capture}, apply {f'at {ago(cut)}' if cut else 'not begun'}"


def progress_line(
    source: str,
    tables: Sequence[TableProgress],
    estimates: Mapping[tuple[str, str], int | None],
    rate: float | None,
    waits: str = "",
    held: Collection[Place] = (),
) -> str:
    """estimates: of each table's rows. rate: rows a second; None when it isn't known. waits: where_others_are. held:
    tables of held_back(): apply takes their waves later.
    """
    rows, read = sum(table.rows for table in tables), sum(is_read(table) for table in tables)
    parts = [f"{read} of {counted(len(tables), 'table is', 'tables are')} read and marked", f"{rows:,} rows"]
    parts += [f"{rate:,.0f} rows/s"] if rate is not None else []
    guesses = [estimates.get(table.name) for table in tables]
    total = sum(guess or 0 for guess in guesses)
    if total and None not in guesses and read < len(tables):
        parts.append(f"about {min(_SHARE_MAX, 100 * rows // total)} %")
    waiting = {token for table in tables if (table.source, table.name) not in held for token in table.waiting}
    others = f" ({waits})" if waits else ""
    waves = counted(len(waiting), "wave waits", "waves wait")
    parts += [f"{waves} for capture and apply{others}"] if waiting else []
    return f"{source}: {', '.join(parts)}"
