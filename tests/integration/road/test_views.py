"""RENAME of a view at a real server: no table waits for it, and a table renamed by the same statement is followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.tables import State

pytestmark = pytest.mark.server


def run(server: Server, database: str, *statements: str) -> None:
    with server.connect(database) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            connection.commit()


def standings(app: Application) -> dict[str, str]:
    return {name.partition(".")[2]: str(state.state) for name, state in app.states.items()}


@pytest.mark.spark
def test_views_from_the_log_and_from_before_it_are_renamed_and_no_table_waits(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    run(any_server, database, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE VIEW older AS SELECT id FROM t")
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    run(
        any_server,
        database,
        "INSERT INTO t VALUES (1)",
        "CREATE VIEW v AS SELECT id FROM t",
        "RENAME TABLE older TO newer",
        "RENAME TABLE v TO w, t TO v, newer TO t",
        "INSERT INTO v VALUES (2)",
    )
    road.capture()
    app = road.apply(spark)
    assert standings(app) == {"t": State.DROPPED}
    assert road.assert_equal() == {"v": 2}
    run(
        any_server,
        database,
        "DROP VIEW t",
        "RENAME TABLE v TO t",
        "CREATE TABLE v (n INT PRIMARY KEY)",
        "INSERT INTO v VALUES (7)",
        "INSERT INTO t VALUES (3)",
    )
    road.capture()
    app = road.apply(spark)
    assert road.assert_equal() == {"t": 3, "v": 1}
    assert not [name for name, state in standings(app).items() if state == State.HELD]


def test_a_table_made_where_no_log_tells_is_no_view_when_it_is_renamed(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = Road.begun(any_server, tmp_path, database, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    run(
        any_server,
        database,
        "CREATE VIEW unseen AS SELECT 1",
        "DROP VIEW unseen",
        "SET SESSION sql_log_bin = 0",
        "CREATE TABLE unseen (id INT PRIMARY KEY)",
        "INSERT INTO unseen VALUES (5)",
        "SET SESSION sql_log_bin = 1",
        "RENAME TABLE t TO old, unseen TO t",
    )
    road.capture()
    app = road.apply()
    held = {name for name, state in standings(app).items() if state == State.HELD}
    assert held == {"t", "old"}


def test_a_view_by_the_name_of_a_held_table_ends_its_hold(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    run(mariadb, database, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, "DROP TABLE t", "CREATE VIEW t AS SELECT 1", "CREATE OR REPLACE VIEW t AS SELECT 2")
    road.capture()
    app = road.apply()
    assert standings(app) == {"t": State.DROPPED}
