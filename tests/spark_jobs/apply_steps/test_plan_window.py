"""Which tables a window takes: every one that a segment may touch, above all when it can't say which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.apply_steps.plan_window import plan_window
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.plan import NOTHING_PLANNED
from spark_jobs.window.positions import Positions
from spark_jobs.window.shape.decode_plan import plan_decode
from spark_jobs.window.window import Window
from tests.kit.spark import no_spark
from tidegate import config
from tidegate.config import Cascades
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.window import SegmentRef
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import SegmentFlag, State


def create(app: Application, commit_ts: int, table: str) -> None:
    statement = DdlStatement(
        sql=f"CREATE TABLE {table} (id INT PRIMARY KEY)", database="d", sql_mode=0, commit_ts=commit_ts,
        file="b.000001", pos=commit_ts, timestamp_us=0, charset="utf8mb4", server_version="9.7.0",
    )  # fmt: skip
    app.histories["s"].replay(statement)


def ref(*names: str) -> SegmentRef:
    return SegmentRef("s", 1, "b.000001", 4, 99, 5, 5, 5, names, SegmentFlag(0), "p", 0, 0)


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Application:
    text = (
        f"pipeline: shop\nlake: {{path: {tmp_path}}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\n"
        "tables: {include: ['d.*', '*.*'], exclude: ['d.secret']}\n"
    )
    lake = LakeFiles(str(tmp_path))
    made = Application(BackgroundSession(no_spark), config.parse(text, where="shop.yaml"), lake, BronzeIndex(lake))
    made.histories["s"] = SchemaHistory("s")
    for number, table in enumerate(("orders", "items", "secret"), 1):
        create(made, number, table)
    monkeypatch.setattr(Positions, "applied", lambda _self, _name: 0)
    return made


def planned(app: Application, *names: str) -> Window:
    window = Window(0, 9, [ref(*names)])
    plan_window(app, window)
    return window


def test_a_named_table_is_taken_and_no_other(app: Application) -> None:
    assert set(planned(app, "d.orders").tables) == {"d.orders"}


def test_a_segment_that_cannot_name_its_tables_takes_every_table_of_its_source(app: Application) -> None:
    assert set(planned(app, "*").tables) == {"d.orders", "d.items"}


def test_a_held_table_stays_out_and_its_rows_are_quarantined(app: Application) -> None:
    app.states["d.items"] = Standing(State.HELD, cause=Cause.FAULT)
    window = planned(app, "*")
    assert set(window.tables) == {"d.orders"}
    plan = plan_decode(app, window, (), dict.fromkeys(window.tables, NOTHING_PLANNED))
    assert plan.known["s"].held == {("d", "items")}


def test_a_name_that_holds_a_dot_is_read_in_every_way(app: Application) -> None:
    assert set(planned(app, "a.b.c").tables) == {"a.b.c"}
    assert planned(app, "a.b.c").tables["a.b.c"].physical == {("s", "a", "b.c"), ("s", "a.b", "c")}
    create(app, 9, "`x.y`.z")
    assert app.names.pair("x.y.z") == ("x.y", "z")
    window = planned(app, "x.y.z")
    assert (window.tables["x.y.z"].database, window.tables["x.y.z"].table) == ("x.y", "z"), "the one that there is"
    create(app, 10, "x.`y.z`")
    window = planned(app, "x.y.z")
    assert set(window.held) == {"x.y.z"}
    assert "`x`.`y.z`" in window.held["x.y.z"].reason
    assert "`x.y`.`z`" in window.held["x.y.z"].reason


def test_a_child_of_an_unlogged_cascade_is_held_or_goes_on_with_one_warning(
    app: Application, caplog: pytest.LogCaptureFixture
) -> None:
    sql = "CREATE TABLE child (p INT, CONSTRAINT fk FOREIGN KEY (p) REFERENCES orders (id) ON DELETE SET NULL)"
    app.histories["s"].replay(
        DdlStatement(sql, "d", 0, 4, "b.000001", 4, 0, "utf8mb4", server_version="11.4.5-MariaDB")
    )
    held = planned(app, "d.orders", "d.child").held["d.child"]
    assert held.cause == Cause.UNLOGGED
    where, key = "d.child at b.000001:4 of s", "fk to d.orders (ON DELETE SET NULL)"
    for words in (where, key, "can't be followed: it has no key", "ddl.unlogged_cascades: warn"):
        assert words in held.reason
    ddl = app.pipeline.ddl.model_copy(update={"unlogged_cascades": Cascades.WARN})
    app.pipeline = app.pipeline.model_copy(update={"ddl": ddl})
    for _ in range(2):
        window = planned(app, "d.orders", "d.child")
        assert (set(window.tables), window.held) == ({"d.orders", "d.child"}, {})
    assert [record.getMessage().count("fk to d.orders") for record in caplog.records] == [1]


def test_what_a_source_lost_of_a_parent_is_wanting_in_its_children(app: Application) -> None:
    for number, (child, parent) in enumerate((("child", "orders"), ("below", "child")), 4):
        key = f"CONSTRAINT fk FOREIGN KEY (p) REFERENCES {parent} (id) ON DELETE CASCADE"
        sql = f"CREATE TABLE {child} (id INT PRIMARY KEY, p INT, {key})"
        place = ("d", 0, number, "b.000001", number, 0, "utf8mb4")
        app.histories["s"].replay(DdlStatement(sql, *place, server_version="11.4.5-MariaDB"))
    window = Window(0, 9, [replace(ref("d.orders"), flags=SegmentFlag.GAP)])
    plan_window(app, window)
    assert {name: state.cause for name, state in window.held.items()} == dict.fromkeys(
        ("d.orders", "d.child", "d.below"), Cause.NEEDS_ROWS
    )
    assert "may have changed d.orders, on which its rows hang" in window.held["d.below"].reason


@pytest.mark.parametrize("by", ["rows", "a statement"])
def test_a_window_reaches_as_far_as_any_table_that_killed_windows_have_written(
    app: Application, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """It meets one of them on its way to another: a cut in between would show no version of it, or a later one."""
    written = {"d.orders": 20, "d.items": 40}
    monkeypatch.setattr(Positions, "reached", lambda _self, name: written[name])
    if by == "rows":
        monkeypatch.setattr(Positions, "applied", lambda _self, name: written[name])
    wider = {9: ["d.orders"], 20: ["d.orders", "d.items"], 40: ["d.orders", "d.items"]}
    refs = {upto: [replace(ref(*names), max_commit_ts=upto, resolved_ts=upto)] for upto, names in wider.items()}
    monkeypatch.setattr(BronzeIndex, "refs", property(lambda _self: {"s": refs[40]}))
    monkeypatch.setattr(
        "spark_jobs.apply_steps.plan_window.window_between", lambda _app, low_ts, upto: Window(low_ts, upto, refs[upto])
    )
    window = Window(0, 9, refs[9])
    window = plan_window(app, window).window
    assert window.cut_ts == 40
    assert set(window.tables) == {"d.orders", "d.items"}
