"""RENAME TABLE at a real server: the new name's silver is what the old one's was, and nothing is read again."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from spark_jobs.window.application import Application
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.cli.main import app as command_line
from tidegate.lake.figures import status
from tidegate.local.server import Server
from tidegate.standing.causes import Cause

pytestmark = [pytest.mark.server, pytest.mark.spark]


def held(app: Application) -> dict[str, str]:
    return {name: state.reason for name, state in app.states.items() if state.state == "held"}


def run(server: Server, database: str, script: str) -> None:
    """Statements, one a line, in one connection."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        for line in filter(None, map(str.strip, script.splitlines())):
            cursor.execute(line)
        connection.commit()


def released(road: Road, table: str) -> None:
    done = CliRunner().invoke(command_line, ["release", str(road.file), table])
    assert done.exit_code == 0, done.output


def test_chains_swaps_and_alters_in_one_window_follow_their_rows(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database, other = fresh_database(mariadb), fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"({database}|{other}).*")
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))
        CREATE TABLE b (code CHAR(3) PRIMARY KEY, n INT)
        CREATE TABLE bag (x INT)
        INSERT INTO a VALUES (1, 'a one'), (2, 'a two')
        INSERT INTO b VALUES ('x', 1), ('y', 2)
        INSERT INTO bag VALUES (7), (7), (8)
        RENAME TABLE a TO x, b TO a, x TO b
        INSERT INTO a VALUES ('z', 3)
        UPDATE b SET v = 'after' WHERE id = 2
        RENAME TABLE a TO {other}.c, b TO a
        DELETE FROM {other}.c WHERE code = 'x'
        CREATE TABLE b (k INT PRIMARY KEY)
        INSERT INTO b VALUES (10)
        ALTER TABLE a RENAME TO d, ADD COLUMN more INT DEFAULT 5
        INSERT INTO d VALUES (3, 'd', 6)
        RENAME TABLE bag TO sack
        DELETE FROM sack WHERE x = 7 LIMIT 1
    """)  # fmt: skip
    road.capture()
    app = road.apply(spark)
    assert not held(app)
    assert road.assert_equal() == {"b": 1, "d": 3, "sack": 2, "c": 2}


def test_a_name_that_is_not_kept_takes_nothing_and_gives_nothing(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.kept_.*")
    road.capture()
    run(mariadb, database, """
        CREATE TABLE kept_a (id INT PRIMARY KEY)
        CREATE TABLE other (id INT PRIMARY KEY)
        INSERT INTO kept_a VALUES (1)
        INSERT INTO other VALUES (2)
        RENAME TABLE kept_a TO gone, other TO kept_b
        INSERT INTO kept_b VALUES (3)
    """)  # fmt: skip
    road.capture()
    app = road.apply(spark)
    assert list(held(app)) == [f"{database}.kept_b"]
    assert "renamed from another table" in held(app)[f"{database}.kept_b"]
    assert app.states[f"{database}.kept_a"].state == "dropped"
    run(mariadb, database, "TRUNCATE TABLE kept_b\nINSERT INTO kept_b VALUES (4)")
    road.capture()
    app = road.apply(spark)
    assert not held(app)
    assert road.assert_equal() == {"kept_b": 1}


def test_a_held_table_holds_whom_it_is_renamed_with_and_both_go_on_together(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, """
        CREATE TABLE a (id INT PRIMARY KEY, d DATE)
        CREATE TABLE b (id INT PRIMARY KEY)
        CREATE TABLE c (id INT PRIMARY KEY)
        INSERT INTO b VALUES (1)
        SET sql_mode = ''
        INSERT INTO a VALUES (1, '0000-00-00')
        RENAME TABLE a TO x, b TO a, x TO b
        INSERT INTO a VALUES (2)
        INSERT INTO c VALUES (3)
    """)  # fmt: skip
    road.capture()
    pipeline = road.pipeline
    strict = road.pipeline.apply.model_copy(update={"zero_dates": "error"})
    road.pipeline = pipeline.model_copy(update={"apply": strict})
    app = road.apply(spark)
    assert set(held(app)) == {f"{database}.a", f"{database}.b"}
    assert f"{database}.a, which is held" in held(app)[f"{database}.b"]
    assert road.assert_equal()["c"] == 1

    road.pipeline = pipeline
    released(road, f"{database}.a")
    app = road.apply(spark)
    assert not held(app), "the partner goes on by itself"
    assert road.assert_equal() == {"a": 2, "b": 1, "c": 1}

    run(mariadb, database, """
        SET sql_mode = ''
        INSERT INTO b VALUES (6, '0000-00-00')
        RENAME TABLE b TO x
        RENAME TABLE x TO b
        INSERT INTO b VALUES (7, NULL)
    """)  # fmt: skip
    road.capture()
    road.pipeline = pipeline.model_copy(update={"apply": strict})
    app = road.apply(spark)
    assert set(held(app)) == {f"{database}.b", f"{database}.x"}
    run(mariadb, database, "TRUNCATE b\nINSERT INTO b VALUES (8, NULL)")
    road.capture()
    app = road.apply(spark)
    assert not held(app), "nothing that it lacks is anywhere any more"
    assert road.assert_equal() == {"a": 2, "b": 1, "c": 1}


def test_shards_join_and_leave_a_routed_table_with_their_own_rows_only(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    routes = f", routes: [{{match: '{database}.orders_\\d+', to: {database}.orders}}]"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=routes)
    road.capture()
    run(mariadb, database, """
        CREATE TABLE orders_1 (id INT PRIMARY KEY, v INT)
        CREATE TABLE orders_2 LIKE orders_1
        CREATE TABLE loose LIKE orders_1
        INSERT INTO orders_1 VALUES (1, 1), (2, 1)
        INSERT INTO orders_2 VALUES (1, 2), (2, 2), (3, 2)
        INSERT INTO loose VALUES (1, 9)
        RENAME TABLE orders_1 TO x, orders_2 TO orders_1, x TO orders_2
        DELETE FROM orders_1 WHERE id = 3
        RENAME TABLE orders_2 TO orders_7, loose TO orders_8
        INSERT INTO orders_8 VALUES (2, 9)
        RENAME TABLE orders_7 TO single
        INSERT INTO single VALUES (9, 9)
    """)  # fmt: skip
    road.capture()
    app = road.apply(spark)
    assert not held(app)
    assert road.assert_equal() == {"orders_1": 2, "orders_8": 2, "single": 3}


def test_a_swap_that_was_asked_for_is_approved_once_and_deleted_rows_stay_with_their_name(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    policies = f", soft_delete: ['{database}.t']}}\nddl: {{rename_table: ask}}\nmaintain: {{schedule: ''"
    road = Road(mariadb, tmp_path, include=f"{database}.t", extra=policies)
    road.capture()
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))
        INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')
        DELETE FROM t WHERE id = 2
        CREATE TABLE _t_new (id INT PRIMARY KEY, v VARCHAR(20), w INT NOT NULL DEFAULT 7)
        INSERT INTO _t_new (id, v) SELECT id, v FROM t WHERE id = 1
        RENAME TABLE t TO _t_old, _t_new TO t
        INSERT INTO t VALUES (4, 'four', 4)
    """)  # fmt: skip
    road.capture()
    app = road.apply(spark)
    assert set(held(app)) == {f"{database}.t", f"{database}._t_new"}
    asks = [name for name, state in app.states.items() if state.cause == Cause.DDL_ASKS]
    assert len(asks) == 1, "one statement is asked for once"
    ways_out = {table.table: table.way_out for table in status.table_statuses(road.lake)}
    assert f"says of {asks[0]}: this table continues with it" in sorted(ways_out.values())[1]
    released(road, asks[0])
    app = road.apply(spark)
    assert not held(app)
    assert road.assert_equal() == {"t": 2}
    silver = pl.read_delta(road.lake.uri(tables.silver_path(database, "t"))).sort("id")
    assert silver.select("id", "v", "w", tables.DELETED).rows() == [
        (1, "one", 7, False), (2, "two", None, True), (3, "three", None, True), (4, "four", 4, False),
    ]  # fmt: skip


def test_a_name_that_another_table_gets_while_its_own_waits_keeps_none_of_the_old_columns(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, """
        CREATE TABLE a (id INT PRIMARY KEY, only_a INT)
        CREATE TABLE b (id INT PRIMARY KEY, only_b INT)
        INSERT INTO a VALUES (1, 1)
        INSERT INTO b VALUES (2, 2)
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    run(mariadb, database, """
        SET SESSION binlog_format = 'STATEMENT'
        UPDATE a SET only_a = 7
        SET SESSION binlog_format = 'ROW'
        RENAME TABLE a TO x, b TO a, x TO b
    """)  # fmt: skip
    road.capture()
    app = road.apply(spark)
    assert {name.partition(".")[2] for name in held(app)} >= {"a", "b"}
    app = Reading(road, spark).run()
    assert not {f"{database}.a", f"{database}.b"} & held(app).keys()
    assert road.assert_equal() == {"a": 1, "b": 1}


@pytest.mark.parametrize(("swap", "first"), [
    (["RENAME TABLE t TO tmp, t2 TO t, tmp TO t2"], True),
    (["RENAME TABLE t TO tmp, t2 TO t, tmp TO t2"], False),
    (["RENAME TABLE t TO tmp", "RENAME TABLE t2 TO t", "RENAME TABLE tmp TO t2"], True),
])  # fmt: skip
def test_a_name_between_two_others_waits_for_no_statement_beside_its_swap(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    swap: list[str],
    first: bool,
) -> None:
    """first: the statement stands before the swap; else behind it."""
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, v INT)
        CREATE TABLE t2 (id INT PRIMARY KEY, v INT)
        INSERT INTO t VALUES (1, 1)
        INSERT INTO t2 VALUES (2, 2)
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    statement = ["SET SESSION binlog_format = 'STATEMENT'", "UPDATE t SET v = 7", "SET SESSION binlog_format = 'ROW'"]
    run(mariadb, database, "\n".join([*statement, *swap] if first else [*swap, *statement]))
    road.capture()
    app = road.apply(spark)
    assert ("tmp" in {name.partition(".")[2] for name in held(app)}) == (len(swap) > 1), "its rows go through it"
    assert not held(Reading(road, spark).run())


def test_names_that_no_table_has_wait_for_no_statement_beside_them(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, v INT)
        INSERT INTO t VALUES (1, 1)
        DROP TABLE IF EXISTS nothing
        RENAME TABLE IF EXISTS nobodys TO none
        SET SESSION binlog_format = 'STATEMENT'
        UPDATE t SET v = 7
    """)  # fmt: skip
    road.capture()
    assert {name.partition(".")[2] for name in held(road.apply(spark))} == {"t"}
    assert not held(Reading(road, spark).run())


def test_a_table_that_lacks_rows_and_went_in_the_same_window_waits_for_nothing(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", exclude: ['{database}.away']")
    road.capture()
    made = "(id INT PRIMARY KEY, f BIT DEFAULT 1)"
    run(mariadb, database, f"""
        CREATE TABLE dropped {made}
        CREATE TABLE renamed {made}
        CREATE TABLE there {made}
        INSERT INTO dropped VALUES (1, 1)
        INSERT INTO renamed VALUES (1, 1)
        INSERT INTO there VALUES (1, 1)
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    run(mariadb, database, """
        ALTER TABLE dropped MODIFY f VARCHAR(2)
        ALTER TABLE renamed MODIFY f VARCHAR(2)
        ALTER TABLE there MODIFY f VARCHAR(2)
        DROP TABLE dropped
        RENAME TABLE renamed TO away
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    app = road.apply(spark)
    assert {name.partition(".")[2] for name in held(app)} == {"there"}
    states = {name.partition(".")[2]: state.state for name, state in app.states.items()}
    assert {states["dropped"], states["renamed"]} == {"dropped"}
