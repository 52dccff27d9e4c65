"""What a published cut says of a table that catches up: no Spark, only the control tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.window import TableWindow, Taking, Window
from tests.kit.spark import no_spark
from tests.support.steps import publish
from tidegate import config, tables
from tidegate.errors import Overtaken
from tidegate.lake import control
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.cuts.published import cut_at
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.as_published import said_of_all
from tidegate.schema.replay.history import SchemaHistory
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Place, Standing
from tidegate.table_names import Physical
from tidegate.tables import State


def application(folder: Path) -> Application:
    text = f"pipeline: shop\nlake: {{path: {folder}}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\n"
    pipeline = config.parse(text + "tables: {include: ['d.*']}\n", where="shop.yaml")
    lake = LakeFiles(str(folder))
    app = Application(BackgroundSession(no_spark), pipeline, lake, BronzeIndex(lake))
    app.histories["s"] = SchemaHistory("s")
    return app


def test_an_application_publishes_no_cut_once_another_one_has_started(tmp_path: Path) -> None:
    """It doesn't know of tables that joined or were released since: its cut would cover what it never wrote of them."""
    old = application(tmp_path)
    old.claim()
    publish(old, Window(0, 10, []))
    publish(old, Window(10, 20, []))
    new = application(tmp_path)
    new.claim()
    new.load()
    held = Window(20, 30, [], taking=Taking(held={"d.t": Standing(State.HELD, "why", Cause.MISMATCH, 20)}))
    with pytest.raises(Overtaken, match="another run of tidegate/shop/apply has started"):
        publish(old, held)
    with pytest.raises(Overtaken):
        old.publish([], (old.cuts_app_id, 30))  # it asked before the other one started
    new.refresh()
    assert (new.cut_ts, new.states) == (20, {})
    publish(new, Window(20, 40, []))
    assert control.application_version(new.lake, tables.CUTS, new.cuts_app_id) == 40


def test_an_application_that_was_overtaken_says_nothing_more_of_a_table(tmp_path: Path) -> None:
    """It may sleep between its cut and what it says then; the other one has held the table meanwhile."""
    old = application(tmp_path)
    old.claim()
    new = application(tmp_path)
    new.claim()
    new.load()
    new.record_states({"d.t": Standing(State.HELD, "why", Cause.MISMATCH, 20)})
    with pytest.raises(Overtaken):
        old.record_states({"d.t": Standing(State.ACTIVE, applied_ts=30)})
    new.refresh()
    assert new.states["d.t"].state is State.HELD


def test_a_released_table_stays_released_with_its_approval_until_a_window_reaches_the_cut(tmp_path: Path) -> None:
    app = application(tmp_path)
    place = Place("s", "d", "t", "b.000001", 300, 30, "ALTER TABLE t DROP a")
    released = Standing(State.RELEASED, applied_ts=10, place=place, approved_ts=30)
    app.positions.cut_ts = 90
    app.record_states({"d.t": released, "d.waits": Standing(State.HELD, "why", Cause.MISMATCH, 5, place)})
    for cut_ts, expected in ((50, State.RELEASED), (90, State.ACTIVE)):
        low_ts = app.positions.mark("d.t")
        window = Window(low_ts, cut_ts, [], catches_up={"d.t": {Physical("s", "d", "t")}})
        window.taking.tables["d.t"] = TableWindow("d.t", "d", "t", routed=False, after_ts=low_ts)
        publish(app, window)
        again = application(tmp_path)
        again.refresh()
        state = again.states["d.t"]
        assert (state.state, state.applied_ts) == (expected, cut_ts)
        assert (state.approved_ts, state.place) == ((30, place) if expected == State.RELEASED else (0, None))
        assert again.states["d.waits"] == Standing(State.HELD, "why", Cause.MISMATCH, 5, place)
        assert app.cut_ts == 90, "what is below the published cut publishes nothing new"


def test_of_two_rows_of_one_cut_the_later_one_counts_though_the_clock_went_back(tmp_path: Path) -> None:
    """A table whose silver was put back has a second row of the newest cut, and a third one when it has caught up."""
    old = application(tmp_path)
    old.claim()
    now = datetime.now(UTC)
    row = {"cut_ts": 10, "table": "d.t", "delta_version": 7, "applied_ts": 10, "state": State.ACTIVE}
    cut = {**row, "table": "", "delta_version": -1}
    old.publish([{**row, "published_at": now}, {**cut, "published_at": now}])
    new = application(tmp_path)
    new.claim()
    for hours, version in ((1, 3), (2, 5)):
        new.publish([{**row, "delta_version": version, "published_at": now - timedelta(hours=hours)}])
        assert said_of_all(new.lake)["d.t"].version == version
        assert cut_at(LakeFiles(str(tmp_path)), "shop").tables["d.t"].version == version
