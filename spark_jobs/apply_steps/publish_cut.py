"""Publish cut_ts: from here on readers may use it.

In:  window.delta_versions, window.held, window.waves.
Out: control/table_states events for tables that were held; answers to waves in control/snapshots; control/cuts rows for
     what this window wrote.

States go first: a cut must never be seen that covers a table which is behind it and isn't named as held. Of tables that
catch up they go last: those are named already, and whoever is active has its row of the cut.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from spark_jobs.window.application import Application
from spark_jobs.window.following import source_reached
from spark_jobs.window.shapes import there_at
from spark_jobs.window.shards import rest_shards
from spark_jobs.window.snapshots import record_answers, resting, take_answers
from spark_jobs.window.window import TableWindow, Window
from tidegate import tables
from tidegate.failpoint import failpoint
from tidegate.lake.followed import Physical
from tidegate.lake.held import TableState
from tidegate.tables import State

_GOES_ON = (State.ACTIVE, State.SNAPSHOT, State.DROPPED)


def publish_cut(app: Application, window: Window) -> None:
    """Record held tables and what became of the others, then the cut; below it, how far a source is."""
    app.check_claim()
    found = dict(window.held)
    answers = take_answers(app, window)
    if window.main:
        _found_above(app, window, found)
    elif window.catches_up is not None:
        _caught_up(app, window, window.catches_up, found)
    for name, state in window.waves.states.items():
        found.setdefault(name, state)
    shards = _shards(app, window, found)
    found |= shards
    # Its row of the cut comes before a table that caught up is active: were it the other way, a kill in between would
    # leave readers of the cut with the version from before, until the table changes again.
    if window.catches_up is None:
        app.record_states(found)
    record_answers(app, answers)
    failpoint("apply_before_publish")
    named = dict.fromkeys((*window.delta_versions, *window.held, *window.waves.states, *shards))
    if window.catches_up is not None:
        named |= {name: None for name, state in found.items() if state.state != State.RELEASED}
    named |= dict.fromkeys(_goes_back(app, window))
    rows = [_row(app, window, name, found.get(name) or app.states.get(name)) for name in named]
    now = datetime.now(UTC)
    if window.main:
        cut = {"table": "", "delta_version": -1, "applied_ts": window.cut_ts, "state": State.ACTIVE}
        app.publish(
            [{**row, "cut_ts": window.cut_ts, "published_at": now} for row in (cut, *rows)],
            (app.cuts_app_id, window.cut_ts),
        )
        app.cut_ts = window.cut_ts
    elif rows:  # below the published cut only their own rows are new
        app.publish([{**row, "cut_ts": app.cut_ts, "published_at": now} for row in rows])
    if window.catches_up is not None:
        failpoint("apply_in_publish")
        app.record_caught_up(window, found)
    if window.behind is not None:
        source_reached(app, window.behind, window.cut_ts)
        if window.behind not in app.followed.behind:
            app.record_states(_back_with(app, window, window.behind))
    for source, known in app.prewrites.items():
        known.forget(app.followed.position(source, app.cut_ts))
    app.index.forget(app.cut_ts)
    app.forget_versions()
    failpoint("apply_after_publish")


def _shards(app: Application, window: Window, found: Mapping[str, TableState]) -> dict[str, TableState]:
    """What the rows that shards lack make of their tables, where nothing else keeps those from going on."""
    if window.behind is not None:
        return {}
    rest = rest_shards(app, window)
    states = {name: found.get(name) or app.states.get(name) for name in rest}
    return {name: rest[name] for name, state in states.items() if state is None or state.state in _GOES_ON}


def _found_above(app: Application, window: Window, found: dict[str, TableState]) -> None:
    """What dropped tables, and such as were released at the cut or above, are at the window's end."""
    names = set(window.tables)
    names |= {name for name, _ in app.states.of(State.RELEASED)}
    released = app.states.any(State.RELEASED)
    flows: Mapping[str, Collection[Physical]] = app.flows() if released else {}
    for name in sorted(names - found.keys()):
        state, entry = app.states.get(name), window.tables.get(name)
        # Of a shard that had no change here, too: its source may be the one that is behind.
        physical = flows.get(name) or (entry.physical if entry else ())
        if state is not None and state.state == State.RELEASED and not _goes_on(app, window, name, physical):
            continue
        dropped = _is_dropped(app, name, physical, window.cut_ts)
        if dropped and (state is None or state.state != State.DROPPED):
            found[name] = TableState(State.DROPPED, reason="dropped at the source", applied_ts=window.cut_ts)
        elif not dropped and state is not None and state.state in (State.DROPPED, State.RELEASED):
            found[name] = resting(app, name, TableState(State.ACTIVE, applied_ts=window.cut_ts))


def _goes_on(app: Application, window: Window, name: str, physical: Collection[Physical]) -> bool:
    """Whether a released table has all that is in silver of the others, and none of its sources is behind."""
    behind = any(source in app.followed.behind for source, _, _ in physical)
    at = app.mark(name)
    reached = window.low_ts <= at <= window.cut_ts and app.applied(name) <= window.cut_ts
    # One that a statement right behind this cut empties isn't whole here, and silver itself doesn't say so.
    return bool(physical) and not behind and reached and (at < window.cut_ts or app.written(name) >= at)


def _caught_up(
    app: Application, window: Window, released: Mapping[str, Collection[Physical]], found: dict[str, TableState]
) -> None:
    """A released table goes on with all others when it has reached what they have, and no more than that.

    Below that it stays released, as it was: what it is there, dropped perhaps, it needn't be for long.
    """
    for name, physical in released.items():
        state = app.states.get(name)
        if name in found or state is None or state.state != State.RELEASED:
            continue
        upto_ts = max(state.applied_ts, window.cut_ts)
        if upto_ts < app.cut_ts:
            found[name] = replace(state, applied_ts=upto_ts)
        elif app.applied(name) > app.cut_ts:
            found[name] = _waits_for_the_cut(app, name)
        elif _is_dropped(app, name, physical, upto_ts):
            found[name] = TableState(State.DROPPED, reason="dropped at the source", applied_ts=upto_ts)
        else:
            found[name] = resting(app, name, TableState(State.ACTIVE, applied_ts=upto_ts))


def _goes_back(app: Application, window: Window) -> list[str]:
    """The tables of the source that a window brings to the cut: one that a killed window wrote has no row yet."""
    if window.behind is None or window.cut_ts < app.cut_ts:
        return []
    return [name for name, state in app.states.of(State.RELEASED) if state.behind_source == window.behind]


def _waits_for_the_cut(app: Application, name: str) -> TableState:
    """A window that was killed before its cut wrote more than is published: no version of silver is the table at this
    cut. The main window whose cut gets there takes it in.
    """
    at = app.applied(name)
    reason = f"{name}: an apply that was killed wrote all up to {at}; it goes on once the cut is there"
    return TableState(State.RELEASED, reason, applied_ts=at)


def _back_with(app: Application, window: Window, source: str) -> dict[str, TableState]:
    """Its tables, once a source is no longer behind; such as lack rows still do."""
    flows = app.flows()
    found = {}
    for name, state in app.states.of(State.RELEASED):
        if state.behind_source == source and app.applied(name) > app.cut_ts:
            found[name] = _waits_for_the_cut(app, name)
        elif state.behind_source == source:
            dropped = _is_dropped(app, name, flows.get(name, ()), app.cut_ts)
            reason = "dropped at the source" if dropped else ""
            back = TableState(State.DROPPED if dropped else State.ACTIVE, reason, applied_ts=app.cut_ts)
            found[name] = back if dropped else resting(app, name, back)
    rest = rest_shards(app, window)
    return found | {name: state for name, state in rest.items() if name in found}


def _is_dropped(app: Application, name: str, physical: Collection[Physical], cut_ts: int) -> bool:
    """Whether no physical table is left, of a routed table also none without changes in this window."""
    database, table = app.pair(name)
    known = [one for one in physical if app.histories[one[0]].version_at(*one[1:], cut_ts) is not None]
    routed = bool(known) and app.logical(*known[0][1:])[2]
    entry = TableWindow(name, database, table, routed, cut_ts, set(physical))
    return bool(known) and not there_at(app, entry, cut_ts)


def _row(app: Application, window: Window, name: str, state: TableState | None) -> dict[str, object]:
    """A row of control/cuts."""
    waits = state is not None and state.state in (State.HELD, State.RELEASED)
    database, table = app.pair(name)
    version = window.delta_versions.get(name)
    if version is None:
        version = app.lake.log(tables.silver_path(database, table)).state().version
    return {
        "table": name,
        "delta_version": version,
        "applied_ts": state.applied_ts if waits and state else window.cut_ts,
        "state": state.state if state else State.ACTIVE,
    }
