"""Tables below one whose own foreign keys can't be followed: they go on until it may have changed unseen."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.standing.causes import Cause
from tidegate.tables import State

pytestmark = [pytest.mark.server, pytest.mark.spark]

SCHEMA = """
CREATE TABLE p (id INT PRIMARY KEY);
CREATE TABLE mid (id INT {key}, p INT, KEY (id), FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE);
CREATE TABLE leaf (id INT PRIMARY KEY, mid INT, FOREIGN KEY (mid) REFERENCES mid (id) ON DELETE CASCADE);
INSERT INTO p VALUES (1), (2), (3);
INSERT INTO mid VALUES (10, 1), (20, 2), (30, 3);
INSERT INTO leaf VALUES (100, 10), (200, 20), (300, 30)
"""


def _held(app: Application) -> dict[str, Cause | None]:
    return {name.partition(".")[2]: state.cause for name, state in app.states.items() if state.state is State.HELD}


def test_a_table_goes_on_below_one_without_a_key_until_that_changes_unseen(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()

    def run(*statements: str) -> dict[str, Cause | None]:
        for sql in statements:
            mariadb.query(sql, database=database)
        road.capture()
        app = road.apply(spark)
        road.assert_equal()
        return _held(app)

    waits = {"mid": Cause.UNLOGGED}
    assert run(*SCHEMA.format(key="").split(";")) == waits
    assert run("INSERT INTO mid VALUES (31, 3)", "INSERT INTO leaf VALUES (310, 31), (311, 31)") == waits
    assert run("DELETE FROM mid WHERE id = 31", "INSERT INTO p VALUES (4)", "DELETE FROM p WHERE id = 4") == {
        **waits,
        "leaf": Cause.NEEDS_ROWS,
    }, "row 4 may have had rows in mid, which nobody can tell"
    Reading(road, spark).run()
    assert run("UPDATE leaf SET mid = NULL WHERE id = 200", "DELETE FROM mid WHERE id = 30") == waits
    assert run("DELETE FROM p WHERE id = 1") == {**waits, "leaf": Cause.NEEDS_ROWS}
    Reading(road, spark).run(f"{database}.leaf")  # by itself it comes after a pause
    assert run("INSERT INTO mid VALUES (32, 3)", "INSERT INTO leaf VALUES (320, 32)") == waits


def test_a_table_waits_below_one_whose_parent_is_left_out(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", exclude: ['{database}.p']")
    road.capture()
    for sql in SCHEMA.format(key="PRIMARY KEY").split(";"):
        mariadb.query(sql, database=database)
    road.capture()
    road.apply(spark)
    assert _held(Reading(road, spark).run()) == {"mid": Cause.UNLOGGED}
    mariadb.query("DELETE FROM p WHERE id = 1", database=database)
    road.capture()
    assert _held(road.apply(spark)) == {"mid": Cause.UNLOGGED, "leaf": Cause.NEEDS_ROWS}
    road.assert_equal()
