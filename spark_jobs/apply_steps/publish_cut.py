"""Publish cut_ts: from here on readers may use it.

In:  the window's Delta versions, window.held, TakenWaves.
Out: control/table_states events for newly held tables; answers to waves in control/snapshots;
     control/cuts rows for this window's writes.

States of held tables are written first: no reader may see a cut before it sees which tables are
behind the cut. States of tables that catch up are written last: they are named as waiting until
then, and an active table must have its row of the cut.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Final

from spark_jobs.window.application import Application
from spark_jobs.window.life.following import source_reached
from spark_jobs.window.made import TakenWaves
from spark_jobs.window.standing.facts import facts_of
from spark_jobs.window.standing.others_rows import tell_others
from spark_jobs.window.standing.silver_guard import met_unwritten, note_published, silver_cells
from spark_jobs.window.standing.standings import after, hold_for_error
from spark_jobs.window.waves.shards import rest_shards
from spark_jobs.window.waves.snapshots import record_answers, take_answers
from spark_jobs.window.window import TableWindow, Window
from tidegate.delta.table.state import TableState
from tidegate.errors import SilverForeign, Terminal
from tidegate.failpoint import failpoint
from tidegate.schema.model.unlogged import VIEWS
from tidegate.standing.events import CaughtUp, CutReached, SourceBack
from tidegate.standing.standing import Standing
from tidegate.standing.step import step
from tidegate.table_names import Physical
from tidegate.tables import State

_GOES_ON: Final = (State.ACTIVE, State.SNAPSHOT)


def publish_cut(app: Application, window: Window, waves: TakenWaves, versions: Mapping[str, int]) -> None:
    """Record the states, then the cut. A window below the cut records how far its source is instead
    of a cut.
    """
    app.check_claim()
    standings = dict(window.held)
    answers, by_waves = take_answers(app, window, waves)
    if window.main:
        _found_above(app, window, standings)
    elif window.catches_up is not None:
        _caught_up(app, window, window.catches_up, standings)
    standings = by_waves | standings
    shards = _shards(app, window, standings)
    standings |= shards
    back = _goes_back(app, window)
    checked = _hold_untrue(app, window, standings, {*standings, *back} - versions.keys())
    # Its row of the cut comes before a table that caught up is active: were it the other way, a kill in between would
    # leave readers of the cut with the version from before, until the table changes again.
    if window.catches_up is None:
        app.record_states(standings)
    record_answers(app, answers)
    failpoint("apply_before_publish")
    named = dict.fromkeys((*versions, *window.held, *by_waves, *shards))
    if window.catches_up is not None:
        named |= {name: None for name, state in standings.items() if state.state != State.RELEASED}
    named |= dict.fromkeys(back)
    states = {name: standings.get(name) or app.states.get(name) for name in named}
    found_rows = (
        _row(app, window, name, state, versions.get(name), checked.get(name)) for name, state in states.items()
    )
    now = datetime.now(UTC)  # silver's commits are made
    rows = [{**row, "published_at": now} for row in found_rows if row is not None]
    tell_others(app)
    if window.main:
        cut = {"table": "", "delta_version": -1, "applied_ts": window.cut_ts, "state": State.ACTIVE}
        app.publish(
            [{"published_at": now, **row, "cut_ts": window.cut_ts} for row in (cut, *rows)],
            (app.cuts_app_id, window.cut_ts),
        )
        app.positions.cut_ts = window.cut_ts
        note_published(app, rows)
    elif rows:  # below the published cut only their own rows are new
        app.publish([{**row, "cut_ts": app.cut_ts} for row in rows])
        note_published(app, rows)
    if window.catches_up is not None:
        failpoint("apply_in_publish")
        app.record_caught_up(window, standings)
    if window.behind is not None:
        source_reached(app, window.behind, window.cut_ts)
        if window.behind not in app.followed.behind:
            app.record_states(_back_with(app, window, window.behind))
    for source, known in app.histories.prewrites.items():
        known.forget(app.positions.of(source))
    app.index.forget(app.cut_ts)
    app.forget_versions()
    failpoint("apply_after_publish")


def _hold_untrue(
    app: Application, window: Window, standings: dict[str, Standing], unwritten: Collection[str]
) -> dict[str, TableState]:
    """Hold tables that are about to continue, if their silver can't be read or isn't as published. Returns the silver
    of the others: the cut names these versions, not what another writer commits from now on.

    This window wrote nothing to them, so no writer has checked that. A row of the cut would have no
    version, or would call a changed one correct.
    """
    checked = {}
    for name in sorted(set(unwritten) - window.held.keys()):
        standing = standings.get(name)
        if standing is not None and standing.state not in _GOES_ON:
            continue
        silver = app.positions.silver(name)
        error: Terminal | None = None
        if silver is not None:
            error = met_unwritten(app, name, silver)
        elif standing is not None and standing.state is State.ACTIVE:
            error = app.positions.unread[name]
        if error is not None:
            hold_for_error(app, window, name, error)
            standings[name] = window.held[name]
        elif silver is not None:
            checked[name] = silver
    return checked


def _shards(app: Application, window: Window, standings: Mapping[str, Standing]) -> dict[str, Standing]:
    """The standings of tables with lacking shards, where nothing else keeps them from going on."""
    if window.behind is not None:
        return {}
    made = {}
    for name, event in rest_shards(app, window).items():
        before = standings.get(name) or app.states.get(name)
        standing = step(before, event, facts_of(app, name)).standing
        if standing is not None and standing is not before:
            made[name] = standing
    return made


def _found_above(app: Application, window: Window, standings: dict[str, Standing]) -> None:
    """The states of dropped tables, and of those released at the cut or above, at the window's end."""
    names = {name for name, entry in window.tables.items() if app.states.get(name) or not _is_view(app, entry)}
    names |= {name for name, _ in app.states.of(State.RELEASED)}
    released = app.states.any(State.RELEASED)
    flows: Mapping[str, Collection[Physical]] = app.names.flows() if released else {}
    event = CutReached(window.low_ts, window.cut_ts)
    for name in sorted(names - standings.keys()):
        entry = window.tables.get(name)
        # Of a shard that had no change here, too: its source may be the one that is behind.
        physical = flows.get(name) or (entry.physical if entry else ())
        standing = after(app, name, event, physical)
        if standing is not None:
            standings[name] = standing


def _is_view(app: Application, entry: TableWindow) -> bool:
    """Whether a name in the window's segments is a view's: views are recorded as dropped tables
    with the engine `view`.
    """
    versions = [v for of in entry.physical for v in app.histories[of.source].versions(*of.pair)]
    return bool(versions) and all(version.engine in VIEWS for version in versions)


def _caught_up(
    app: Application, window: Window, released: Mapping[str, Collection[Physical]], standings: dict[str, Standing]
) -> None:
    """The new states of tables in a window below the cut."""
    for name, physical in released.items():
        before = app.states.get(name)
        if name in standings or before is None or before.state != State.RELEASED:
            continue
        standing = after(app, name, CaughtUp(window.cut_ts), physical)
        if standing is not None:
            standings[name] = standing


def _goes_back(app: Application, window: Window) -> list[str]:
    """The tables of a source that this window brings to the cut. A table that a killed window wrote
    has no row of the cut yet.
    """
    if window.behind is None or window.cut_ts < app.cut_ts:
        return []
    return [name for name, state in app.states.of(State.RELEASED) if state.source == window.behind]


def _back_with(app: Application, window: Window, source: str) -> dict[str, Standing]:
    """New standings of a source's tables, when the source is no longer behind. Tables that lack
    rows still lack them.
    """
    standings = {}
    for name, state in app.states.of(State.RELEASED):
        standing = after(app, name, SourceBack(source)) if state.source == source else None
        if standing is not None:
            standings[name] = standing
    for name, event in rest_shards(app, window).items():
        if name in standings:
            standings[name] = step(standings[name], event, facts_of(app, name)).standing or standings[name]
    return standings


def _row(
    app: Application,
    window: Window,
    name: str,
    state: Standing | None,
    version: int | None,
    checked: TableState | None,
) -> dict[str, object] | None:
    """A row of control/cuts. None for a waiting table whose silver can't be read or isn't as
    published: its standing is recorded, and the published facts about its silver stay until it is
    checked again. A table that lacks rows loses its old rows anyway, so its present silver counts,
    unless another writer owns it.
    """
    waits = state is not None and state.state in (State.HELD, State.RELEASED)
    if version is None:
        silver = checked or app.positions.silver(name)
        if silver is None:
            if state is None or state.state is State.ACTIVE:
                raise app.positions.unread[name]  # the cut would say that it is complete without it
            return None
        error = met_unwritten(app, name, silver) if waits and state else None
        if error is not None and not (state and state.lacks_rows and not isinstance(error, SilverForeign)):
            return None
        version = silver.version
    return {
        "table": name,
        "delta_version": version,
        "applied_ts": state.applied_ts if waits and state else window.cut_ts,
        "state": state.state if state else State.ACTIVE,
        **silver_cells(app, name, version),
    }
