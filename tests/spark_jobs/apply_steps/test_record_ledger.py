"""The ledger of a window is recorded once, however often the window is tried."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.apply_steps import publish_cut as publish_cut_module
from spark_jobs.apply_steps.record_ledger import record_ledger
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from spark_jobs.window.window import Accounted, Window
from tests.kit.spark import no_spark
from tests.support.steps import publish
from tidegate import config, tables
from tidegate.lake import control
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.result import Ledger
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.table_names import Physical
from tidegate.tables import State


def application(folder: Path) -> Application:
    text = f"pipeline: shop\nlake: {{path: {folder}}}\nsources: {{s: {{conn_id: c, flavour: mysql}}}}\n"
    pipeline = config.parse(text + "tables: {include: ['d.*']}\n", where="shop.yaml")
    lake = LakeFiles(str(folder))
    app = Application(BackgroundSession(no_spark), pipeline, lake, BronzeIndex(lake))
    app.load()
    return app


def window(cut_ts: int, *, catches_up: bool = False) -> Window:
    return Window(0, cut_ts, [], catches_up={"d.t": {Physical("s", "d", "t")}} if catches_up else None)


def record(app: Application, of: Window, seq: int = 7) -> None:
    ledger = Ledger(100, decoded_bytes=60, ignored={"xid": 10, "other table": 20}, quarantined_bytes=10, rows=3)
    record_ledger(app, of, [Accounted("s", seq, ledger)])


def recorded(app: Application) -> list[dict[str, Any]]:
    return sorted(control.read(app.lake, tables.LEDGER).to_pylist(), key=lambda row: row["seq"])


def test_every_byte_of_a_segment_is_in_one_row_and_a_second_try_adds_none(tmp_path: Path) -> None:
    app = application(tmp_path)
    record(app, window(40))
    record(application(tmp_path), window(40))
    (row,) = recorded(app)
    assert row["decoded_bytes"] + row["ignored_bytes"] + row["quarantined_bytes"] == row["payload_bytes"] == 100
    assert (row["source"], row["seq"], row["cut_ts"], row["rows"]) == ("s", 7, 40, 3)
    assert row["ignored_by_rule"] == '{"other table": 20, "xid": 10}'
    record_ledger(app, Window(40, 50, []), [])  # nothing was decoded
    assert len(recorded(app)) == 1


def test_windows_below_the_cut_end_in_no_order_and_each_is_recorded(tmp_path: Path) -> None:
    app = application(tmp_path)
    record(app, window(40))
    record(app, window(30, catches_up=True), seq=8)
    app.record_states({"d.t": Standing(State.RELEASED, applied_ts=30)})
    record(app, window(30, catches_up=True), seq=8)  # tried again, after a person released something
    record(application(tmp_path), window(30, catches_up=True), seq=8)
    app.record_caught_up(window(30, catches_up=True), {"d.t": Standing(State.RELEASED, applied_ts=30)})
    record(app, window(20, catches_up=True), seq=9)
    assert [row["seq"] for row in recorded(app)] == [7, 8, 9]


@pytest.mark.parametrize("point", ["apply_before_publish", "apply_in_publish"])
def test_a_window_of_tables_that_catch_up_is_in_the_ledger_once_wherever_it_dies(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of its tables caught up, one was held: neither is recorded while the other isn't."""

    def dies(here: str) -> None:
        if here == point:
            raise KeyboardInterrupt

    released = Standing(State.RELEASED, applied_ts=10)
    application(tmp_path).record_states({"d.t": released, "d.held": released})
    for death in (True, False):
        app = application(tmp_path)
        app.histories["s"], app.positions.cut_ts = SchemaHistory("s"), 40
        assert {state.state for state in app.states.values()} == {State.RELEASED}
        below = window(40, catches_up=True)
        below.taking.held["d.held"] = Standing(State.HELD, "why", Cause.MISMATCH, 10)
        record(app, below)
        with monkeypatch.context() as patch:
            patch.setattr(publish_cut_module, "failpoint", dies if death else lambda _: None)
            with pytest.raises(KeyboardInterrupt) if death else nullcontext():
                publish(app, below)
    assert {name: state.state for name, state in app.states.items()} == {"d.t": State.ACTIVE, "d.held": State.HELD}
    assert len(recorded(app)) == 1
