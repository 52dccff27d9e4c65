"""A window with more changes of children than are held in memory ends earlier, instead of holding them.

In:  a real MariaDB; a backlog of several segments; room for few rows.
Out: the children are followed, by apply, by its window for a released table, and by a rebuild. What is too much for
     any window waits for rows.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.cascades import logged
from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.tables import State

pytestmark = [pytest.mark.server, pytest.mark.spark]

BACKLOG = 8


def _road(mariadb: Server, folder: Path, database: str) -> Road:
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
    return road


def _backlog(road: Road, mariadb: Server, database: str) -> None:
    for number in range(BACKLOG):
        run(mariadb, database, f"""
            INSERT INTO c SELECT seq, 40 + seq % 11, 'new' FROM seq_{1000 + 20 * number}_to_{1019 + 20 * number}
            DELETE FROM p WHERE id = {number + 1}
            UPDATE p SET id = {100 + number} WHERE id = {number + 20}
        """)  # fmt: skip
        road.capture()


def test_a_backlog_is_followed_in_smaller_windows(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = fresh_database(mariadb)
    road = _road(mariadb, tmp_path, database)
    begun = len(road.lines)
    _backlog(road, mariadb, database)
    monkeypatch.setattr(logged, "CASCADE_LOGGED_ROWS_MAX", 60)
    assert not held(road.apply(spark))
    road.assert_equal()
    assert sum(line.startswith("cut ") for line in road.lines[begun:]) > 1
    assert not any("followed in memory" in line for line in road.lines)
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.c", "", "")
    monkeypatch.setattr(logged, "CASCADE_LOGGED_ROWS_MAX", 110)  # the first rows came at once
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0


def test_a_transaction_that_is_too_much_for_any_window_holds_its_children(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = fresh_database(mariadb)
    road = _road(mariadb, tmp_path, database)
    _backlog(road, mariadb, database)
    monkeypatch.setattr(logged, "CASCADE_LOGGED_ROWS_MAX", 10)
    app = road.apply(spark)
    standing = app.states[f"{database}.c"]
    assert standing.state is State.HELD
    assert "changes more rows of its parents, or of its own, than are followed in memory" in standing.reason
    assert f"{database}.p" not in held(app)


def test_a_window_ends_before_a_ddl_that_changes_compared_columns(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = _road(mariadb, tmp_path, database)
    run(mariadb, database, """
        DELETE FROM p WHERE id = 1
        ALTER TABLE c DROP FOREIGN KEY c_ibfk_1
        ALTER TABLE p MODIFY id BIGINT
        ALTER TABLE c MODIFY p BIGINT, ADD FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE
        DELETE FROM p WHERE id = 2
        UPDATE p SET id = 5000000000 WHERE id = 3
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"p": 48, "c": 96}


@pytest.mark.parametrize("change", ["CHANGE a b INT", "DROP a, ADD b INT", "RENAME TO m"])
def test_a_table_made_for_the_larger_window_is_right_in_the_smaller_one(
    change: str,
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is made with the columns that it has at the larger window's end."""
    database = fresh_database(mariadb)
    road = _road(mariadb, tmp_path, database)
    run(mariadb, database, "CREATE TABLE n (id INT PRIMARY KEY, a INT NOT NULL)")
    run(mariadb, database, "INSERT INTO n VALUES (1, 10), (2, 20)")
    _backlog(road, mariadb, database)
    run(mariadb, database, f"ALTER TABLE n {change}")
    run(mariadb, database, f"UPDATE {'m' if 'TO m' in change else 'n'} SET id = id + 10 WHERE id = 1")
    road.capture()
    monkeypatch.setattr(logged, "CASCADE_LOGGED_ROWS_MAX", 60)
    assert not held(road.apply(spark))
    assert road.assert_equal()["m" if "TO m" in change else "n"] == 2
