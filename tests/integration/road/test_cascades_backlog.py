"""A backlog of tables below foreign keys is taken in windows whose changes fit in memory.

In:  a real MariaDB; a backlog of several segments; room for few rows.
Out: the children are followed, by apply and by a rebuild. What is too much for any window waits for rows.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from spark_jobs.cascades import logged
from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate import limits, tables
from tidegate.lake import control
from tidegate.local.server import Server
from tidegate.tables import State

pytestmark = [pytest.mark.server, pytest.mark.spark]

BACKLOG = 8


def _with_backlog(mariadb: Server, folder: Path, database: str) -> Road:
    road = Road.begun(
        mariadb,
        folder,
        database,
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, t TEXT,"
        " FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO p SELECT seq FROM seq_1_to_50",
        "INSERT INTO c SELECT seq, 1 + seq % 50, 'first' FROM seq_1_to_100",
    )
    road.capture()
    road.apply()
    for number in range(BACKLOG):
        first = 1000 + 20 * number
        run(mariadb, database, f"""
            INSERT INTO c SELECT seq, 40 + seq % 11, 'new' FROM seq_{first}_to_{first + 19}
            DELETE FROM p WHERE id = {number + 1}
            UPDATE p SET id = {100 + number} WHERE id = {number + 20}
        """)  # fmt: skip
        road.capture()
    return road


def _windows(road: Road) -> int:
    """How many have been applied."""
    return len(pc.unique(control.read(road.lake, tables.LEDGER)["cut_ts"]))


def _rows_max(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    for module in (limits, logged):
        monkeypatch.setattr(module, "CASCADE_LOGGED_ROWS_MAX", rows)


def test_a_backlog_is_followed_in_windows_that_fit(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = fresh_database(mariadb)
    road = _with_backlog(mariadb, tmp_path, database)
    before = _windows(road)
    _rows_max(monkeypatch, 60)
    assert not held(road.apply(spark))
    road.assert_equal()
    assert _windows(road) - before > 2
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.c", "", "")
    _rows_max(monkeypatch, 110)  # the first rows came at once
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0


def test_a_transaction_that_is_too_much_for_any_window_holds_its_children(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = fresh_database(mariadb)
    road = _with_backlog(mariadb, tmp_path, database)
    _rows_max(monkeypatch, 10)
    app = road.apply(spark)
    standing = app.states[f"{database}.c"]
    assert standing.state is State.HELD
    assert "changes more rows of its parents, or of its own, than are followed in memory" in standing.reason
    assert f"{database}.p" not in held(app)


def test_updates_count_twice_however_few_rows_have_them_all(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both images of each are held; silver's writer holds only the last one of a key."""
    database = fresh_database(mariadb)
    road = _with_backlog(mariadb, tmp_path, database)
    _rows_max(monkeypatch, 60)
    road.apply(spark)
    for number in range(2 * BACKLOG):
        run(mariadb, database, "\n".join(
            [f"UPDATE c SET t = '{number} {turn}' WHERE id IN (95, 96)" for turn in range(12)]
            + [f"DELETE FROM p WHERE id = {30 + number}"]
        ))  # fmt: skip
        road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()


def test_wide_rows_are_bounded_by_their_bytes(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = fresh_database(mariadb)
    road = _with_backlog(mariadb, tmp_path, database)
    road.apply(spark)
    for number in range(2 * BACKLOG):
        run(mariadb, database, f"""
            UPDATE c SET t = REPEAT('{number}', 5000) WHERE id IN (95, 96, 97, 98)
            DELETE FROM p WHERE id = {30 + number}
        """)  # fmt: skip
        road.capture()
    for module in (limits, logged):
        monkeypatch.setattr(module, "CASCADE_BYTES_MAX", 150_000)
        monkeypatch.setattr(module, "CASCADE_LOGGED_ROWS_MAX", 1500)
    assert not held(road.apply(spark))
    road.assert_equal()
