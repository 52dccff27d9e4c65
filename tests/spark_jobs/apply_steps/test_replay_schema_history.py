"""A window's DDL becomes versions of its tables, once; what nobody can follow holds the tables that it may change."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tests.support.event_log import Log
from tests.support.steps import replayed, to_ddl
from tidegate import tables
from tidegate.lake import control
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State


def _replayed(log: Log) -> tuple[Application, Window]:
    """A fresh application's first window, up to this step."""
    app, window = log.first_window()
    window = to_ddl(app, window)
    return app, window


def _versions(log: Log) -> list[tuple[str, str]]:
    rows = control.read(log.lake, tables.SCHEMA_HISTORY).to_pylist()
    return sorted((f"{row['database']}.{row['table']}", row["kind"]) for row in rows if row["table"])


def test_a_statement_becomes_a_version_once_however_often_its_window_is_tried(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "ALTER TABLE shop.a ADD n INT")
    log.level()
    app, window = log.first_window()
    done = replayed(app, window)
    window = done.window
    made = [("crm.c", "create"), ("shop.a", "alter"), ("shop.a", "create"), ("shop.b", "create"), ("two.d", "create")]
    assert _versions(log) == made
    assert set(window.tables) == {"crm.c", "shop.a", "shop.b", "two.d"}
    assert {source for source, _ in done.ddl_times} == {"one", "two"}
    _, again = _replayed(log)  # no cut was published
    assert _versions(log) == made
    assert set(again.tables) == set(window.tables)


def test_a_rename_links_its_tables_and_who_holds_one_holds_both(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "RENAME TABLE shop.a TO shop.z")
    log.level()
    app, window = _replayed(log)
    ((giver, taker),) = [(move.giver, move.taker) for move in window.moves]
    assert (giver, taker) == ("shop.a", "shop.z")
    assert {giver, taker} <= set(window.tables)
    app.record_states(
        {"shop.a": Standing(State.HELD, "somebody said so", Cause.MISMATCH, app.positions.mark("shop.a"))}
    )
    _, again = _replayed(log)
    assert again.held["shop.z"].state is State.HELD
    assert (again.held["shop.z"].cause, again.held["shop.z"].partner) == (Cause.WAITS_WITH, "shop.a")
    assert "shop.z" not in again.tables


def test_a_statement_that_can_not_be_read_holds_the_table_that_its_segment_names_and_no_other(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.send("one", "ALTER TABLE shop.a ADD n INT", ("shop.a",), damage=1)
    log.level()
    _, window = _replayed(log)
    assert set(window.held) == {"shop.a"}
    assert "CRC-32C" in window.held["shop.a"].reason
    assert set(window.tables) == {"crm.c", "shop.b", "two.d"}
