"""What gets round masks (tables.masks): other columns and tables with the same values, types, reasons.

In:  a real server; rules of a pipeline file, rows whose values must not be seen.
Out: silver has masked values alone, or the table is held by a reason that shows none.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.road.test_columns_left_out import BRONZE, PLAIN
from tests.integration.road.test_masks import HMAC, coded, key, masking, silver_of
from tests.integration.road.test_renames import held, run
from tests.support.servers import FreshDatabase
from tests.support.stored import places_of
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

__all__ = ["key"]  # a fixture that these tests use by themselves


def test_a_shards_shadow_is_masked_as_its_shard(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """An online schema change fills a table beside the shard, by a name that no route has."""
    database = fresh_database(mariadb)
    more = f", routes: [{{match: '{database}.s_\\d', to: {database}.s}}]"
    road = masking(mariadb, tmp_path, database, f"{{match: '{database}.s', columns: [note], {HMAC}}}", more)
    run(mariadb, database, f"""
        CREATE TABLE s_1 (id INT PRIMARY KEY, note TEXT)
        INSERT INTO s_1 VALUES (1, '{PLAIN}')
        CREATE TABLE _s_1_gho (id INT PRIMARY KEY, note TEXT, a INT)
        INSERT INTO _s_1_gho VALUES (1, '{PLAIN}', 2)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert silver_of(road, f"{database}._s_1_gho", "id, note") == [(1, coded(PLAIN))]
    assert places_of(tmp_path / "lake", PLAIN) <= BRONZE


def test_a_constant_takes_the_place_of_values_of_any_type(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    rule = f"{{match: '{database}.t', columns: ['c.*'], how: constant, value: hidden}}"
    road = masking(mariadb, tmp_path, database, rule)
    types = ["BLOB", "VARBINARY(9)", "BIT(8)", "DECIMAL(9,2)", "DOUBLE", "DATE", "TIMESTAMP NULL", "TIME", "YEAR"]
    types += ["POINT", "JSON", "BIGINT UNSIGNED", "INET6", "SET('a','b')"]
    values = ["x'FF00'", "x'FFFE'", "3", "1.50", "1.5", "'2001-02-03'", "'2001-02-03'", "'01:02:03'", "2001"]
    values += ["POINT(1, 2)", "'{}'", "5", "'::1'", "'a,b'"]
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(types))
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, {columns})
        INSERT INTO t VALUES (1, {", ".join(values)})
        INSERT INTO t (id) VALUES (2)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    names = ", ".join(f"c{at}" for at in range(len(types)))
    rows = silver_of(road, f"{database}.t", f"id, {names}")
    assert rows == [(1, *["hidden"] * len(types)), (2, *[None] * len(types))]


def test_a_reason_does_not_show_the_value_that_it_is_about(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    rule = f"{{match: '{database}.t', columns: [born], how: null}}"
    road = masking(mariadb, tmp_path, database, rule, apply=", zero_dates: error")
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, born DATE)
        SET sql_mode = ''
        INSERT INTO t VALUES (1, '1971-05-00')
    """)  # fmt: skip
    road.capture()
    reason = held(road.apply(spark))[f"{database}.t"]
    assert "no calendar" in reason
    assert "1971" not in reason
    assert not any("1971" in line for line in road.lines)


def test_a_column_that_is_computed_from_a_masked_one_holds_its_table(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """But not where the pipeline file says that it may be seen. One that is computed from a masked one that is computed
    is held as well.
    """
    database = fresh_database(mariadb)
    rules = (
        f"{{match: '{database}.*', columns: [domain], how: plain}}, {{match: '{database}.*', columns: [mail], {HMAC}}}"
    )
    road = masking(mariadb, tmp_path, database, rules + f", {{match: '{database}.u', columns: [up], how: constant}}")
    up, domain = "up VARCHAR(80) AS (concat('x', `Mail`)) STORED", "domain VARCHAR(80) AS (substr(mail, 8))"
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(40), {up})
        CREATE TABLE u (id INT PRIMARY KEY, mail VARCHAR(40), {up}, low VARCHAR(80) AS (lower(up)))
        CREATE TABLE v (id INT PRIMARY KEY, mail VARCHAR(40), {domain}, n INT AS (length('mail')))
        INSERT INTO t (id, mail) VALUES (1, '{PLAIN}')
        INSERT INTO u (id, mail) VALUES (1, '{PLAIN}')
        INSERT INTO v (id, mail) VALUES (1, '{PLAIN}')
    """)  # fmt: skip
    road.capture()
    reasons = held(road.apply(spark))
    assert sorted(reasons) == [f"{database}.t", f"{database}.u"]
    assert "column up is computed from a column that tables.masks masks" in reasons[f"{database}.t"]
    assert "column low is computed from" in reasons[f"{database}.u"]
    assert silver_of(road, f"{database}.v", "id, mail, domain, n") == [(1, coded(PLAIN), "4711", 4)]
    assert places_of(tmp_path / "lake", PLAIN) <= BRONZE


def test_renames_under_a_rule_keep_the_masks(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = masking(mariadb, tmp_path, database, f"{{match: '{database}.t', columns: ['a\\d'], {HMAC}}}")
    run(mariadb, database, f"""
        CREATE TABLE t (id INT PRIMARY KEY, a1 VARCHAR(40), a2 VARCHAR(40))
        INSERT INTO t VALUES (1, '{PLAIN}', 'two')
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, """
        ALTER TABLE t RENAME COLUMN a1 TO a2, RENAME COLUMN a2 TO a1
        ALTER TABLE t RENAME COLUMN a2 TO a3
        UPDATE t SET id = 7
        INSERT INTO t VALUES (2, 'x', 'y')
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    rows = [(2, coded("x"), coded("y")), (7, coded(PLAIN), coded("two"))]
    assert silver_of(road, f"{database}.t", "id, a3, a1") == rows
    assert places_of(tmp_path / "lake", PLAIN) <= BRONZE


def test_renames_between_rules_that_act_alike_hold_nothing(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Of tables, and of columns. A rule that acts otherwise still holds both tables of a swap."""
    database = fresh_database(mariadb)
    rules = [f"{{match: '{database}.{name}', columns: [{column}], {HMAC}}}" for name in "tu" for column in "ab"]
    road = masking(
        mariadb, tmp_path, database, ", ".join([*rules, f"{{match: '{database}.v', columns: [a], how: null}}"])
    )
    for name in "tuv":
        run(mariadb, database, f"""
            CREATE TABLE {name} (id INT PRIMARY KEY, a VARCHAR(40))
            INSERT INTO {name} VALUES (1, '{PLAIN} {name}')
        """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, """
        ALTER TABLE t RENAME COLUMN a TO b
        RENAME TABLE t TO x, u TO t, x TO u
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert silver_of(road, f"{database}.t", "id, a") == [(1, coded(f"{PLAIN} u"))]
    assert silver_of(road, f"{database}.u", "id, b") == [(1, coded(f"{PLAIN} t"))]
    assert places_of(tmp_path / "lake", PLAIN) <= BRONZE
    run(mariadb, database, "RENAME TABLE t TO x, v TO t, x TO v")
    road.capture()
    assert held(road.apply(spark)).keys() == {f"{database}.t", f"{database}.v"}


def test_a_rename_that_alters_masks_what_it_adds_and_keeps_no_mask_of_a_former_value(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = masking(mariadb, tmp_path, database, f"{{match: '{database}.*', columns: ['a.?'], {HMAC}}}")
    for name in ("t", "u"):
        run(mariadb, database, f"CREATE TABLE {name} (id INT PRIMARY KEY, a VARCHAR(90) CHARACTER SET utf8mb4)")
        run(mariadb, database, f"INSERT INTO {name} VALUES (1, 'é')")
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, f"""
        SET sql_mode = ''
        ALTER TABLE t ADD COLUMN a2 VARCHAR(40) DEFAULT '{PLAIN}', RENAME TO t_2
        ALTER TABLE u MODIFY a VARCHAR(90) CHARACTER SET ascii, RENAME TO u_2
    """)  # fmt: skip
    assert mariadb.query(f"SELECT a FROM {database}.u_2") == [("?",)]
    road.capture()
    reasons = held(road.apply(spark))
    assert silver_of(road, f"{database}.t_2", "id, a, a2") == [(1, coded("é"), coded(PLAIN))]
    assert "the server rewrote rows" in reasons[f"{database}.u_2"]
    assert places_of(tmp_path / "lake", PLAIN) <= {*BRONZE, "control"}
