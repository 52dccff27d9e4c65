"""A source's prepared transactions (XA) committed in a window, and the places of their rows in bronze.

In:  the window's segments with an XA PREPARE or an answer to one, control/prewrites.
Out: segments and the commit_ts of their rows; their tables in window.tables. Rows of
     control/prewrites for transactions prepared or answered here. Tables perhaps changed unseen by
     an answer are held.

A killed window writes the same rows to control/prewrites once more; the last one of each counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.window.application import Application
from spark_jobs.window.life.following import take_in
from spark_jobs.window.pairing.answered import answered_in, release_decided, segments_of
from spark_jobs.window.standing.standings import hold
from spark_jobs.window.standing.unlogged_tables import hold_where_unwhole
from spark_jobs.window.waves.shards import is_left_out
from spark_jobs.window.window import PrewrittenSegment, Window
from tidegate.errors import UnknownEvent
from tidegate.remedy import JUDGE, Needs
from tidegate.schema.model.columns import was_there
from tidegate.segments.prewrites import Prewrite
from tidegate.standing.causes import Cause
from tidegate.standing.events import Refused
from tidegate.standing.standing import Place
from tidegate.table_names import Physical
from tidegate.tables.prewrites_table import PrewriteState


def committed_branches(app: Application, window: Window) -> list[PrewrittenSegment]:
    """The places of rows of the window's committed XA transactions, in order of (source, seq)."""
    if window.main:
        release_decided(app)
    answered = answered_in(app, window)
    if not answered:
        return []
    for prewrite in answered:
        if prewrite.state is PrewriteState.UNKNOWN:
            _hold_for_unknown(app, window, prewrite)
        elif prewrite.state is PrewriteState.PARKED:
            _hold_for_parked(app, window, prewrite)
    answers = (known for known in answered if known.state is PrewriteState.COMMITTED)
    committed = [known for known in answers if _is_wanted(app, window, known)]
    segments, lost = segments_of(app, window, committed)
    for prewrite in lost:
        for database, table in app.names.kept(prewrite.source, prewrite.tables):
            reason = (
                f"{database}.{table}: rows that {prewrite.id} prepared in segment {prewrite.began_seq} of"
                f" {prewrite.source} were committed at {prewrite.answer_file}:{prewrite.answer_pos}, and bronze no"
                " longer has that segment"
            )
            hold(
                app,
                window,
                app.names.logical_name(database, table),
                Refused(Cause.NEEDS_ROWS, reason, needs=Needs.ROWS),
            )
    return segments


def _is_wanted(app: Application, window: Window, prewrite: Prewrite) -> bool:
    """Take a committed prewrite's tables into the window. Returns whether the window wants rows of
    one of them.
    """
    wanted = False
    for database, table in app.names.kept(prewrite.source, prewrite.tables):
        name, physical = app.names.logical_name(database, table), Physical(prewrite.source, database, table)
        if is_left_out(app, window, physical):
            continue
        if prewrite.answer_ts > window.low_ts and name not in window.tables:
            hold_where_unwhole(app, window, [physical])
        if prewrite.answer_ts > window.low_ts:
            take_in(app, window, physical)
        entry = window.tables.get(name)
        wanted = wanted or (entry is not None and entry.after_ts < prewrite.answer_ts)
    return wanted


def _hold_for_parked(app: Application, window: Window, prewrite: Prewrite) -> None:
    """Its tables wait where they are until a person decides, or an answer comes after all."""
    for database, table in app.names.kept(prewrite.source, prewrite.tables):
        name = app.names.logical_name(database, table)
        if (
            app.positions.is_held(name)
            or app.positions.applied(name) >= prewrite.answer_ts
            or _is_elsewhere(app, window, name)
        ):
            continue
        reason = (
            f"{name}: XA branch {prewrite.id} wrote to {database}.{table}, isn't prepared at {prewrite.source} any"
            f" more, and the log has no answer to it up to {prewrite.answer_file}:{prewrite.answer_pos}; say what"
            f" became of it: `tidegate prewrites {app.pipeline.pipeline} --commit` or `--rollback`"
        )
        place = Place(prewrite.source, database, table, prewrite.answer_file, prewrite.answer_pos, prewrite.answer_ts)
        hold(app, window, name, Refused(Cause.PARKED, reason, place))


def _is_elsewhere(app: Application, window: Window, name: str) -> bool:
    """Whether another window is for a table."""
    if window.catches_up is not None:
        return name not in window.catches_up
    return app.positions.waits_below(name, window.low_ts)


def _hold_for_unknown(app: Application, window: Window, prewrite: Prewrite) -> None:
    """Hold every table of the source that existed then: the committed rows are unknown, so any of
    them may lack some.
    """
    said = app.histories.judged.get(prewrite.source, {}).get(
        (prewrite.answer_file, prewrite.answer_pos, prewrite.answer_ts)
    )
    for name, source, database, table in _tables_of(app, prewrite.source):
        applied = app.positions.applied(name) >= prewrite.answer_ts
        if applied or app.positions.is_held(name) or _is_elsewhere(app, window, name):
            continue
        if prewrite.tables and (database, table) not in set(app.names.kept(source, prewrite.tables)):
            continue
        if not was_there(app.histories[source].versions(database, table), prewrite.answer_ts):
            continue
        if said is not None and (database, table) not in said:
            continue
        by_person = "a person judged that it changed this table: " if said else ""
        error = UnknownEvent(
            f"{by_person}{_what(prewrite)}",
            where=f"{name} at {prewrite.answer_file}:{prewrite.answer_pos} of {source}",
            remedy=JUDGE,
        )
        place = Place(source, database, table, prewrite.answer_file, prewrite.answer_pos, prewrite.answer_ts)
        fault = type(error).__name__
        hold(app, window, name, Refused(Cause.EVENT_NOT_READ, error.line, place, needs=error.needs, fault=fault))


def _what(prewrite: Prewrite) -> str:
    if prewrite.tables:
        return f"the answer to XA branch {prewrite.id} isn't what was decided about it before"
    return f"XA COMMIT {prewrite.id} has no XA PREPARE in bronze, so its rows are unknown"


def _tables_of(app: Application, source: str) -> Iterable[tuple[str, str, str, str]]:
    """Kept tables of a source: logical name, then the physical one."""
    for name, physical in sorted(app.names.flows().items()):
        for table in sorted(physical):
            if table.source == source:
                yield (name, *table)
