"""Silver from before routes named its table, or from after: held by name, and each table is asked once."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.window.application import Application
from spark_jobs.window.standing.same_names import hold_other_kinds
from spark_jobs.window.window import TableWindow, Window
from tests.spark_jobs.apply_steps.test_publish_cut import application
from tidegate import tables
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import add
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.column import SilverColumn
from tidegate.merge.silver_sql import SilverShape
from tidegate.table_names import Physical


def _window(*names: str) -> Window:
    window = Window(10, 99, [])
    for table in names:
        physical = {Physical("s", "d", table)}
        window.taking.tables[f"d.{table}"] = TableWindow(
            f"d.{table}", "d", table, routed=False, after_ts=10, physical=physical
        )
    return window


def _silver(app: Application, table: str, *, routed: bool = False) -> DeltaLog:
    log = app.lake.log(tables.silver_path("d", table))
    create_silver(log, SilverShape((SilverColumn("id", "int"),), ("id",), routed=routed))
    file = {"path": "f", "partitionValues": {}, "size": 1, "modificationTime": 1}
    log.commit(log.state(), Change([add(file, data_change=True)], "WRITE"))
    return log


def test_a_table_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = application(tmp_path)
    _silver(app, "t")
    window = _window("t", "none")
    hold_other_kinds(app, window, dict.fromkeys(window.tables, ()))
    asked = []
    monkeypatch.setattr(app.positions, "silver", asked.append)
    hold_other_kinds(app, window, dict.fromkeys(window.tables, ()))
    assert asked == ["d.none"], "silver has no row of it yet"
    assert window.tables.keys() == {"d.t", "d.none"}


def test_silver_of_shards_whose_routes_were_taken_away_is_held(tmp_path: Path) -> None:
    app = application(tmp_path)
    _silver(app, "t", routed=True)
    window = _window("t")
    hold_other_kinds(app, window, dict.fromkeys(window.tables, ()))
    assert "no route names it any more" in window.held["d.t"].reason


def test_a_torn_log_keeps_nobody_else_from_its_window(tmp_path: Path) -> None:
    app = application(tmp_path)
    _silver(app, "t").forget()
    _silver(app, "other", routed=True)
    (tmp_path / tables.silver_path("d", "t") / "_delta_log" / f"{0:020}.json").write_text("{torn")
    window = _window("t", "other")
    hold_other_kinds(app, window, dict.fromkeys(window.tables, ()))
    assert window.held.keys() == {"d.other"}
