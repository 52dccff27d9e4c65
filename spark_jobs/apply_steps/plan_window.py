"""The segments and tables of this window.

In:  BronzeIndex, the pipeline's table patterns and routes, applied_ts of each table.
Out: Planned; window.tables: for each logical table in a segment of the window, (applied_ts,
     cut_ts].

A table in no segment of the window is not in it: bronze's `tables` column proves it has no changes.
A held table stays out; its bytes wait in bronze. A released table below the window's low end stays
out, too: windows of its own run between the main ones, over the segments of such tables alone, and
nobody else waits for it. A source behind the cut has its own windows too. The rules:
tidegate/merge/follow.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from spark_jobs.asked.in_vain import AskedInVain
from spark_jobs.window.application import Application
from spark_jobs.window.density import (
    ChangeDensity,
    DensityBelow,
    FollowedBelow,
    FollowedDensity,
)
from spark_jobs.window.life.ahead import check_not_ahead
from spark_jobs.window.life.clusters import check_one_cluster
from spark_jobs.window.life.following import take_in, target
from spark_jobs.window.life.mending import release_emptied
from spark_jobs.window.made import Planned
from spark_jobs.window.shape.cascading import ancestors, cascade_graph, descendants
from spark_jobs.window.standing.gaps import hold_behind_gaps
from spark_jobs.window.standing.standings import note, release_with_partners
from spark_jobs.window.standing.unlogged_tables import hold_where_unwhole
from spark_jobs.window.window import Window
from tidegate.commit_ts import compose
from tidegate.errors import LakeUnavailable
from tidegate.lake.bronze.backlog import WantedSegments, backlog
from tidegate.limits import WAVES_REACH_BACK_SECONDS
from tidegate.remedy import Needs
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.model.columns import WAITING
from tidegate.segments.window import choose_cut, in_window, resolved_everywhere
from tidegate.standing.causes import Cause
from tidegate.standing.events import Refused
from tidegate.table_names import Physical, splits
from tidegate.tables import TABLES_BY_ID, WATERMARK, State


def next_window(app: Application) -> Window | None:
    """The main window: above the published cut, or None when nothing new is resolved. Raises
    StreamCorrupt where a source's clock can't be believed, or two clusters write as one.
    """
    check_not_ahead(app)
    check_one_cluster(app)
    release_emptied(app)
    release_with_partners(app)
    sources = _sources(app)
    app.index.check_reaches(app.cut_ts, sources)
    all_refs = app.index.refs
    cut_ts = choose_cut(all_refs, sources, app.cut_ts, _bytes_max(app))
    if cut_ts is None:
        return None
    return window_between(app, app.cut_ts, cut_ts)


def window_between(app: Application, low_ts: int, cut_ts: int) -> Window:
    """The main window of (low_ts, cut_ts] with its segments in bronze."""
    all_refs = app.index.refs
    refs = [ref for source in _sources(app) for ref in all_refs.get(source, ())]
    return Window(low_ts, cut_ts, in_window(refs, low_ts, cut_ts))


def next_catch_up(app: Application, turn: int) -> Window | None:
    """A window below the cut: for released tables, or for a source left behind; by turns where
    there are several.
    """
    release_emptied(app)
    release_with_partners(app)
    tables = _released(app)
    lanes = [*([None] if tables else []), *_going_on(app)]
    lows = [app.states[name].applied_ts for name in tables] + [app.followed.behind[name] for name in _going_on(app)]
    reach_ts = app.cut_ts - compose(1000 * WAVES_REACH_BACK_SECONDS)
    app.index.below.let_go(min([*lows, *app.snapshots.open_lows(), reach_ts]))
    if not lanes:
        return None
    source = lanes[turn % len(lanes)]
    if source is None:
        return _for_tables(app, tables)
    low_ts = app.followed.behind[source]
    app.index.check_reaches(low_ts, [source])
    wanted = {source: WantedSegments(low_ts)}
    upto_ts, refs = backlog(app.lake, wanted, _frontier(app, source), _bytes_max_below(app), app.index.below)
    return Window(low_ts, upto_ts, refs, behind=source) if upto_ts > low_ts else None


def catches_up(app: Application) -> bool:
    """Whether a window below the cut is to come."""
    return bool(_released(app) or _going_on(app))


def _bytes_max(app: Application) -> int:
    bytes_max = app.memory(ChangeDensity).bytes_max(app.pipeline.apply.window_bytes)
    return _followed(app, FollowedDensity, bytes_max)


def _bytes_max_below(app: Application) -> int:
    """The most bytes of a window below the cut. The first window of a table given back is assumed
    to be as dense as the one above the cut.
    """
    bytes_max = app.memory(DensityBelow).bytes_max(_bytes_max(app))
    return _followed(app, FollowedBelow, bytes_max)


def _followed(app: Application, kind: type[FollowedDensity], bytes_max: int) -> int:
    """Bytes are bounded by the changes below foreign keys, where any act without row events."""
    return app.memory(kind).bytes_max(bytes_max) if cascade_graph(app).parents else bytes_max


def _going_on(app: Application) -> list[str]:
    """Sources behind the cut with more data than silver has."""
    behind = app.followed.behind
    return sorted(s for s in behind if s in app.pipeline.sources and _frontier(app, s) > behind[s])


def _sources(app: Application) -> list[str]:
    return [source for source in app.pipeline.sources if source not in app.followed.behind]


def _frontier(app: Application, source: str) -> int:
    """The end of the next window of a source behind the cut: the cut, or its resolved_ts if that is
    lower.
    """
    return min(app.cut_ts, app.index.resolved(source))


def _released(app: Application) -> dict[str, Collection[Physical]]:
    """The tables that catch up by themselves, each with its physical tables. A table that can't go
    further now isn't among them.
    """
    ready: dict[str, Collection[Physical]] = {}
    in_vain = app.memory(AskedInVain)
    for name, state in app.states.of(State.RELEASED):
        if not state.source and state.applied_ts < app.cut_ts and not in_vain.waits(name, app.cut_ts):
            physical = app.names.flows().get(name) or _unknown(app, name)
            if physical and state.applied_ts < target(app, physical):
                ready[name] = physical
    return ready


def _unknown(app: Application, name: str) -> set[Physical]:
    """The physical tables of a logical name that no schema history knows."""
    candidates = {Physical(source, *pair) for source in app.pipeline.sources for pair in splits(name)}
    return {
        physical
        for physical in candidates
        if app.names.keeps(*physical) and app.names.logical_name(*physical.pair) == name
    }


def _for_tables(app: Application, tables: dict[str, Collection[Physical]]) -> Window | None:
    _hold_unreachable(app, tables)
    if not tables:
        return None
    low_ts = min(app.states[name].applied_ts for name in tables)
    wanted: dict[str, set[str]] = {}
    for owner, database, table in {physical for of in tables.values() for physical in of}:
        for source in app.pipeline.pumps(owner):
            # In any case segments with marks of snapshots, and a Pump's, which name no tables. And those of parents:
            # their foreign keys change rows of the table without an event of it.
            names = wanted.setdefault(source, {WATERMARK, TABLES_BY_ID})
            names.add(f"{database}.{table}")
            names.update(parent.shown for parent in ancestors(app, Physical(owner, database, table)))
    upto_ts, refs = backlog(
        app.lake,
        {source: WantedSegments(low_ts, names) for source, names in wanted.items()},
        min(target(app, of) for of in tables.values()),
        _bytes_max_below(app),
        app.index.below,
    )
    return Window(low_ts, upto_ts, refs, catches_up=tables, asked=wanted) if upto_ts > low_ts else None


def _hold_unreachable(app: Application, tables: dict[str, Collection[Physical]]) -> None:
    """Data dropped from bronze is missing for good."""
    for name, physical in list(tables.items()):
        begin = max(app.index.begin(source) for owner, _, _ in physical for source in app.pipeline.pumps(owner))
        at = app.states[name].applied_ts
        if at < begin:
            what = f"{name}: silver has it up to {at}, and bronze begins after {begin}"
            note(app, name, Refused(Cause.NEEDS_ROWS, what, needs=Needs.ROWS, at_ts=app.cut_ts))
            del tables[name]
    app.record_states({})


def plan_window(app: Application, window: Window) -> Planned:
    """Fill window.tables; hold tables whose rows before capture are unknown."""
    _guard_histories(app, window)
    _take(app, window)
    # An earlier try wrote tables, was killed before its cut, and that cut lay further on: no other cut would tell what
    # they hold. The further window may take tables that a try wrote further still.
    while window.main and (reach_ts := _reached(app, window)) > window.cut_ts:
        window = _reach_to(app, window, reach_ts)
        _take(app, window)
    _hold_tables_that_need_a_snapshot(app, window)
    return Planned(window, hold_behind_gaps(app, window, window.gaps))


def _take(app: Application, window: Window) -> None:
    for ref in window.refs:
        for database, table in app.names.in_segment(ref):
            physical = Physical(ref.source, database, table)
            take_in(app, window, physical)
            for child in descendants(app, physical):
                take_in(app, window, child)


def _reached(app: Application, window: Window) -> int:
    """Up to where silver has a part of the window's tables. A followed statement counts, too: the
    rows after it may be of a further commit.
    """
    return max((max(of.after_ts, app.positions.reached(name)) for name, of in window.tables.items()), default=0)


def _reach_to(app: Application, window: Window, cut_ts: int) -> Window:
    sources, refs = _sources(app), app.index.refs
    if resolved_everywhere(refs, sources) < cut_ts:
        raise LakeUnavailable(
            f"silver is at {cut_ts} in part, from a killed window, and not every source is resolved up to there",
            where=app.lake.root,
            remedy="start capture of every source",
        )
    return replace(window_between(app, window.low_ts, cut_ts), began=window.began, taking=window.taking)


def _guard_histories(app: Application, window: Window) -> None:
    """Keep DDL in order: a table that catches up meets its statements in its own windows, before
    the main window does.

    If a statement of a table wasn't followed, the table has no version from there on. The main
    window doesn't make one either.
    """
    for name, state in app.states.of(State.RELEASED):
        if not state.is_unread:
            continue
        for source, database, table in app.names.flows().get(name, ()):
            held = app.histories[source].held
            if window.main and app.positions.waits_below(name, window.low_ts):
                held[(database, table)] = DdlNotRead(f"{name} catches up first", tables=(f"{database}.{table}",))
            else:
                held.pop((database, table), None)


def _hold_tables_that_need_a_snapshot(app: Application, window: Window) -> None:
    """Hold tables with rows older than capture: silver would lack those rows, and nobody would see
    it.
    """
    sources = [window.behind] if window.behind else (list(app.histories) if window.main and app.unchecked() else [])
    if sources:
        physical = {
            Physical(source, *name)
            for source in sources
            for name in {*app.histories[source].ever(*WAITING), *app.histories[source].unusual}
        }
    else:
        physical = {name for entry in window.tables.values() for name in entry.physical}
    hold_where_unwhole(app, window, sorted(physical))
