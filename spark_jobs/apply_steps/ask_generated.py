"""Values of generated columns missing in the log, asked for at the source and staged as if logged.

In:  the staged changes of decode_changes, the tables with rows without values.
Out: the staged changes, and those rows once more, whole; a table without an answer leaves the
     window.

Nothing is read unless decode met such rows. MariaDB 11.8 logs generated columns in inserts alone;
so the source is asked for an updated row by its key (spark_jobs/asked). If the row has changed
again meanwhile, its table catches up below the cut: its next window has that change.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from spark_jobs.asked.answers import AskedSource, ShownColumns, answered
from spark_jobs.asked.in_vain import AskedInVain
from spark_jobs.asked.lacking import LastImages, Unanswered
from spark_jobs.positional.changes_stage import ChangesStage, InDriver, Staged
from spark_jobs.window.application import Application
from spark_jobs.window.made import StagedTable
from spark_jobs.window.named_segments import segments_naming
from spark_jobs.window.shape.decode_plan import Decoded
from spark_jobs.window.standing.standings import hold, meet, met_in, send_below
from spark_jobs.window.window import PrewrittenSegment, Window
from tidegate import limits
from tidegate.config import Policy
from tidegate.errors import (
    SourceRefused,
    SourceUnavailable,
    Terminal,
    TidegateError,
    Transient,
    UnsupportedValue,
    unexpected,
)
from tidegate.limits import ASKED_ATTEMPTS_MAX
from tidegate.merge.phases import empties
from tidegate.position import Position
from tidegate.remedy import Needs
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import SNAPSHOT
from tidegate.segments.result import CommitSpan, TableChanges
from tidegate.segments.window import SegmentRef
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.standing.causes import cause_of
from tidegate.standing.events import NotWritten, Refused
from tidegate.table_names import Physical
from tidegate.upsert.target import NotStaged


def ask_generated(
    app: Application, window: Window, committed: Sequence[PrewrittenSegment], decoded: Decoded
) -> Decoded:
    """Add whole rows to the staged changes."""
    if not decoded.lacking:
        return decoded
    made = dict[str, StagedTable]()
    with ExitStack() as opened:
        sources = _Sources(app, opened)
        for table in sorted(decoded.lacking):
            name = app.names.logical_name(*table.pair)
            if name in window.tables and (rows := _answered(app, window, committed, decoded, table, sources)):
                made[name] = made.get(name, StagedTable()) + rows
    for name in made.keys() & window.tables.keys():
        app.memory(AskedInVain).pop(name, None)
    return replace(decoded, staged=decoded.staged.joined(made))


class _Sources:
    """The sources' connections of one window: opened when they are needed, closed with it."""

    def __init__(self, app: Application, opened: ExitStack) -> None:
        self._logins, self._opened = app.source_logins, opened
        self._known: dict[str, WorkerConnection | TidegateError] = {}

    def connection(self, source: str) -> WorkerConnection:
        """Raises SourceRefused, SourceUnavailable."""
        if source not in self._known:
            try:
                self._known[source] = self._opened.enter_context(WorkerConnection(self._logins[source]))
            except (SourceRefused, SourceUnavailable) as error:
                self._known[source] = error  # not again for each of its tables
        known = self._known[source]
        if isinstance(known, TidegateError):
            raise known
        return known

    def forget(self, source: str) -> None:
        """Drop a connection that broke off, or stands in the middle of an answer: another table would read the rest of
        it.
        """
        if not isinstance(self._known.get(source), TidegateError):
            self._known.pop(source, None)


def _answered(
    app: Application,
    window: Window,
    committed: Sequence[PrewrittenSegment],
    decoded: Decoded,
    table: Physical,
    sources: _Sources,
) -> StagedTable | None:
    """A table's rows, staged; None where it leaves the window."""
    name = app.names.logical_name(*table.pair)
    try:
        span, newest = _asked_for(app, window, decoded, table)
        if newest is None:
            return StagedTable()
        parts = list(segments_naming(app.names, window, committed, table.source, [table.pair]))
        lacking = LastImages(app, table, span).read(parts)
        if not lacking:
            return StagedTable()
        connection = sources.connection(table.source)
        end = _end(window, table.source, connection.server_uuid)
        asked = AskedSource(connection, table.source, span.zero_dates, end, app.memory(ShownColumns))
        return _staged(app, decoded, table.source, [answered(asked, rows, newest) for rows in lacking])
    except Unanswered as error:
        _leave(app, window, name, error)
    except (SourceRefused, SourceUnavailable) as error:  # the other tables need nothing of the source
        sources.forget(table.source)
        meet(app, window, name, NotWritten(f"its source can't be asked for generated columns: {error.line}"))
    except (OSError, MemoryError, Transient):
        raise
    except Exception as error:  # noqa: BLE001 - a fault of ours is this table's alone
        sources.forget(table.source)  # it may stand in the middle of a result
        known = error if isinstance(error, Terminal) else unexpected(error)
        _leave(app, window, name, Unanswered(known.line))
    return None


def _asked_for(
    app: Application, window: Window, decoded: Decoded, table: Physical
) -> tuple[CommitSpan, TableVersion | None]:
    """The span of a table's changes that need values, and its version at the end; None where silver
    drops them all. Raises Unanswered.
    """
    span = decoded.plan.windows[table.source][table.pair]
    span = replace(span, after_ts=max(span.after_ts, _emptied_ts(app, window, table)))
    newest = app.histories[table.source].version_at(*table.pair, window.cut_ts)
    if newest is None or newest.status is VersionStatus.DROPPED:
        if app.pipeline.ddl.drop_table is Policy.APPLY:
            return span, None
        raise Unanswered("it was dropped at the source, and silver keeps its rows")
    return span, newest


def _end(window: Window, source: str, server_uuid: str) -> Position | None:
    """A place in the server's log at the window's end, or before it; None where no segment has it."""
    last: SegmentRef | None = None
    for ref in window.refs:
        if ref.source == source and ref.resolved_ts <= window.cut_ts:
            last = ref if last is None or ref.seq > last.seq else last
    if last is None or not server_uuid or last.server_uuid != server_uuid:  # another host's log has other places
        return None
    return Position.of(last.file, last.end_pos)


def _emptied_ts(app: Application, window: Window, table: Physical) -> int:
    """commit_ts of the last statement or wave of the window that removes all earlier rows of a
    table from silver; 0 for none. Raises Unanswered where rows may have moved from or to another
    table.
    """
    name, policies = app.names.logical_name(*table.pair), app.pipeline.ddl
    if any(name in (move.giver, move.taker) for move in window.moves):
        raise Unanswered("a rename or a partition moves rows in the window")
    emptied_ts = 0
    if window.tables[name].routed:  # its shards' rows are in silver before one of them is emptied
        return emptied_ts
    for version in app.histories[table.source].versions(*table.pair):
        if version.commit_ts > window.cut_ts or not empties(version):
            continue
        dropped = version.status is VersionStatus.DROPPED
        policy = policies.drop_table if dropped else policies.truncate
        if version.kind == SNAPSHOT or policy is Policy.APPLY:
            emptied_ts = max(emptied_ts, version.commit_ts - 1)  # rows of that very moment come after it
    return emptied_ts


def _staged(app: Application, decoded: Decoded, source: str, changes: Sequence[TableChanges]) -> StagedTable:
    made = StagedTable()
    stage = ChangesStage(decoded.plan, InDriver(decoded.staged.key_files, app.pool), limits.STAGE_BYTES)
    outcomes = list[Staged]()
    for change in changes:
        outcomes += stage.add(source, change)
    for staged in [*outcomes, *stage.flush()]:
        if isinstance(staged, NotStaged):
            raise Unanswered(staged.message)
        made.take(staged)
    return made


def _leave(app: Application, window: Window, name: str, error: Unanswered) -> None:
    """A table leaves the window. It catches up below the cut, or waits for rows."""
    tries = app.memory(AskedInVain)
    times = tries.note(name, window.cut_ts)
    line = f"{name}: its log lacks the values of generated columns, and the source can't be asked for them: {error.why}"
    if error.passes and times < ASKED_ATTEMPTS_MAX:
        send_below(app, window, name, line)
        return
    del tries[name]
    fault = UnsupportedValue.__name__
    hold(
        app,
        window,
        name,
        Refused(cause_of(fault), line, met_in(app, window, name), Needs.ROWS, fault),
    )
