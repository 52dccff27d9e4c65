"""Step 1: which segments and tables this window takes.

In:  BronzeIndex, the pipeline's table patterns and routes, applied_ts of each table.
Out: window.tables: for each logical table that a segment of the window names, (applied_ts, cut_ts].

A table that no segment of the window names is not in it: bronze's `tables` column proves that it has no
changes. A table that is held stays out; its bytes wait in bronze.
"""

from __future__ import annotations

from spark_jobs.application import (
    HELD,
    Application,
    Place,
    TableWindow,
    Window,
    needs_snapshot_reason,
)
from spark_jobs.table_moves import release_with_partners
from spark_jobs.unlogged_tables import unlogged_reason
from tidegate.merge.window import choose_cut, in_window
from tidegate.schema.columns import VersionStatus
from tidegate.tables import NEEDS_SNAPSHOT, UNLOGGED_CHANGES, SegmentFlag


def next_window(app: Application) -> Window | None:
    """The window above what is applied everywhere, or None when nothing new is resolved."""
    release_with_partners(app)
    low_ts = app.low_ts
    app.index.check_reaches(low_ts, app.pipeline.sources)
    cut_ts = choose_cut(app.index.refs, app.pipeline.sources, low_ts, app.pipeline.apply.window_bytes)
    if cut_ts is None:
        return None
    return window_between(app, low_ts, cut_ts)


def window_between(app: Application, low_ts: int, cut_ts: int) -> Window:
    """The window of (low_ts, cut_ts] with what bronze has of it."""
    refs = [ref for by_source in app.index.refs.values() for ref in by_source]
    found = in_window(refs, low_ts, cut_ts)
    gaps = [ref for ref in found if ref.flags & SegmentFlag.GAP]
    whole = [ref for ref in found if not ref.flags & SegmentFlag.GAP]
    return Window(low_ts=low_ts, cut_ts=cut_ts, refs=whole, gaps=gaps)


def plan_window(app: Application, window: Window) -> None:
    """Fill window.tables; hold tables whose rows before capture are unknown."""
    for ref in window.refs:
        for database, table in app.names_in(ref):
            _add(app, window, (ref.source, database, table))
    _hold_tables_that_need_a_snapshot(app, window)
    _hold_behind_gaps(app, window)


def _hold_behind_gaps(app: Application, window: Window) -> None:
    """A person let capture go on where the source lost changes: the tables that they may have touched wait."""
    for ref in window.gaps:
        for database, table in app.names_in(ref):
            name = app.logical_name(database, table)
            window.gap_ts[name] = max(ref.max_commit_ts, window.gap_ts.get(name, 0))
            state = app.states.get(name)
            if (state is not None and state.state == HELD) or app.applied(name) >= ref.max_commit_ts:
                continue
            place = Place(ref.source, database, table, ref.file, ref.end_pos, ref.max_commit_ts)
            reason = (
                f"{database}.{table} at {ref.file}:{ref.end_pos} of {ref.source}: the source lost transactions that may"
                " have changed it, which was accepted; truncate it, or drop and create it, at the source"
            )
            window.hold(name, NEEDS_SNAPSHOT, reason, app.applied(name), place)


def _add(app: Application, window: Window, physical: tuple[str, str, str]) -> None:
    database, table, routed = app.logical(physical[1], physical[2])
    name = f"{database}.{table}"
    state = app.states.get(name)
    if state is not None and state.state == HELD:
        return
    entry = window.tables.get(name)
    if entry is None:
        after_ts = app.applied(name)
        entry = window.tables[name] = TableWindow(name, database, table, routed, after_ts)
    entry.physical.add(physical)


def _hold_tables_that_need_a_snapshot(app: Application, window: Window) -> None:
    """A table that held rows when capture started is named and held, never half filled in silence."""
    if app.unchecked():
        waiting = VersionStatus.NEEDS_SNAPSHOT
        physical = {
            (source, *name)
            for source, history in app.histories.items()
            for name in {*history.ever(waiting), *history.unusual}
        }
    else:
        physical = {name for entry in window.tables.values() for name in entry.physical}
    for source, database, table in sorted(physical):
        if source not in app.histories or not app.keeps(source, database, table):
            continue
        name = app.logical_name(database, table)
        state = app.states.get(name)
        if state is not None and state.state == HELD:
            continue
        version = app.histories[source].version_at(database, table, window.cut_ts)
        if version is None:
            continue
        if version.status == VersionStatus.NEEDS_SNAPSHOT:
            window.hold(name, NEEDS_SNAPSHOT, needs_snapshot_reason(version), app.applied(name), Place.of(version))
        elif reason := unlogged_reason(app, version):
            window.hold(name, UNLOGGED_CHANGES, reason, app.applied(name), Place.of(version))
