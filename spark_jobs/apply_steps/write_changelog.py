"""Append the window's changes to the changelogs, for tables with one (`tables.changelog`).

In:  window.tables after decode_changes: tables with undecoded rows have left it; the window's
     segments.
Out: one commit per changelog, before silver's own (include/tidegate/changelog).

It reads the segments a second time, for the images as they were logged; nobody else pays for that.
Changes by foreign keys below the log come from follow_cascades. If changes are missing in a
changelog, a row `gap` says so. A gap never holds the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow.compute as pc

from spark_jobs.window.application import Application
from spark_jobs.window.made import MadeByKeys
from spark_jobs.window.plan import TablePlan
from spark_jobs.window.standing.standings import hold_tied
from spark_jobs.window.window import PrewrittenSegment, TableWindow, Window
from tidegate import tables
from tidegate.binlog.rows.table_rows import HeldError
from tidegate.changelog.changelog_table import BEGIN, GAP, SNAPSHOT, Appending, app_id, as_rows, changelog, finer, told
from tidegate.changelog.joining import joined
from tidegate.changelog.rows import Imaged, Name, as_changes, segment_images
from tidegate.changelog.share import Reached, log_share
from tidegate.columnar.decoded import RowsError
from tidegate.errors import StreamCorrupt, Terminal, Transient, unexpected
from tidegate.failpoint import failpoint
from tidegate.lake import control
from tidegate.lake.bronze.index import segments_or_damage
from tidegate.lake.standing.held import from_row
from tidegate.limits import CHANGELOG_FILE_BYTES, CHANGELOG_PENDING_BYTES
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import ZeroDates
from tidegate.schema.replay.history import SNAPSHOT as SNAPSHOT_KIND
from tidegate.segments.result import CommitSpan, Known
from tidegate.segments.segment import Segment
from tidegate.segments.window import SegmentRef
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.tables import State

_T = TypeVar("_T")
_Spans = Mapping[Name, CommitSpan]
_Versions = Mapping[Name, Sequence[TableVersion]]
_Changes = list[Imaged]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A segment. owner: the source of its tables. answers: of the prewrites whose rows are wanted;
    None: rows never prepared. names: as PrewrittenSegment's.
    """

    ref: SegmentRef
    owner: str
    answers: Mapping[int, int] | None = None
    names: Collection[Name] = ()

    def tables(self, app: Application) -> set[Name]:
        """The tables with possible rows in it."""
        return {*app.names.kept(self.owner, self.ref.tables), *self.names}


@dataclass(slots=True)
class _Log:
    """A changelog in this window: (after_ts, the window's cut_ts] is to be appended. refilled: shards
    whose rows a snapshot replaces, and whose changes from before it are the log's all the same.
    """

    entry: TableWindow
    appending: Appending
    after_ts: int
    words: list[dict[str, object]]
    is_ahead: bool = False  # of silver: a window that didn't reach silver has appended its changes
    lost: str = ""  # why changes of the window are missing
    refilled: set[Name] = field(default_factory=set)


def write_changelog(
    app: Application,
    window: Window,
    committed: Sequence[PrewrittenSegment],
    plans: Mapping[str, TablePlan],
    by_keys: MadeByKeys,
) -> None:
    """Append to each changelog; nothing is looked at when no table of the window asks for one."""
    keeps = app.pipeline.tables.keeps_changelog
    asked = [entry for entry in window.tables.values() if keeps(entry.database, entry.table)]
    logs = [
        log for entry in asked if (log := _own(app, window, entry, partial(_begun, app, window, entry))) is not None
    ]
    if not logs:
        return
    of = {physical: log for log in logs for physical in log.entry.physical if log.after_ts < window.cut_ts}
    for source in sorted({physical.source for physical in of}):
        own_logs = {physical.pair: log for physical, log in of.items() if physical.source == source}
        whole = [_Asked(ref, source) for ref in window.refs if ref.whole and ref.source == source]
        later = [segment for segment in committed if segment.source == source]
        answered = [_Asked(segment.ref, source, segment.answers, segment.names) for segment in later]
        for given in (whole, answered):
            for alike in joined(_read(app, window, own_logs, given)):
                for parts in alike:
                    _add(own_logs[parts[0].name], parts, by_keys)
                _write_large([log.appending for log in logs])
    for log in (own for own in logs if own.entry.name in window.tables):  # else held with one before it
        for rows in by_keys.told.get(log.entry.name, ()):
            log.appending.add(rows.filter(pc.greater(rows["commit_ts"], log.after_ts)))
        log.lost = log.lost or by_keys.lacking.get(log.entry.name, "")
        _own(app, window, log.entry, partial(_finish, app, window, plans[log.entry.name], log))
    failpoint("apply_after_changelog")


def _add(log: _Log, parts: list[Imaged], by_keys: MadeByKeys) -> None:
    """Changes from images. If they can't be written, the changelog says that they are missing."""
    try:
        rows = as_changes(parts)
    except (OSError, MemoryError, Transient):
        raise
    except Exception as error:  # noqa: BLE001 - told in the changelog, by its class
        _lose([log], error)
        return
    log.appending.add(finer(rows) if log.entry.name in by_keys.told else rows)


def _own(app: Application, window: Window, entry: TableWindow, step: Callable[[], _T]) -> _T | None:
    """The result of a step. None if the table or its changelog can't be read or written: then the
    table is held.
    """
    try:
        return step()
    except Terminal as error:
        hold_tied(app, window, entry.name, error)
        return None


def _begun(app: Application, window: Window, entry: TableWindow) -> _Log:
    log = _begun_whole(app, window, entry)
    if log.appending.was_restored:
        place = Physical(min(entry.physical).source, entry.database, entry.table)
        note = f"changes up to {log.after_ts} may be missing: somebody took this changelog back (RESTORE)"
        log.words.append(told(GAP, place, log.after_ts + 1, note=note))
    for physical, begun_ts, lacked in _begin_anew(app, entry):
        if not lacked:
            log.refilled.add(physical.pair)
        elif log.appending.from_ts is not None:
            note = f"changes of {'.'.join(physical.pair)} up to {begun_ts} may be missing: this shard lacked rows"
            log.words.append(told(GAP, physical, max(begun_ts, log.after_ts + 1), note=note))
    return log


def _begin_anew(app: Application, entry: TableWindow) -> Iterator[tuple[Physical, int, bool]]:
    """The shards that begin anew in this window. For each: above which commit_ts, and whether it lacked rows until
    then.
    """
    for physical in sorted(entry.physical) if entry.routed else ():
        history, begun_ts = app.histories[physical.source], entry.begins(physical)
        before = history.version_at(*physical.pair, begun_ts)
        version = history.version_at(*physical.pair, begun_ts + 1)
        if before is None or version is None or version.commit_ts != begun_ts + 1:
            continue
        if before.status.waits or version.kind == SNAPSHOT_KIND:
            yield physical, begun_ts, before.status.waits


def _begun_whole(app: Application, window: Window, entry: TableWindow) -> _Log:
    table, name = changelog(entry.database, entry.table), entry.name
    appending = Appending(app.lake, table, app_id(app.pipeline.pipeline, name))
    silver = app.lake.log(tables.silver_path(entry.database, entry.table)).state()
    in_silver, at = silver.transaction(tables.app_id(app.pipeline.pipeline, name)), appending.from_ts
    reached = Reached(at, in_silver, window.low_ts, entry.after_ts)
    begins = log_share(reached, _standings(app, name) if at is not None and at < entry.after_ts else ())
    place = Physical(min(entry.physical).source, entry.database, entry.table)
    upto_ts = begins.lacks_upto
    if upto_ts is None:
        return _Log(entry, appending, begins.after_ts, [], is_ahead=at is not None and in_silver < at)
    if at is None:
        return _Log(entry, appending, begins.after_ts, [told(BEGIN, place, upto_ts)])
    note = f"changes above {at} up to {upto_ts} aren't here: the table had no changelog then"
    if begins.was_asked:
        note = f"changes above {at} up to {upto_ts} may be missing: the table was held, and goes on without them"
    return _Log(entry, appending, begins.after_ts, [told(GAP, place, upto_ts, note=note)])


def _standings(app: Application, name: str) -> Sequence[Standing]:
    """A table's standings in order, the present one last. They are read only if the table may have
    skipped changes.
    """
    state = app.states.get(name)
    if state is None or state.state not in (State.RELEASED, State.SNAPSHOT):
        return ()
    rows = control.read(app.lake, tables.TABLE_STATES, filters=[("table", "=", name)]).sort_by("recorded_at")
    return [*map(from_row, rows.to_pylist()), state]


def _read(app: Application, window: Window, logs: dict[Name, _Log], given: Sequence[_Asked]) -> Iterator[_Changes]:
    """The changes of each segment. given: segments, each with its wanted rows."""
    zero_dates = ZeroDates(app.pipeline.apply.zero_dates)
    asked = {
        (part.ref.source, part.ref.seq): (part, names) for part in given if (names := part.tables(app) & logs.keys())
    }
    for ref, segment in segments_or_damage(app.lake, [part.ref for part, _ in asked.values()]):
        wanted_of, names = asked[ref.source, ref.seq]
        readable = {name for name in names if not logs[name].lost}
        if isinstance(segment, StreamCorrupt):
            _lose([logs[name] for name in readable], segment)
            continue
        versions = {name: app.histories[wanted_of.owner].versions(*name) for name in readable}
        upto_ts = ref.upto(window.cut_ts) if wanted_of.answers is None else window.cut_ts
        afters = {
            name: max(
                log.after_ts, 0 if name in log.refilled else log.entry.shards.get(Physical(wanted_of.owner, *name), 0)
            )
            for name, log in logs.items()
        }
        spans = {name: CommitSpan(afters[name], upto_ts, zero_dates) for name in readable}
        known = Known(rolled_back_ts=ref.rolled_back_ts, answers=wanted_of.answers)

        def changes(
            of: Iterable[Name],
            segment: Segment = segment,
            versions: _Versions = versions,
            spans: _Spans = spans,
            known: Known = known,
            owner: str = wanted_of.owner,
        ) -> _Changes:
            wanted = {name: spans[name] for name in of}
            return list(segment_images(segment, versions, wanted, known=known, owner=owner))

        yield _of_each(changes, logs, readable)


def _write_large(appending: Sequence[Appending]) -> None:
    """While one changelog, or all together, hold too much memory: write the largest one's rows to a
    file.
    """
    while largest := max(appending, key=lambda table_changes: table_changes.pending_bytes, default=None):
        together = sum(table_changes.pending_bytes for table_changes in appending)
        if largest.pending_bytes < CHANGELOG_FILE_BYTES and together < CHANGELOG_PENDING_BYTES:
            return
        largest.write()


def _of_each(changes: Callable[[Iterable[Name]], _Changes], logs: dict[Name, _Log], names: set[Name]) -> _Changes:
    """Read all tables together. If that fails, read them one by one: the failure of one table isn't
    the others'.
    """
    try:
        return changes(names)
    except (OSError, MemoryError, Transient):
        raise
    except Exception as error:  # noqa: BLE001 - told in the changelog, by its class
        if len(names) == 1:
            _lose([logs[name] for name in names], error)
            return []
    return [rows for name in sorted(names) for rows in _of_each(changes, logs, {name})]


def _lose(logs: Iterable[_Log], error: Exception) -> None:
    known = error.error if isinstance(error, HeldError | RowsError) else error
    why = str(known if isinstance(known, Terminal) else unexpected(error))
    for log in logs:
        log.lost = log.lost or why


def _finish(app: Application, window: Window, plan: TablePlan, log: _Log) -> None:
    """Add the statements, and the rows about the changelog itself (begin, gap); then commit."""
    entry, statements = log.entry, [version for _, version in plan.changes]
    for physical in sorted(entry.physical):
        begun_ts = entry.begins(physical)
        if log.after_ts < begun_ts and (not entry.routed or physical.pair in log.refilled):
            made = app.histories[physical.source].versions(*physical.pair)
            statements += [version for version in made if version.commit_ts <= begun_ts]
    for version in statements:
        if log.after_ts < version.commit_ts <= window.cut_ts:
            place = version.physical
            more = {"file": version.file, "pos": version.pos, "version": version.version, "note": version.ddl}
            log.words.append(told(version.kind, place, version.commit_ts, **more))
    place = Physical(min(entry.physical).source, entry.database, entry.table)
    if entry.chunks:
        low_ts = max(log.after_ts + 1, min(chunk.low_ts for chunk in entry.chunks))
        note = f"{len(entry.chunks)} chunks of rows were read from the table"
        log.words.append(told(SNAPSHOT, place, low_ts, note=note))
    if log.lost:
        note = f"changes above {log.after_ts} up to {window.cut_ts} may be missing: {log.lost}"
        log.words.append(told(GAP, place, window.cut_ts, note=note))
    if log.words and log.after_ts < window.cut_ts:
        log.appending.add(as_rows(sorted(log.words, key=lambda row: (row["commit_ts"], row["source"]))))
    # Ahead of silver, and with no change after it: silver passes the changelog's end now, and the next
    # window would take that for changes that nobody logged.
    log.appending.commit(window.cut_ts, reaches=log.is_ahead and log.after_ts < window.cut_ts)
