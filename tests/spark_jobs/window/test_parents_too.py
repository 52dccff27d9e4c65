"""A released table whose statements weren't followed: its own window replays them, and learns whose rows it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.apply_steps.plan_window import next_catch_up, plan_window
from spark_jobs.apply_steps.replay_schema_history import replay_schema_history
from tests.support.event_log import Log
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State

KEY = "FOREIGN KEY (id) REFERENCES shop.a (id) ON DELETE CASCADE"


@pytest.mark.parametrize("tries", [1, 2])
def test_a_key_made_in_a_window_below_the_cut_brings_its_parents_segments(tries: int, tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.level()
    app = log.apply()
    low_ts = app.cut_ts
    app.record_states({"shop.b": Standing(State.HELD, "why", Cause.DDL_NOT_READ, low_ts, unread=True)})
    log.send("one", f"ALTER TABLE shop.b ADD CONSTRAINT fk {KEY}", ("shop.b",))
    log.send("one", "ANALYZE TABLE a", ("shop.a",))  # in the place of row events: a segment that names the parent
    log.send("one", "ANALYZE TABLE c", ("crm.c",))
    log.level()
    app = log.apply()
    app.record_states({"shop.b": Standing(State.RELEASED, applied_ts=low_ts, unread=True)})
    app = log.started()
    app.index.refresh(app.cut_ts)
    window = next_catch_up(app, 0)
    assert window is not None
    for _ in range(tries):
        plan_window(app, window)
        replay_schema_history(app, window)
        named = [name for ref in window.refs for name in ref.tables]
        assert (named.count("shop.a"), named.count("crm.c")) == (1, 0)
        assert [ref.seq for ref in window.refs] == sorted({ref.seq for ref in window.refs})
        window = window.again()
