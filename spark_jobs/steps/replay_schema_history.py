"""Step 2: replay the window's DDL onto schema_history.

In:  segments with HAS_DDL, and the versions known so far.
Out: new rows of control/schema_history, in one commit; tables whose DDL can't be followed are held.

It runs before decode, because rows after a DDL need the columns as of their commit_ts. Replaying a
statement again changes nothing (its commit_ts is not above the table's last version), so a killed window
can be tried again at any point: what it does to tables follows from the versions, whoever appended them.

A rename links two tables: they go through the window together, or wait together (spark_jobs/table_moves.py).
"""

from __future__ import annotations

from spark_jobs.application import (
    DDL_NOT_READ,
    HELD,
    RELEASED,
    Application,
    Place,
    TableState,
    TableWindow,
    Window,
    needs_snapshot_reason,
)
from spark_jobs.table_moves import find_moves, hold_partners
from tidegate import tables
from tidegate.binlog.ddl_events import ddl_statements
from tidegate.failpoint import failpoint
from tidegate.schema.columns import TableVersion, VersionStatus
from tidegate.schema.ddl_reader import DdlNotRead
from tidegate.schema.ddl_statement import DdlStatement
from tidegate.tables import NEEDS_SNAPSHOT, SegmentFlag, splits


def replay_schema_history(app: Application, window: Window) -> None:
    """Append the window's new table versions and hold what can't be followed."""
    new: list[TableVersion] = []
    refs = [ref for ref in window.refs if ref.flags & SegmentFlag.HAS_DDL]
    for ref in refs:
        for statement in ddl_statements(app.index.read(ref)):
            if window.low_ts < statement.commit_ts <= ref.upto(window.cut_ts):
                window.ddl_times[(ref.source, statement.commit_ts)] = statement.timestamp_us
                new += _replay(app, window, ref.source, statement)
    if new:
        failpoint("apply_before_schema_history")
        app.history_written(app.control.append(tables.SCHEMA_HISTORY, [version.to_row() for version in new]))
        failpoint("apply_after_schema_history")
    if refs:
        for history in app.histories.values():
            for version in history.made_in(window.low_ts, window.cut_ts):
                _take_in(app, window, version)
        window.moves = find_moves(app, window.low_ts, window.cut_ts)
        hold_partners(app, window, window.moves)


def _replay(app: Application, window: Window, source: str, statement: DdlStatement) -> list[TableVersion]:
    try:
        return app.histories[source].replay(statement)
    except DdlNotRead as error:
        if not error.tables:
            # Nobody can say which tables it touches: going on would be a guess about all of them.
            raise
        for database, table in (pair for text in error.tables for pair in splits(text)):
            if app.keeps(source, database, table):
                name = app.logical_name(database, table)
                state = app.states.get(name)
                if state is None or state.state != HELD:
                    found = (statement.file, statement.pos, statement.commit_ts, statement.sql)
                    place = Place(source, database, table, *found)
                    window.hold(name, DDL_NOT_READ, str(error), app.applied(name), place)
        return []


def _take_in(app: Application, window: Window, version: TableVersion) -> None:
    """Bring the version's logical table into the window, or hold it, or let a mended one go on."""
    if not app.keeps(version.source, version.database, version.table):
        return
    database, table, routed = app.logical(version.database, version.table)
    name = f"{database}.{table}"
    if version.commit_ts <= app.applied(name):
        return
    state = app.states.get(name)
    held = state is not None and state.state == HELD
    if version.status == VersionStatus.NEEDS_SNAPSHOT:
        if not held:
            window.hold(name, NEEDS_SNAPSHOT, needs_snapshot_reason(version), app.applied(name), Place.of(version))
        return
    whole = (version.kind in ("create", "truncate") or version.status == VersionStatus.DROPPED) and not routed
    if whole and (name in window.held or held) and _waits_for_a_snapshot(app, window, name):
        window.held.pop(name, None)
        app.record_states({name: TableState(RELEASED, applied_ts=version.commit_ts - 1)})
        held = False
    if not held and name not in window.held and name not in window.tables:
        window.tables[name] = TableWindow(name, database, table, routed, app.applied(name))
    if name in window.tables:
        window.tables[name].physical.add((version.source, version.database, version.table))


def _waits_for_a_snapshot(app: Application, window: Window, name: str) -> bool:
    state = window.held.get(name) or app.states.get(name)
    return state is not None and state.error == NEEDS_SNAPSHOT
