"""Waves of tables that lack rows, where a killed window has replayed a statement above the window that takes them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.apply_steps.replay_schema_history import replay_schema_history
from spark_jobs.window.window import Taking
from tests.support.event_log import Log
from tests.support.steps import publish, to_ddl, to_waves
from tests.support.wave_log import Waves, baseline
from tidegate import tables
from tidegate.lake import control
from tidegate.tables import State

ABOVE = (
    "ALTER TABLE shop.t ADD KEY k (id)",
    "ALTER TABLE shop.t ADD COLUMN b INT",
    "TRUNCATE TABLE shop.t",
    "DROP TABLE shop.t",
    "RENAME TABLE shop.t TO shop.n",
)


class Killed(BaseException):
    """Ends a window like SIGKILL."""


def _killed(point: str) -> None:
    """Behind the versions, before the states that they call for."""
    if point == "apply_after_schema_history":
        raise Killed


def _versions(log: Log) -> list[int]:
    """Where versions of shop.t begin, in the order of their numbers."""
    rows = control.read(log.lake, tables.SCHEMA_HISTORY).sort_by([("version", "ascending")]).to_pylist()
    return [row["commit_ts"] for row in rows if (row["database"], row["table"]) == ("shop", "t")]


@pytest.mark.parametrize("statement", ABOVE)
def test_no_version_begins_below_one_that_is_known(
    statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next window may end lower: another source joins, or the pipeline file has smaller windows."""
    log = Log(tmp_path)
    version = baseline(log, "shop", "t")
    log.level()
    app, window = log.first_window()
    publish(app, *to_waves(app, window))
    assert app.states["shop.t"].state is State.HELD
    waves = Waves(log, version)
    token = waves.read([1, 2], app.cut_ts + 1, app.cut_ts + 1)
    log.send("one", "INSERT INTO x VALUES (1)")
    log.level()
    _, lower = log.first_window()
    log.send("one", statement)
    log.level()
    app, window = log.first_window()
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[replay_schema_history.__module__], "failpoint", _killed)
        with pytest.raises(Killed):
            to_ddl(app, window)
    app = log.started()
    app.index.refresh(0)
    publish(app, *to_waves(app, replace(lower, taking=Taking())))
    assert waves.answers() == {token: "refused"}
    app, window = log.first_window()
    publish(app, *to_waves(app, window))
    begins = _versions(log)
    assert begins == sorted(set(begins)), "a version begins below an earlier one"
    if statement.startswith("ALTER"):
        assert app.states["shop.t"].state is State.HELD
    else:
        assert app.states["shop.t"].state is (State.ACTIVE if "TRUNCATE" in statement else State.DROPPED)
    if "KEY" in statement:
        token = waves.read([1, 2], app.cut_ts + 1, app.cut_ts + 1)
        log.level()
        app, window = log.first_window()
        publish(app, *to_waves(app, window))
        assert waves.answers()[token] == "applied", "it is read again"
