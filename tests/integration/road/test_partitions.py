"""Partition DDL deletes and moves rows without row events: silver does the same, or the table is held and says why."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.local.server import Server
from tidegate.standing.causes import Cause

pytestmark = [pytest.mark.server, pytest.mark.spark]

TWO = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"


def run(server: Server, database: str, script: str) -> None:
    """Statements, one a paragraph of lines that end in a semicolon, in one connection."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        for statement in filter(None, map(str.strip, script.split(";\n"))):
            cursor.execute(statement)
        connection.commit()


def held(app: Application) -> dict[str, str]:
    return {name: state.reason for name, state in app.states.items() if state.state == "held"}


def test_dropped_and_truncated_partitions_take_their_rows_along(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    run(any_server, database, f"CREATE TABLE before_us (id INT PRIMARY KEY, v INT) {TWO}")
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    run(any_server, database, f"""
        CREATE TABLE shrunk (id INT PRIMARY KEY, v INT) {TWO};
        CREATE TABLE bag (id INT, v INT) {TWO};
        CREATE TABLE days (d DATE, id INT, PRIMARY KEY (id, d))
            PARTITION BY RANGE (TO_DAYS(d))
            (PARTITION p0 VALUES LESS THAN (TO_DAYS('2024-01-01')), PARTITION p1 VALUES LESS THAN MAXVALUE);
        CREATE TABLE names (s VARCHAR(5), id INT)
            PARTITION BY LIST COLUMNS (s) (PARTITION p0 VALUES IN ('a', 'B', NULL), PARTITION p1 VALUES IN ('c'));
        CREATE TABLE hashed (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 3;
        INSERT INTO before_us VALUES (1, 1), (11, 1);
        INSERT INTO shrunk VALUES (1, 1), (2, 2), (11, 1);
        INSERT INTO bag VALUES (NULL, 1), (1, 1), (1, 1), (11, 1), (11, 1);
        INSERT INTO days VALUES ('2023-12-31', 1), ('2024-01-01', 1), ('0001-01-01', 1);
        INSERT INTO names VALUES ('A', 1), ('b', 2), (NULL, 3), ('C', 4), ('c', 5);
        INSERT INTO hashed VALUES (-4), (-3), (0), (1), (4), (5);
        ALTER TABLE before_us TRUNCATE PARTITION p0;
        ALTER TABLE bag TRUNCATE PARTITION p0;
        INSERT INTO bag VALUES (1, 1);
        UPDATE shrunk SET v = 3 WHERE id = 11;
        ALTER TABLE shrunk DROP PARTITION p0;
        INSERT INTO shrunk VALUES (2, 7);
        ALTER TABLE shrunk ADD PARTITION (PARTITION p2 VALUES LESS THAN (30));
        INSERT INTO shrunk VALUES (25, 7);
        ALTER TABLE days DROP PARTITION p0;
        ALTER TABLE names TRUNCATE PARTITION p0;
        ALTER TABLE hashed TRUNCATE PARTITION p1;
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"before_us": 1, "shrunk": 3, "bag": 3, "days": 1, "names": 2, "hashed": 3}
    run(any_server, database, """
        ALTER TABLE shrunk REORGANIZE PARTITION p1, p2
            INTO (PARTITION q0 VALUES LESS THAN (5), PARTITION q1 VALUES LESS THAN (99));
        INSERT INTO shrunk VALUES (3, 1), (98, 1);
        ALTER TABLE shrunk TRUNCATE PARTITION q1;
        INSERT INTO shrunk VALUES (97, 1);
        ALTER TABLE bag DROP PARTITION p1;
        ALTER TABLE hashed TRUNCATE PARTITION ALL;
        INSERT INTO hashed VALUES (7);
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"before_us": 1, "shrunk": 3, "bag": 1, "days": 1, "names": 2, "hashed": 1}


def test_exchanged_partitions_change_places_with_the_table(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    run(any_server, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, v INT) {TWO};
        CREATE TABLE u (id INT PRIMARY KEY, v INT);
        CREATE TABLE bag (id INT, v INT) {TWO};
        CREATE TABLE sack (id INT, v INT);
        CREATE TABLE late (id INT PRIMARY KEY, v INT) {TWO};
        INSERT INTO t VALUES (1, 1), (2, 1), (11, 1);
        INSERT INTO u VALUES (3, 2);
        INSERT INTO bag VALUES (1, 1), (1, 1), (NULL, 1), (11, 1);
        INSERT INTO sack VALUES (5, 2), (5, 2), (5, 2);
        INSERT INTO late VALUES (1, 1);
        ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u;
        INSERT INTO t VALUES (1, 3);
        UPDATE u SET v = 4 WHERE id = 2;
        DELETE FROM t WHERE id = 3;
        ALTER TABLE bag EXCHANGE PARTITION p0 WITH TABLE sack;
        DELETE FROM sack WHERE id = 1 LIMIT 1;
        DELETE FROM bag WHERE id = 5 LIMIT 1;
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"t": 2, "u": 2, "bag": 3, "sack": 2, "late": 1}
    run(any_server, database, """
        CREATE TABLE archive LIKE late;
        ALTER TABLE archive REMOVE PARTITIONING;
        INSERT INTO late VALUES (2, 1), (12, 1);
        ALTER TABLE late EXCHANGE PARTITION p0 WITH TABLE archive WITH VALIDATION;
        TRUNCATE TABLE late;
        INSERT INTO late VALUES (13, 1);
        ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u;
        ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u;
        INSERT INTO u VALUES (9, 9);
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"t": 2, "u": 3, "bag": 3, "sack": 2, "late": 1, "archive": 2}


def test_a_partition_becomes_a_table_and_a_table_a_partition(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, v INT) {TWO};
        CREATE TABLE u (id INT PRIMARY KEY, v INT);
        INSERT INTO t VALUES (1, 1), (2, 1), (11, 1);
        INSERT INTO u VALUES (21, 2), (22, 2);
        ALTER TABLE t CONVERT PARTITION p0 TO TABLE split;
        UPDATE split SET v = 2 WHERE id = 1;
        INSERT INTO t VALUES (1, 5);
        ALTER TABLE t CONVERT TABLE u TO PARTITION p2 VALUES LESS THAN (30);
        UPDATE t SET v = 3 WHERE id = 21;
        DELETE FROM t WHERE id = 22;
    """)  # fmt: skip
    road.capture()
    app = road.apply(spark)
    assert not held(app)
    assert app.states[f"{database}.u"].state == "dropped"
    assert road.assert_equal() == {"t": 3, "split": 2}
    run(mariadb, database, """
        ALTER TABLE t CONVERT PARTITION p2 TO TABLE u;
        ALTER TABLE t TRUNCATE PARTITION p1;
        INSERT INTO split VALUES (7, 7);
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"t": 0, "split": 3, "u": 1}


def test_rows_that_come_without_validation_are_looked_at(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    run(any_server, database, f"""
        CREATE TABLE good (id INT PRIMARY KEY) {TWO};
        CREATE TABLE fits (id INT PRIMARY KEY);
        CREATE TABLE bad (id INT PRIMARY KEY) {TWO};
        CREATE TABLE stranger (id INT PRIMARY KEY);
        INSERT INTO fits VALUES (1);
        INSERT INTO stranger VALUES (15);
        ALTER TABLE good EXCHANGE PARTITION p0 WITH TABLE fits WITHOUT VALIDATION;
        ALTER TABLE bad EXCHANGE PARTITION p0 WITH TABLE stranger WITHOUT VALIDATION;
    """)  # fmt: skip
    road.capture()
    app = road.apply(spark)
    assert held(app).keys() == {f"{database}.bad", f"{database}.stranger"}
    assert "rows came that don't belong" in held(app)[f"{database}.bad"]
    assert road.assert_equal() == {"good": 1, "fits": 0}


def test_only_the_shard_s_own_rows_go_and_deleted_rows_stay_where_they_are_kept(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    extra = f", routes: [{{match: '{database}.o_\\d+', to: {database}.o}}], soft_delete: ['{database}.kept']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=extra)
    road.capture()
    run(mariadb, database, f"""
        CREATE TABLE o_1 (id INT PRIMARY KEY, v INT) {TWO};
        CREATE TABLE o_2 (id INT PRIMARY KEY, v INT) {TWO};
        CREATE TABLE given (id INT PRIMARY KEY, v INT);
        CREATE TABLE kept (id INT PRIMARY KEY, v INT) {TWO};
        INSERT INTO o_1 VALUES (1, 1), (11, 1);
        INSERT INTO o_2 VALUES (1, 2), (11, 2);
        INSERT INTO given VALUES (12, 3);
        INSERT INTO kept VALUES (1, 1), (2, 1), (11, 1);
        DELETE FROM kept WHERE id = 1;
        ALTER TABLE o_1 DROP PARTITION p0;
        ALTER TABLE o_2 EXCHANGE PARTITION p1 WITH TABLE given;
        ALTER TABLE kept TRUNCATE PARTITION p0;
        INSERT INTO kept VALUES (2, 5);
        INSERT INTO kept VALUES (3, 5);
        ALTER TABLE kept DROP PARTITION p1;
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"o_1": 1, "o_2": 2, "given": 1, "kept": 2}
    silver = pl.read_delta(road.lake.uri(tables.silver_path(database, "kept")))
    assert sorted(silver.select("id", "v", tables.DELETED).rows()) == [
        (1, 1, True), (2, 5, False), (3, 5, False), (11, 1, True),
    ]  # fmt: skip


def test_where_it_is_not_certain_which_rows_go_the_table_is_held(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, """
        SET sql_mode = '';
        CREATE TABLE zeros (d DATE)
            PARTITION BY RANGE (YEAR(d)) (PARTITION p0 VALUES LESS THAN (2020), PARTITION p1 VALUES LESS THAN MAXVALUE);
        CREATE TABLE by_key (id INT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 2;
        CREATE TABLE accents (s VARCHAR(5))
            PARTITION BY LIST COLUMNS (s) (PARTITION p0 VALUES IN ('e'), PARTITION p1 DEFAULT);
        INSERT INTO zeros VALUES ('2024-00-00'), ('2019-01-01');
        INSERT INTO by_key VALUES (1), (2);
        INSERT INTO accents VALUES ('é'), ('x');
        ALTER TABLE zeros DROP PARTITION p0;
        ALTER TABLE by_key TRUNCATE PARTITION p0;
        ALTER TABLE accents TRUNCATE PARTITION p0;
    """)  # fmt: skip
    road.capture()
    app = road.apply(spark)
    reasons = held(app)
    assert reasons.keys() == {f"{database}.{table}" for table in ("zeros", "by_key", "accents")}
    assert "isn't certain" in reasons[f"{database}.zeros"]
    assert "isn't certain" in reasons[f"{database}.accents"]
    assert "KEY isn't known here" in reasons[f"{database}.by_key"]
    assert app.states[f"{database}.by_key"].cause == Cause.NEEDS_ROWS
    assert all("PARTITION p0" in reason and app.states[name].lacks_rows for name, reason in reasons.items())
