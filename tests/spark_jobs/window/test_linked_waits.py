"""Tables that a rename links, one of which lacks rows: who takes rows waits for them, and who gives them with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.apply_steps.plan_window import next_catch_up
from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tests.support.event_log import Log
from tests.support.steps import publish, to_waves
from tests.support.wave_log import Waves, baseline
from tidegate import config
from tidegate.remedy import Needs
from tidegate.snapshot.chunks.spans import Span
from tidegate.snapshot.progress.automatic import waiting
from tidegate.snapshot.progress.events import EventKind
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State


def _through(app: Application, window: Window) -> None:
    window, taken = to_waves(app, window)
    publish(app, window, taken)


def _main(log: Log) -> Application:
    log.level()
    app, window = log.first_window()
    _through(app, window)
    return app


def _filling(log: Log) -> tuple[Application, Waves]:
    """shop.t lacks rows: a snapshot has begun it."""
    version = baseline(log, "shop", "t")
    app = _main(log)
    waves = Waves(log, version)
    waves.read([1, 2], app.cut_ts + 1, app.cut_ts + 1, Span(None, ("9",)))
    app = _main(log)
    assert app.states["shop.t"].state is State.SNAPSHOT
    return app, waves


def test_who_gives_rows_to_a_table_whose_snapshot_is_lost_waits_with_it(tmp_path: Path) -> None:
    log = Log(tmp_path)
    _, waves = _filling(log)
    waves.say(EventKind.CANCELLED)
    log.send("one", "DROP TABLE shop.t", ("shop.t",))
    log.send("one", "RENAME TABLE shop.a TO shop.t", ("shop.a", "shop.t"))
    app = _main(log)
    assert {app.states[name].state for name in ("shop.a", "shop.t")} == {State.HELD}
    assert app.states["shop.t"].needs is Needs.ROWS
    # Emptied by its DROP it goes on, and takes the rows of the other as they were then.
    app = log.started()
    app.index.refresh(app.cut_ts)
    below = next_catch_up(app, 0)
    assert below is not None
    _through(app, below)
    assert [(move.giver, move.taker) for move in below.moves] == [("shop.a", "shop.t")]
    assert below.tables.keys() == {"shop.a", "shop.t"}


@pytest.mark.parametrize("cause", [Cause.MISMATCH, Cause.DDL_ASKS])
def test_who_takes_rows_of_a_table_that_lacks_some_lacks_them_whatever_it_waits_for(
    cause: Cause, tmp_path: Path
) -> None:
    log = Log(tmp_path)
    app, _ = _filling(log)
    app.record_states({"shop.a": Standing(State.HELD, "why", cause, app.cut_ts)})
    log.send("one", "RENAME TABLE shop.a TO shop.old, shop.t TO shop.a", ("shop.a", "shop.t", "shop.old"))
    standing = _main(log).states["shop.a"]
    needs = Needs.COLUMNS if cause is Cause.MISMATCH else Needs.ROWS  # whose columns are doubted needs them, too
    assert (standing.state, standing.needs) == (State.HELD, needs)
    assert standing.cause is (cause if cause is Cause.DDL_ASKS else Cause.NEEDS_ROWS), "a gate stays one"


@pytest.mark.parametrize("needs", [Needs.ROWS, Needs.COLUMNS, Needs.NOTHING])
def test_rows_that_a_table_lacked_when_it_was_renamed_are_read_under_its_new_name(needs: Needs, tmp_path: Path) -> None:
    """The old name is gone at the source: who waited with it for its snapshot waited for ever."""
    log = Log(tmp_path)
    log.level()
    app = log.apply()
    app.record_states(
        {"shop.a": Standing(State.HELD, "why", Cause.FAULT, app.cut_ts, fault="DecodeError", needs=needs)}
    )
    log.send("one", "RENAME TABLE shop.a TO shop.m", ("shop.a", "shop.m"))
    log.level()
    standing = log.apply().states["shop.m"]
    assert (standing.cause, standing.partner, standing.needs) == (Cause.WAITS_WITH, "shop.a", needs)
    assert set(waiting(config.load(log.file), log.lake)) == ({"shop.m"} if needs.rows else set())


def test_who_takes_rows_of_a_table_that_lacked_some_lacks_them_though_that_one_was_held_meanwhile(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path)
    app, _ = _filling(log)
    app.record_states({"shop.t": Standing(State.HELD, "why", Cause.MISMATCH, app.cut_ts)})
    log.send("one", "RENAME TABLE shop.t TO shop.u", ("shop.t", "shop.u"))
    assert _main(log).states["shop.u"].cause is Cause.NEEDS_ROWS
    assert set(waiting(config.load(log.file), log.lake)) == {"shop.u"}
