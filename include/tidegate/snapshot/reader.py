"""The reader of a source's snapshots: waves between two marks, until every table is read or somebody stops it.

In:  requests in control/snapshots, and apply's answers to earlier waves.
Out: bronze/chunks, marks at the source, events.

The order within a wave makes it exact: the low mark is committed; the tables' columns are asked
for; rows are read by several connections at once; the chunks are landed; the high mark is written;
the events are written last. A kill before the high mark leaves chunks of no wave. A kill after it
leaves a wave that apply takes, and that the reader reads again, which changes nothing.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from tidegate.compiled import load_all
from tidegate.errors import SourceRefused, TidegateError
from tidegate.failpoint import failpoint
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.limits import (
    SNAPSHOT_DIVIDED_ROWS_MIN,
    SNAPSHOT_LOCK_AGAIN_SECONDS,
    SNAPSHOT_LOOK_SECONDS,
    SNAPSHOT_TABLE_ATTEMPTS_MAX,
    SNAPSHOT_VIEW_ATTEMPTS_MAX,
    SNAPSHOT_WAVE_ATTEMPTS_MAX,
    SNAPSHOT_WAVE_TABLES_MAX,
)
from tidegate.mysql.connecting.connection import ConnectionInfo, connect
from tidegate.snapshot.beginning import ReadAs, beginnings, why_otherwise, why_unfit
from tidegate.snapshot.by_view import Beside
from tidegate.snapshot.chunks.chunk_table import ChunkWriter, claim_reader
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.load_guard import LoadGuard
from tidegate.snapshot.marks.marks import Marks
from tidegate.snapshot.marks.timestamp_marks import TimestampMarks
from tidegate.snapshot.marks.unlogged_marks import marks_for
from tidegate.snapshot.moment_reading import MomentWay
from tidegate.snapshot.moment_waves import MomentWaves, Tell
from tidegate.snapshot.progress.captured_reading import CapturedReading
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, SnapshotState, TableProgress
from tidegate.snapshot.progress.requests import Told
from tidegate.snapshot.reader_settings import ReaderSettings
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.result import kernel as result_kernel
from tidegate.snapshot.reading.table_reader import Pace, WaveOf
from tidegate.snapshot.view_reading import ExactView, TablesBusy, ViewRefused, Way, check_nobody_waits, without_views
from tidegate.snapshot.watermark import Manifest, Mark, MarkKind
from tidegate.snapshot.wave_reading import TableWork, WaveReading
from tidegate.tables import SNAPSHOTS

Name = tuple[str, str]
Stop = Callable[[], bool]
__all__ = ["ReaderSettings", "SnapshotReader"]

_ACTIVE: Final = (SnapshotState.REQUESTED, SnapshotState.RUNNING)


class SnapshotReader:
    """Reads the requested snapshots of one source. One at a time per pipeline and source."""

    def __init__(
        self,
        pipeline: str,
        source: str,
        info: ConnectionInfo,
        lake: LakeFiles,
        settings: ReaderSettings | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """report: takes a line about waiting tables."""
        self._pipeline, self._source, self._info, self._lake = pipeline, source, info, lake
        self._settings, self._report = settings or ReaderSettings(), report
        self._control, self._told = ControlTables(lake), Told(lake, pipeline)
        self._guard = LoadGuard(self._settings.load, source, report, self._tell_busy)
        self._paces: dict[Name, Pace] = {}
        self._troubles: dict[Name, int] = {}
        self._defined: dict[Name, str] = {}  # fingerprints of definitions that an event has told
        self._read_as: dict[Name, ReadAs] = {}  # by what was last seen of a table
        self._later: dict[Name, float] = {}  # of tables whose view was busy: not before this time.monotonic()
        self._tries: dict[Name, int] = {}  # how often each was busy
        self._at_once = SNAPSHOT_WAVE_TABLES_MAX  # so many of them are locked together
        self._moments = MomentWaves(info, lake, self._told, Tell(self._event, self._record, self._report))

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Read until no table is left, or stop() returns True. stop() is called between waves, and
        during the reading of a table without a key: such a table then begins anew.

        Raises SourceRefused, SourceUnavailable, LakeUnavailable, LakeRefused, Overtaken.
        """
        # Done before a mark is written: on a busy machine it takes seconds, during which the log would grow.
        load_all(result_kernel.__name__)
        writer = ChunkWriter(self._lake, self._source, claim_reader(self._control, self._source))
        server = WorkerConnection(self._info, changefeed=self._settings.changefeed)
        with server as asked, connect(self._info) as marking:
            names = (self._pipeline, self._source)
            marks = marks_for(asked, marking, self._lake, names, self._settings.marks, self._report)
            captured = CapturedReading(self._lake, self._source, (asked.server_id, asked.server_uuid), self._info.where)
            while not stop():
                active = [table for table in self._told.going(self._source) if table.state in _ACTIVE]
                if not active:
                    return
                if lost := captured.lost(active):
                    self._record([self._lost(table, token) for table, token in lost])
                    continue
                active = self._divided(self._not_refused_for_good(active), asked)
                self._end([table for table in active if table.is_read], asked, marks)
                todo = self._not_too_far(active)
                # Other tables don't wait for those that are busy.
                ready = [table for table in todo if self._later.get(table.name, 0) < time.monotonic()]
                if not ready or self._guard.is_busy(asked):
                    time.sleep(SNAPSHOT_LOOK_SECONDS)
                    continue
                of_snapshot = [table for table in ready if table.snapshot == ready[0].snapshot]
                # These come first: apply follows the tables below them once these are whole.
                if by_view := self._those(of_snapshot, ReadAs.KEYED_VIEW):
                    self._exact_wave(by_view[: self._at_once], asked, marks, writer, stop)
                if keyed := self._those(of_snapshot, ReadAs.CHUNKS):
                    self._wave(keyed[:SNAPSHOT_WAVE_TABLES_MAX], asked, marks, writer)
                if bare := self._those(of_snapshot, ReadAs.VIEW):
                    several = self._moment_wave if asked.is_tidb else self._exact_wave
                    several(bare[: self._at_once], asked, marks, writer, stop)

    # --- before a wave --------------------------------------------------------------------------------

    def _those(self, tables: Iterable[TableProgress], read_as: ReadAs) -> list[TableProgress]:
        return [table for table in tables if self._read_as.get(table.name) is read_as]

    def _not_too_far(self, active: Sequence[TableProgress]) -> list[TableProgress]:
        """The tables to read now; none while too many waves wait for apply's answers. Waves that wait for the end of a
        table's hold don't count.
        """

        def are_few(tables: Iterable[TableProgress]) -> bool:
            return len({token for table in tables for token in table.waiting}) < self._settings.waves_waiting

        goes_on = list(active)
        if not are_few(active):
            goes_on = [table for table in active if not (table.waiting and self._settings.is_held_back(table))]
        return [table for table in goes_on if table.left] if are_few(goes_on) else []

    def _not_refused_for_good(self, active: Sequence[TableProgress]) -> list[TableProgress]:
        """The tables without those that apply never takes: a table whose waves were all refused,
        from the first one on, is given up.
        """
        bad = [table for table in active if table.low_ts is None and len(table.refused) >= SNAPSHOT_WAVE_ATTEMPTS_MAX]
        self._record([self._event(table, EventKind.FAILED, reason=table.refused[-1]) for table in bad])
        gone = {(table.snapshot, table.name) for table in bad}
        return [table for table in active if (table.snapshot, table.name) not in gone] if bad else list(active)

    def _tell_busy(self, why: str) -> None:
        if going := self._told.going(self._source):
            self._record([replace(self._event(going[0], EventKind.VIEW, reason=why), database="", table="")])

    def _lost(self, of: TableProgress, token: str) -> SnapshotEvent:
        reason = "its marks were written at another server, which died before capture had them"
        return replace(self._event(of, EventKind.REFUSED, reason=reason), token=token)

    def _divided(self, active: Sequence[TableProgress], asked: WorkerConnection) -> list[TableProgress]:
        """New tables are divided into ranges; unreadable ones are given up with the reason."""
        fresh = [table for table in active if table.state is SnapshotState.REQUESTED or table.name not in self._read_as]
        if not fresh:
            return list(active)
        names = {table.name for table in fresh}
        divided = {table.name for table in fresh if table.state is SnapshotState.REQUESTED}
        rows_min = min(self._settings.chunk.rows, SNAPSHOT_DIVIDED_ROWS_MIN)
        by_name = beginnings(names, divided, asked, self._source, self._settings.parallel, rows_min)
        events, left = [], {table.name: table for table in active}
        for progress in fresh:
            begun = by_name[progress.name]
            if begun.reason:
                events.append(self._event(progress, EventKind.FAILED, reason=begun.reason))
                del left[progress.name]
                continue
            # What was begun in chunks goes on so: apply holds what it can't follow then.
            in_chunks = begun.read_as is ReadAs.KEYED_VIEW and progress.left != (WHOLE,)
            self._read_as[progress.name] = ReadAs.CHUNKS if in_chunks else begun.read_as
            if progress.state is not SnapshotState.REQUESTED:
                continue
            event = self._event(progress, EventKind.RANGES, spans=begun.spans)
            events.append(replace(event, rows=begun.rows, options={"read_by": begun.read_by, "order": begun.order}))
            if progress.left == (WHOLE,):
                running = replace(progress, left=begun.spans, read_by=begun.read_by, order=begun.order)
                left[progress.name] = replace(running, state=SnapshotState.RUNNING)
        self._record(events)
        return list(left.values())

    # --- a wave ---------------------------------------------------------------------------------------

    def _begun(self, snapshot: str, asked: WorkerConnection) -> WaveOf:
        number = self._told.last_wave(snapshot) + 1
        token, server = uuid.uuid4().hex, (asked.server_id, asked.server_uuid)
        return WaveOf(self._source, snapshot, number, token, *server, is_local=self._lake.is_local)

    def _wave(self, todo: Sequence[TableProgress], asked: WorkerConnection, marks: Marks, writer: ChunkWriter) -> None:
        started, wave = time.monotonic(), self._begun(todo[0].snapshot, asked)
        marks.write(wave.mark(MarkKind.LOW))
        wave = replace(wave, at_ts=marks.at_ts)
        work = self._work(todo, asked, marks, keyed=True)
        settings = self._settings
        reading = WaveReading(self._info, wave, work, settings.chunk, writer.append)
        reading.run(settings.parallel, settings.wave_bytes, started + settings.wave_seconds)
        if any(read.chunks for read in work):
            failpoint("snapshot_after_landing")
        self._ended(todo, wave, work, marks, started)

    def _exact_wave(
        self, todo: Sequence[TableProgress], asked: WorkerConnection, marks: Marks, writer: ChunkWriter, stop: Stop
    ) -> None:
        """Tables without a key, or such as are read from one view all the same, on a server with one moment per view:
        busy or stopped ones wait for another wave.
        """
        started, wave = time.monotonic(), self._begun(todo[0].snapshot, asked)
        by_view = self._read_as.get(todo[0].name) is ReadAs.KEYED_VIEW  # so are all of them, or none
        names, enough = [table.name for table in todo], self._settings.enough(started)

        def look(name: Name) -> None:
            check_nobody_waits(asked, name)
            states = {table.name: table.state for table in self._told.going(self._source)}
            if stop() or states.get(name) not in _ACTIVE:
                raise _Stopped

        try:
            beside = Beside(names, asked, self._source) if by_view else None
            locked = [*names, *(beside.names if beside else ())]
            with ExactView(asked, marks, wave.mark(MarkKind.LOW), locked) as view:
                if beside:
                    beside.check_same()
                work = self._work(todo, asked, marks, keyed=False)
                view.read(work, wave, Way(self._settings.chunk, writer.append, enough, look))
        except (TablesBusy, ViewRefused) as error:
            self._no_view(todo, error)
        except SourceRefused as error:
            if not by_view:
                raise
            self._in_chunks(names, error)
        except _Stopped:
            return
        else:
            self._at_once = min(2 * self._at_once, SNAPSHOT_WAVE_TABLES_MAX)
            self._ended(todo, wave, work, marks, started, view.at)

    def _in_chunks(self, names: Sequence[Name], why: Exception) -> None:
        """Read tables in chunks that no view can show. If apply can't follow them then, it holds them, or those below
        them.
        """
        self._read_as |= dict.fromkeys(names, ReadAs.CHUNKS)
        shown = ", ".join(".".join(name) for name in names)
        self._report(f"{self._source}: {shown}: read in chunks, while foreign keys act on them unseen: {why}")

    def _moment_wave(
        self, todo: Sequence[TableProgress], asked: WorkerConnection, marks: Marks, writer: ChunkWriter, stop: Stop
    ) -> None:
        """Tables without a key, of a TiDB; first those begun by an earlier run."""
        assert isinstance(marks, TimestampMarks), "a TiDB's"
        started, work = time.monotonic(), list[TableWork]()
        moment = self._moments.begin(todo, self._begun(todo[0].snapshot, asked), marks, writer)

        def stopped() -> bool:
            states = {table.name: table.state for table in self._told.going(self._source)}
            return stop() or any(states.get(read.name) not in _ACTIVE for read in work)

        try:
            work += self._work(moment.tables, asked, marks, keyed=False)
            way = MomentWay(self._settings.chunk, self._settings.enough(started), stopped)
            is_read = self._moments.read(moment, work, writer, way, self._settings.parallel)
        except TidegateError as error:
            if not self._moments.is_past(moment, error):
                raise
            return
        if is_read:
            self._ended(moment.tables, moment.wave, self._moments.counted(moment, work), marks, started)

    def _no_view(self, todo: Sequence[TableProgress], error: TablesBusy | ViewRefused) -> None:
        """One of the tables is busy or refused. It is found by asking for fewer tables at a time. A refused table is
        given up; the others don't wait for it.
        """
        self._at_once = max(1, len(todo) // 2)
        if len(todo) > 1:
            return
        name, is_refused = todo[0].name, isinstance(error, ViewRefused)
        times = self._tries[name] = self._tries.get(name, 0) + 1
        if self._read_as.get(name) is ReadAs.KEYED_VIEW and (is_refused or times >= SNAPSHOT_VIEW_ATTEMPTS_MAX):
            self._in_chunks([name], error)
        elif is_refused:
            self._record([self._event(todo[0], EventKind.FAILED, reason=str(error))])
        else:
            self._later[name] = time.monotonic() + SNAPSHOT_LOCK_AGAIN_SECONDS
            wait = f"it is tried again in {SNAPSHOT_LOCK_AGAIN_SECONDS:.0f} s"
            self._report(f"{self._source}: {'.'.join(name)} can't be read now: {error}; {wait}")

    def _work(
        self, todo: Sequence[TableProgress], asked: WorkerConnection, marks: Marks, *, keyed: bool
    ) -> list[TableWork]:
        """The readable tables, as they are after the low mark; the others are given up, or, when their key came or
        went, left to the next wave.
        """
        asked.see(marks.at_ts)
        versions = asked.versions(self._source, (table.name for table in todo))
        # an ALTER may have changed it
        engines = {} if keyed or asked.is_tidb else without_views(asked.ask, (table.name for table in todo))
        events, work = [], []
        for progress in todo:
            version = versions.get(progress.name)
            unfit = why_unfit(version, engines.get(progress.name), changefeed=asked.changefeed)
            if reason := unfit or why_otherwise(progress, version):
                events.append(self._event(progress, EventKind.FAILED, reason=reason))
                continue
            assert version is not None, "unfit otherwise"
            if (bool(version.key) and self._read_as.get(progress.name) is not ReadAs.KEYED_VIEW) != keyed:
                del self._read_as[progress.name]
                continue
            pace = self._paces.setdefault(progress.name, Pace())
            settings = self._settings
            work.append(TableWork(version, list(progress.left), pace, settings.zero_dates, settings.left_out(version)))
        self._record(events)
        return work

    def _ended(
        self,
        todo: Sequence[TableProgress],
        wave: WaveOf,
        work: Sequence[TableWork],
        marks: Marks,
        started: float,
        at: str = "",
    ) -> None:
        """The high mark of the landed chunks, and the events. at: the mark's."""
        done = [read for read in work if read.reads and not read.trouble]
        if done:
            manifests = tuple(Manifest.of(read.name, read.chunks) for read in done)
            exact = self._read_as.get(done[0].name) is ReadAs.KEYED_VIEW  # so are all of them, or none
            marks.write(wave.mark(MarkKind.HIGH, manifests, at, exact=exact))
        seconds, by_name = time.monotonic() - started, {read.name: read for read in todo}
        events = [self._read(by_name[read.name], wave, read, seconds) for read in done]
        events += self._given_up(by_name, work)
        self._record(events)
        self._settings.pause(sum(chunk.payload_bytes for read in done for chunk in read.chunks), seconds)

    def _read(self, of: TableProgress, wave: WaveOf, work: TableWork, seconds: float) -> SnapshotEvent:
        definition: dict[str, Any] = {}
        # Until apply has taken a wave it may be any of them with which the table begins.
        if of.low_ts is None or self._defined.get(work.name) != work.version.fingerprint:
            self._defined[work.name] = work.version.fingerprint
            definition = work.version.to_row()
        return replace(
            self._event(of, EventKind.WAVE, spans=work.read),
            wave=wave.wave,
            token=wave.token,
            chunks=len(work.chunks),
            rows=sum(chunk.rows for chunk in work.chunks),
            bytes=sum(chunk.payload_bytes for chunk in work.chunks),
            seconds=seconds,
            definition=definition,
            options={"server": (wave.server_id, wave.server_uuid)},
        )

    def _given_up(self, by_name: dict[Name, TableProgress], work: Sequence[TableWork]) -> list[SnapshotEvent]:
        """Tables whose statements fail for good, or too often."""
        events = []
        for read in work:
            if read.trouble is None:
                self._troubles.pop(read.name, None)
                continue
            self._troubles[read.name] = self._troubles.get(read.name, 0) + 1
            if self._troubles[read.name] >= SNAPSHOT_TABLE_ATTEMPTS_MAX:
                events.append(self._event(by_name[read.name], EventKind.FAILED, reason=str(read.trouble)))
        return events

    # --- after the last one --------------------------------------------------------------------------

    def _end(self, whole: Sequence[TableProgress], asked: WorkerConnection, marks: Marks) -> None:
        for snapshot in dict.fromkeys(table.snapshot for table in whole):
            of_snapshot = [table for table in whole if table.snapshot == snapshot]
            tables = tuple(Manifest(*table.name) for table in of_snapshot)
            marks.write(Mark(snapshot, 0, MarkKind.END, uuid.uuid4().hex, tables))
            at = {"server": (asked.server_id, asked.server_uuid)}
            self._record([replace(self._event(table, EventKind.ENDED), options=at) for table in of_snapshot])

    def _event(self, of: TableProgress, kind: EventKind, *, reason: str = "", spans: Any = ()) -> SnapshotEvent:
        place = (of.snapshot, self._pipeline, self._source)
        return SnapshotEvent(*place, kind, self._told.next_at(of.snapshot), *of.name, reason=reason, spans=tuple(spans))

    def _record(self, events: Sequence[SnapshotEvent]) -> None:
        if events:
            self._control.append(SNAPSHOTS, [event.to_row() for event in events])
            self._told.said(events)
            self._control.tidy()


class _Stopped(Exception):  # noqa: N818 - nothing went wrong
    """stop() has asked for an end of the reading."""
