"""Replay the window's DDL onto schema_history.

In:  segments with HAS_DDL, and the versions known so far.
Out: new rows of control/schema_history, in one commit; tables whose DDL can't be followed are held;
     the states noted by planning and this step, in one commit, which goes first for a source behind
     the cut; DdlReplayed.

It runs before decode, because rows after a DDL need the columns as of their commit_ts. Replaying a
statement again changes nothing (its commit_ts is not above the table's last version), so a killed
window can be tried again at any point: its effects on tables follow from the versions, by any
writer.

A rename links two tables: they go through the window together, or wait together
(spark_jobs/window/shape/moves.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from spark_jobs.window.application import Application
from spark_jobs.window.life.following import take_in
from spark_jobs.window.life.mending import mend_emptied
from spark_jobs.window.made import DdlReplayed, Planned
from spark_jobs.window.pairing.defined import replay_jobs
from spark_jobs.window.pairing.pairs import Pairs
from spark_jobs.window.shape.cascading import forget_cascades
from spark_jobs.window.shape.moves import find_moves
from spark_jobs.window.shape.parents_too import bring_parents
from spark_jobs.window.standing.gaps import hold_behind_gaps
from spark_jobs.window.standing.standings import hold, meet_always, send_below, take_along
from spark_jobs.window.standing.unlogged_tables import unlogged_reason
from spark_jobs.window.window import Window
from tidegate import tables
from tidegate.errors import StreamCorrupt, Terminal, Transient, UnknownEvent, unexpected
from tidegate.failpoint import failpoint
from tidegate.remedy import Remedy
from tidegate.schema.ddl.reader import DdlNotRead, read, touched_tables
from tidegate.schema.ddl.statement import DdlStatement, StatementTime
from tidegate.schema.follow.renames import empties
from tidegate.schema.model.columns import TableVersion, was_there
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.unlogged import SEQUENCE, VIEWS
from tidegate.schema.replay.history import SNAPSHOT
from tidegate.segment_kinds import statements_of
from tidegate.segments.window import SegmentRef
from tidegate.standing.causes import Cause
from tidegate.standing.events import LoggedAgain, Refused
from tidegate.standing.lacking import lacking, lacks_since
from tidegate.standing.standing import Place
from tidegate.table_names import splits
from tidegate.tables import SegmentFlag, State

Name = tuple[str, str]  # database, table


def replay_schema_history(app: Application, planned: Planned, pairs: Sequence[Pairs]) -> DdlReplayed:
    """Append the window's new table versions and hold tables whose DDL can't be followed."""
    window, ddl_times, new = planned.window, dict[tuple[str, int], StatementTime](), list[TableVersion]()
    refs = [ref for ref in (*window.refs, *window.gaps) if ref.flags & SegmentFlag.HAS_DDL and ref.whole]
    clusters = [pair for pair in pairs if pair.ddl or pair.tables]
    for ref in sorted(refs, key=lambda ref: (ref.source, ref.seq)):
        if ref.flags & SegmentFlag.GAP:
            new += app.histories[ref.source].pass_gap(ref.max_commit_ts, ref.file, ref.end_pos)
            continue
        for statement in _statements(app, window, ref):
            if window.low_ts < statement.commit_ts <= ref.upto(window.cut_ts):
                ddl_times[(ref.source, statement.commit_ts)] = statement.ran
                new += _replay(app, window, ref.source, statement)
    for cluster in clusters:
        new += replay_jobs(app, cluster)
    for history in app.histories.values():
        new += history.unfollowed
        history.unfollowed = []
    if new:
        forget_cascades(app)
        if window.behind is not None:
            app.record_states({})  # a killed window would know these tables as of this source already
        failpoint("apply_before_schema_history")
        app.histories.written(app.control.append(tables.SCHEMA_HISTORY, [version.to_row() for version in new]))
        failpoint("apply_after_schema_history")
    if refs or clusters:
        for history in app.histories.values():
            for version in history.made_in(window.low_ts, window.cut_ts):
                _take_in(app, planned, version)
        window.taking.moves = find_moves(app, window.low_ts, window.cut_ts)
        take_along(app, window, {name for move in window.moves for name in (move.giver, move.taker)})
    wider = bring_parents(app, window)
    hold_behind_gaps(app, wider, wider.gaps[len(window.gaps) :])
    app.record_states({})  # what this step and the one before noted, before anything of it is written
    return DdlReplayed(wider, ddl_times)


def _statements(app: Application, window: Window, ref: SegmentRef) -> Sequence[DdlStatement]:
    """A segment's DDL. If the segment is damaged, all tables that it names are held."""
    try:
        return statements_of(app.index.read(ref))
    except (OSError, MemoryError, Transient):
        raise
    except (StreamCorrupt, UnknownEvent) as damage:
        error: Terminal = damage
    except Exception as fault:  # noqa: BLE001 - a fault of ours in one segment is that segment's
        error = unexpected(fault)
    at = Place(ref.source, "", "", ref.file, ref.start_pos, ref.max_commit_ts)
    said = app.histories.judged.get(ref.source, {}).get((at.file, at.pos, at.at_ts))
    _hold(app, window, at, set(app.names.in_segment(ref)) if said is None else said, error, ref.min_commit_ts)
    history = app.histories[ref.source]
    every = tables.EVERY_TABLE in ref.tables
    history.leave_behind(
        history.tables() if every else {pair for text in ref.tables for pair in splits(text)}, _lost(at)
    )
    return []


def _lost(at: Place) -> DdlStatement:
    """A statement in place of those of an unreadable segment."""
    return DdlStatement("(a segment that can't be read)", "", 0, at.at_ts, at.file, at.pos, 0, "")


def _replay(app: Application, window: Window, source: str, statement: DdlStatement) -> list[TableVersion]:
    history = app.histories[source]
    at = Place(source, "", "", statement.file, statement.pos, statement.commit_ts, statement.shown)
    said = app.histories.judged.get(source, {}).get((at.file, at.pos, at.at_ts))
    if said is not None:
        error: Terminal = DdlNotRead(
            "a person judged that it changes this table", where=f"{source} at {statement.where}"
        )
        _hold(app, window, at, said, error)
        return []
    try:
        return history.replay(statement)
    except DdlNotRead as unread:
        names, error = [pair for text in unread.tables for pair in splits(text)], unread
        history.leave_behind(names or history.tables(), statement)
        if _waits_together(app, window, statement, source, names):
            return []
    except Exception as fault:  # noqa: BLE001 - a fault of ours at one statement is its tables'
        names, error = _touched(statement, history.server_of(statement)), unexpected(fault)
        history.leave_behind(names or history.tables(), statement)
    # Where nobody can say which tables it touches, it may be any that is there.
    _hold(app, window, at, names or history.tables(), error)
    return []


def _touched(statement: DdlStatement, server: ServerVersion) -> list[tuple[str, str]]:
    """The tables changed by a statement; [] when they aren't known."""
    try:
        statement_read = read(statement.sql, database=statement.database, sql_mode=statement.sql_mode, server=server)
    except DdlNotRead as error:
        return [pair for text in error.tables for pair in splits(text)]
    except Exception:  # noqa: BLE001 - that is what brought us here
        return []
    return list(touched_tables(statement_read))


def _hold(
    app: Application,
    window: Window,
    at: Place,
    names: Collection[tuple[str, str]],
    error: Terminal,
    since_ts: int = 0,
) -> None:
    """Hold the kept tables among the names that existed at the place (or at since_ts), and that
    aren't applied beyond it.
    """
    since_ts = since_ts or at.at_ts
    for database, table in sorted(set(names)):
        name = app.names.logical_name(database, table)
        history = app.histories[at.source]
        if not app.names.keeps(at.source, database, table) or app.positions.applied(name) >= at.at_ts:
            continue
        versions = history.versions(database, table)
        if not any(was_there(versions, stamp) for stamp in (since_ts, at.at_ts)):
            continue
        unread = DdlNotRead(error.line, remedy=Remedy(needs=error.needs), tables=(f"{database}.{table}",))
        history.hold([(database, table)], unread)
        state = app.states.get(name)
        if state is not None and app.positions.waits_below(name, window.low_ts):
            # It comes there by itself, and what is above waits.
            send_below(app, window, name, state.reason, unread=True)
        elif state is None or state.state != State.HELD:
            place, fault = replace(at, database=database, table=table), type(error).__name__
            hold(app, window, name, Refused(Cause.DDL_NOT_READ, error.line, place, needs=error.needs, fault=fault))


def _waits_together(
    app: Application, window: Window, statement: DdlStatement, source: str, names: Sequence[Name]
) -> bool:
    """Whether a statement is left to the windows of a table catching up to it first; its other
    tables go there too.

    Such a table has no version, because an earlier statement wasn't followed. No version is made
    here either.
    """
    kept = sorted({app.names.logical_name(*name) for name in names if app.names.keeps(source, *name)})
    first = next((name for name in kept if _lacks_versions(app, window, name)), None)
    for name in kept if first else ():
        if not app.positions.waits_below(name, window.low_ts) and not app.positions.is_held(name):
            reason = f"{name}: a statement at {statement.where} is about {first} as well, which catches up first"
            send_below(app, window, name, reason, unread=True)
    return first is not None


def _lacks_versions(app: Application, window: Window, name: str) -> bool:
    state = app.states.get(name)
    return state is not None and state.is_unread and app.positions.waits_below(name, window.low_ts)


def _take_in(app: Application, planned: Planned, version: TableVersion) -> None:
    """Bring the version's logical table into the window, or hold it, or let a mended one go on."""
    window, physical = planned.window, version.physical
    if not app.names.keeps(*physical) and version.engine == SEQUENCE:
        _leave_out(app, window, version)
    if not app.names.keeps(*physical) or not _may_be_ours(app, window, version):
        return
    routed = app.names.logical(version.database, version.table)[2]
    name = app.names.logical_name(version.database, version.table)
    if version.commit_ts <= app.positions.applied(name):
        return
    held = app.positions.is_held(name)
    if version.engine in VIEWS and not held:
        return
    if version.status.waits:
        if not held and not routed and take_in(app, window, physical):
            known = app.histories[version.source].versions(version.database, version.table)
            line, needs = lacking(lacks_since(known, version))
            hold(app, window, name, Refused(Cause.NEEDS_ROWS, line, Place.of(version), needs=needs))
        return
    if reason := unlogged_reason(app, version):
        if not held and take_in(app, window, physical):
            hold(app, window, name, Refused(Cause.UNLOGGED, reason, Place.of(version)))
        return
    mended = mend_emptied(app, planned, version) if empties(version) and not routed else []
    for again in mended:
        _take_in(app, planned, again)
    # A killed window made a snapshot's version: the wave decides, and comes after this.
    if (held or name in window.held) and not mended and version.kind != SNAPSHOT:
        what = (
            f"{version.name} at {version.file}:{version.pos} of {version.source}: it changed without row events until"
        )
        line = f"{what} here ({version.ddl[:120]})"
        meet_always(app, window, name, LoggedAgain(line))  # this very window may have held it
    take_in(app, window, physical)


def _may_be_ours(app: Application, window: Window, version: TableVersion) -> bool:
    """Whether the window has the segments of this table: below the cut it has those of a few alone."""
    if window.catches_up is not None:
        return app.names.logical_name(version.database, version.table) in window.catches_up
    return (version.source == window.behind) if window.behind else version.source not in app.followed.behind


def _leave_out(app: Application, window: Window, version: TableVersion) -> None:
    """Leave out a sequence that this window's DDL created: it isn't a table, and nobody needs its
    rows.
    """
    entry = window.tables.get(app.names.logical_name(version.database, version.table))
    if entry is not None:
        entry.physical.discard(version.physical)
        if not entry.physical:
            del window.taking.tables[entry.name]
