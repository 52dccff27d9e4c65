"""Tables that lack rows until their snapshot ends, while their source falls behind the cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.apply_steps.plan_window import next_catch_up
from spark_jobs.window.application import Application
from spark_jobs.window.life.following import leave_behind
from spark_jobs.window.made import TakenWaves
from spark_jobs.window.standing.standings import hold
from spark_jobs.window.window import Window
from tests.support.event_log import Log
from tests.support.steps import publish, to_waves
from tests.support.wave_log import Waves, baseline
from tidegate.snapshot.chunks.spans import Span
from tidegate.snapshot.progress.standing import KnownEvents
from tidegate.standing.causes import Cause
from tidegate.standing.events import Refused
from tidegate.standing.standing import Place, Standing
from tidegate.tables import State

HALVES = (Span(None, ("9",)), Span(("9",), None))


def _through(app: Application, window: Window) -> Window:
    window, taken = to_waves(app, window)
    publish(app, window, taken)
    return window


def _window(log: Log) -> tuple[Application, Window]:
    log.level()
    app, window = log.first_window()
    return app, _through(app, window)


def _below(log: Log) -> tuple[Application, Window]:
    app = log.started()
    app.index.refresh(app.cut_ts)
    window = next_catch_up(app, 0)
    assert window is not None
    return app, _through(app, window)


def _at_its_waves(log: Log) -> tuple[Application, Window, TakenWaves]:
    """The next window, before its tables are held or its cut is published."""
    log.level()
    app, window = log.first_window()
    return app, *to_waves(app, window)


def _whole(log: Log) -> tuple[Application, Waves]:
    """shop.t is whole, and a snapshot of it is asked for."""
    version = baseline(log, "shop", "t")
    app, _ = _window(log)
    first = Waves(log, version, "s1")
    first.read([1, 2], app.cut_ts + 1, app.cut_ts + 1)
    app, _ = _window(log)
    first.end(app.cut_ts + 1)
    app, _ = _window(log)
    assert (first.state, app.states["shop.t"].state) == ("done", State.ACTIVE)
    return app, Waves(log, version, "s2")


@pytest.mark.parametrize("routed", [False, True])
def test_a_table_that_lacks_rows_is_not_at_the_cut_when_its_source_is_not(routed: bool, tmp_path: Path) -> None:
    log = Log(tmp_path)
    if routed:
        routes = "tables: {routes: [{match: 'shop.t.*', to: shop.t}], "
        log.file.write_text(log.file.read_text().replace("tables: {", routes))
        log.send("one", "CREATE TABLE shop.t_2 (id INT NOT NULL PRIMARY KEY)")
    version = baseline(log, "shop", "t_1" if routed else "t")
    app, _ = _window(log)
    waves = Waves(log, version)
    early = waves.read([1, 2], app.cut_ts + 1, app.cut_ts + 1, HALVES[0])
    app, _ = _window(log)
    assert waves.answers() == {early: "applied"}
    assert app.states["shop.t"].state is State.SNAPSHOT
    leave_behind(app, "one", "its capture stands")
    at_ts = app.cut_ts
    app, _ = _window(log)
    state = app.states["shop.t"]
    assert (state.state, state.source, state.applied_ts) == (State.RELEASED, "one", at_ts)
    assert at_ts < app.cut_ts
    app, window = _below(log)
    assert (window.behind, window.cut_ts) == ("one", app.cut_ts)
    assert app.states["shop.t"].state is State.SNAPSHOT, "it has caught up, and still lacks rows"
    late = waves.read([10], app.cut_ts + 1, app.cut_ts + 1, HALVES[1])
    app, _ = _window(log)
    assert waves.answers() == {early: "applied", late: "applied"}
    waves.end(app.cut_ts + 1)
    app, _ = _window(log)
    assert waves.state == "done"
    assert app.states["shop.t"].state is State.ACTIVE


def test_a_table_that_catches_up_below_its_source_meets_the_waves_that_were_placed_before(tmp_path: Path) -> None:
    log = Log(tmp_path)
    version = baseline(log, "shop", "t")
    app, _ = _window(log)
    waves = Waves(log, version)
    low_ts = app.cut_ts
    token = waves.read([1, 2], low_ts + 1, low_ts + 1)
    app, _ = _window(log)
    app.record_states({"shop.t": Standing(State.RELEASED, "somebody lets it catch up", applied_ts=low_ts)})
    leave_behind(app, "one", "its capture stands")
    app = log.started()
    app.index.refresh(app.cut_ts)
    window = next_catch_up(app, 0)
    assert window is not None
    assert window.catches_up is not None
    window = _through(app, window)
    assert [one.ref.chunk.low_token for one in window.tables["shop.t"].chunks] == [token]


@pytest.mark.parametrize("behind", [False, True])
def test_a_table_that_is_held_for_rows_while_it_is_read_is_read_from_the_start(behind: bool, tmp_path: Path) -> None:
    log = Log(tmp_path)
    version = baseline(log, "shop", "t")
    app, _ = _window(log)
    waves = Waves(log, version)
    early = waves.read([1, 2], app.cut_ts + 1, app.cut_ts + 1, HALVES[0])
    app, _ = _window(log)
    if behind:  # by a window that sees no more than that
        app.positions.note({"shop.t": Standing(State.HELD, "noted", Cause.NEEDS_ROWS, app.cut_ts)})
        app.record_states({})
    else:
        log.keeps("'shop.*', 'crm.*', 'two.*'", "'shop.t'")
        _window(log)
        log.keeps("'shop.*', 'crm.*', 'two.*'")
        app = log.started()
    assert app.states["shop.t"].state is State.HELD
    waves.read([10], app.cut_ts + 1, app.cut_ts + 1, HALVES[1])
    app, _ = _window(log)
    assert waves.state == "failed"
    again = Waves(log, version, "s2")
    token = again.read([1, 2, 10], app.cut_ts + 1, app.cut_ts + 1)
    app, _ = _window(log)
    assert again.answers() == {token: "applied"}
    assert waves.answers() == {early: "applied"}, "nobody waits for what is over"


@pytest.mark.parametrize("lacks", [True, False])
def test_a_wave_that_ends_in_the_window_which_holds_its_table_is_read_again_where_the_table_begins_anew(
    lacks: bool, tmp_path: Path
) -> None:
    """Nothing of its snapshot is in silver yet, so that one goes on: its reader waits for an answer to this wave."""
    log = Log(tmp_path)
    app, again = _whole(log)
    early = again.read([1, 2, 3], app.cut_ts + 1, app.cut_ts + 1)
    app, window, taken = _at_its_waves(log)
    assert window.tables["shop.t"].chunks
    hold(app, window, "shop.t", Refused(Cause.NEEDS_ROWS if lacks else Cause.DDL_ASKS, "what came right behind it"))
    publish(app, window, taken)
    assert app.states["shop.t"].state is State.HELD
    assert again.answers() == ({early: "refused"} if lacks else {}), "one that goes on by itself takes it then"
    if lacks:
        late = again.read([1, 2, 3], app.cut_ts + 1, app.cut_ts + 1)
        app, _ = _window(log)
        assert again.answers() == {early: "refused", late: "applied"}
        assert app.states["shop.t"].state is State.SNAPSHOT


@pytest.mark.parametrize("later", [True, False])
def test_a_snapshot_of_a_held_table_is_over_once_the_source_empties_it(later: bool, tmp_path: Path) -> None:
    """The wave that came with what held it is answered by no window to come, and its reader waited for it."""
    log = Log(tmp_path)
    app, again = _whole(log)
    again.read([1, 2, 3], app.cut_ts + 1, app.cut_ts + 1)
    place = Place("one", "shop", "t", "b.000001", 5000, app.cut_ts + 2)
    if not later:
        log.send("one", "TRUNCATE TABLE shop.t")
    app, window, taken = _at_its_waves(log)
    hold(app, window, "shop.t", Refused(Cause.EVENT_NOT_READ, "a segment of before", place))
    publish(app, window, taken)
    assert (again.answers(), again.state) == ({}, "running")
    if later:
        log.send("one", "TRUNCATE TABLE shop.t")
        app, _ = _window(log)
        assert app.states["shop.t"].state is State.ACTIVE
    else:
        app = log.started()
        app.index.refresh(app.cut_ts)
        next_catch_up(app, 0)
        assert app.states["shop.t"].state is State.RELEASED
    assert again.state == "cancelled"
    (told,) = [one for one in KnownEvents.read(log.lake).tables.values() if one.snapshot == "s2"]
    assert "TRUNCATE TABLE shop.t" in told.reason
    assert not told.by_hand, "should it be held again, it is read by itself"


def test_waves_that_passed_a_held_table_are_read_again_once_it_waits_for_rows(tmp_path: Path) -> None:
    """Or once it can't catch up any more, as bronze no longer reaches back to where it stands."""
    log = Log(tmp_path)
    app, again = _whole(log)
    early = again.read([1, 2, 3], app.cut_ts + 1, app.cut_ts + 1)
    app, window, taken = _at_its_waves(log)
    hold(app, window, "shop.t", Refused(Cause.DDL_ASKS, "may it?"))
    publish(app, window, taken)
    _window(log)
    assert again.answers() == {}, "it may go on from where it stands, and takes the wave then"
    app.record_states({"shop.t": Standing(State.HELD, "bronze is gone", Cause.NEEDS_ROWS, app.cut_ts)})
    app, _ = _window(log)
    assert again.answers() == {early: "refused"}
    late = again.read([1, 2, 3], app.cut_ts + 1, app.cut_ts + 1)
    app, _ = _window(log)
    assert again.answers() == {early: "refused", late: "applied"}
    assert app.states["shop.t"].state is State.SNAPSHOT
