"""A released table whose statements weren't followed: its own window replays them, and learns whose rows it needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.apply_steps.plan_window import next_catch_up
from spark_jobs.window.application import Application
from spark_jobs.window.shape import parents_too
from spark_jobs.window.window import Window
from tests.support.event_log import Log
from tests.support.steps import to_ddl
from tidegate.lake.bronze.backlog import backlog
from tidegate.segments.window import SegmentRef
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import SegmentFlag, State

KEY = "FOREIGN KEY (id) REFERENCES shop.a (id) ON DELETE CASCADE"


def _below(folder: Path) -> tuple[Application, Window]:
    """The window of shop.b, whose key was made above what silver has of it."""
    log = Log(folder)
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
    return app, window


@pytest.mark.parametrize("tries", [1, 2])
def test_a_key_made_in_a_window_below_the_cut_brings_its_parents_segments(tries: int, tmp_path: Path) -> None:
    app, window = _below(tmp_path)
    for _ in range(tries):
        window = to_ddl(app, window)
        named = [name for ref in window.refs for name in ref.tables]
        assert (named.count("shop.a"), named.count("crm.c")) == (1, 0)
        assert [ref.seq for ref in window.refs] == sorted({ref.seq for ref in window.refs})
        window = window.again()


def test_what_the_source_lost_of_that_parent_is_wanting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, window = _below(tmp_path)

    def with_a_gap(*asked: Any) -> tuple[int, list[SegmentRef]]:
        upto_ts, refs = backlog(*asked)
        assert [ref.tables for ref in refs] == [("shop.a",)]
        return upto_ts, [replace(ref, flags=ref.flags | SegmentFlag.GAP) for ref in refs]

    monkeypatch.setattr(parents_too, "backlog", with_a_gap)
    window = to_ddl(app, window)
    assert window.held["shop.b"].cause is Cause.NEEDS_ROWS
    assert "may have changed shop.a, on which its rows hang" in window.held["shop.b"].reason
