"""Which rows of waves a window takes, where a quiet server gives several waves one low mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.window.application import Application
from spark_jobs.window.made import TakenWaves
from spark_jobs.window.window import Window
from tests.support.event_log import Log
from tests.support.steps import publish, to_waves
from tests.support.wave_log import Waves, baseline
from tidegate.commit_ts import compose
from tidegate.snapshot.chunks.spans import Span
from tidegate.tables import State

L = compose(1_000_000)


def _taken(window: Window) -> list[str]:
    return [one.ref.chunk.low_token for one in window.tables["shop.t"].chunks]


def _window(log: Log) -> tuple[Application, Window, TakenWaves]:
    app, window = log.first_window()
    return app, *to_waves(app, window)


def test_waves_of_one_low_mark_in_one_window_are_all_taken_however_often_it_is_tried(tmp_path: Path) -> None:
    log = Log(tmp_path)
    waves = Waves(log, baseline(log, "shop", "t"))
    spans = (Span(None, ("3",)), Span(("3",), ("6",)), Span(("6",), None))
    tokens = [waves.read([3 * at + 1, 3 * at + 2], L, L + at, span) for at, span in enumerate(spans)]
    log.level()
    _, first, _ = _window(log)
    assert _taken(first) == tokens
    app, again, taken = _window(log)  # nothing was published; a rebuild finds the same version there
    assert _taken(again) == tokens
    assert again.tables["shop.t"].after_ts == L - 1
    publish(app, again, taken)
    assert waves.answers() == dict.fromkeys(tokens, "applied")
    assert app.states["shop.t"].state is State.SNAPSHOT


def test_a_table_without_a_key_that_is_read_twice_at_one_place_is_taken_once(tmp_path: Path) -> None:
    log = Log(tmp_path)
    waves = Waves(log, baseline(log, "shop", "t", key=False))
    first = waves.read([1, 2, 2], L, L, dies=True)
    log.level()
    app, window, taken = _window(log)
    assert _taken(window) == [first]
    publish(app, window, taken)
    second = waves.read([1, 2, 2], L, L)
    log.level()
    app, window, taken = _window(log)
    assert "shop.t" not in window.tables or not _taken(window), "silver has these rows"
    publish(app, window, taken)
    assert waves.answers() == {first: "applied", second: "refused"}


def test_a_table_whose_end_mark_lies_below_what_a_killed_apply_wrote_waits_for_that_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path)
    waves = Waves(log, baseline(log, "shop", "t"))
    waves.read([1, 2], L, L)
    log.level()
    app, window, taken = _window(log)
    publish(app, window, taken)
    waves.end(app.cut_ts + 1)
    log.level()
    app, window, taken = _window(log)
    ahead = window.cut_ts + 7
    monkeypatch.setattr(type(app.positions), "written", lambda _self, name: ahead if name == "shop.t" else 0)
    publish(app, window, taken)
    assert waves.state == "done"
    standing = log.started().states["shop.t"]
    assert (standing.state, standing.applied_ts) == (State.RELEASED, ahead)
