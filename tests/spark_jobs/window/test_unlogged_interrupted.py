"""Waves whose marks aren't in the log, while something comes in between: a hold, a failover, a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.apply_steps.plan_window import next_catch_up
from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tests.support.event_log import Log
from tests.support.steps import publish, to_waves
from tests.support.wave_log import Waves, baseline
from tidegate.snapshot.chunks.spans import Span
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
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


def _chunks(window: Window) -> list[str]:
    entry = window.tables.get("shop.t")
    return [one.ref.chunk.low_token for one in entry.chunks] if entry else []


@pytest.mark.parametrize("killed", [False, True])
def test_a_table_held_for_its_columns_takes_the_waves_that_came_meanwhile_once_it_goes_on(
    killed: bool, tmp_path: Path
) -> None:
    log = Log(tmp_path)
    version = baseline(log, "shop", "t")
    app, _ = _window(log)
    waves = Waves(log, version)
    early = waves.read([1, 2], app.cut_ts + 1, app.cut_ts + 1, HALVES[0])
    app, window = _window(log)
    assert (_chunks(window), waves.answers()) == ([early], {early: "applied"})
    held_at = app.cut_ts
    app.record_states({"shop.t": Standing(State.HELD, "other columns", Cause.MISMATCH, held_at)})
    late = waves.read([10], app.cut_ts + 1, app.cut_ts + 1, HALVES[1])
    for _ in range(2):
        app, window = _window(log)
        assert (_chunks(window), app.states["shop.t"].state) == ([], State.HELD)
    assert waves.answers() == {early: "applied"}, "it waits for its table"
    assert waves.state == "running"
    app.record_states({"shop.t": Standing(State.RELEASED, applied_ts=held_at)})
    for turn in range(2 if killed else 1):  # killed before it was published: the same once more
        app = log.started()
        app.index.refresh(app.cut_ts)
        below = next_catch_up(app, 0)
        assert below is not None
        below, taken = to_waves(app, below)
        assert _chunks(below) == [late], turn
    publish(app, below, taken)
    assert waves.answers() == {early: "applied", late: "applied"}
    assert log.started().states["shop.t"].state is State.SNAPSHOT, "it lacks rows until its end mark"
    waves.end(app.cut_ts + 1)
    app, _ = _window(log)
    assert (waves.state, app.states["shop.t"].state) == ("done", State.ACTIVE)


def test_a_wave_that_was_read_and_captured_before_a_failover_is_taken_behind_it(tmp_path: Path) -> None:
    log = Log(tmp_path)
    version = baseline(log, "shop", "t")
    log.server_uuid = "A"
    app, _ = _window(log)
    waves = Waves(log, version)
    waves.server_uuid = "A"
    token = waves.read([1, 2], app.cut_ts + 1, app.cut_ts + 1, HALVES[0])
    log.server_uuid = "B"  # what it saw is at or below H, and all of that is in bronze: the new server has it, too
    app, window = _window(log)
    assert (_chunks(window), waves.answers()) == ([token], {token: "applied"})
    assert app.states["shop.t"].state is State.SNAPSHOT
    # Of a wave that is told to be of the one server, and was read from the other, nothing is known.
    other = waves.read([10], app.cut_ts + 1, app.cut_ts + 1, HALVES[1], marked_at="B")
    app, window = _window(log)
    assert (_chunks(window), waves.answers()[other]) == ([], "refused")
    waves.server_uuid = "B"
    last = waves.read([10], app.cut_ts + 1, app.cut_ts + 1, HALVES[1])
    app, _ = _window(log)
    assert waves.answers()[last] == "applied"
    waves.end(app.cut_ts + 1)
    app, _ = _window(log)
    assert (waves.state, app.states["shop.t"].state) == ("done", State.ACTIVE)


def test_an_end_mark_told_before_a_failover_ends_its_snapshot_behind_it(tmp_path: Path) -> None:
    log = Log(tmp_path)
    version = baseline(log, "shop", "t")
    log.server_uuid = "A"
    app, _ = _window(log)
    waves = Waves(log, version)
    waves.server_uuid = "A"
    waves.read([1, 2], app.cut_ts + 1, app.cut_ts + 1)
    app, _ = _window(log)
    waves.end(app.cut_ts + 1)
    log.server_uuid = "B"
    app, _ = _window(log)
    assert (waves.state, app.states["shop.t"].state) == ("done", State.ACTIVE)
