"""Rows that silver leaves out (tables.rows): it has those that a condition is true of, whatever happens to the table.

In:  real servers; conditions of a pipeline file, changes by which rows come under them and leave them, DDL, snapshots.
Out: silver equals the source's own SELECT with the same condition in SQL, written by hand; verify says so, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_columns_left_out import Held, assert_held
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.kit.spark import no_spark
from tests.support.readers import rows_of
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.local.server import Server
from tidegate.table_names import splits
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def made(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> tuple[Server, str, SparkSession, Path]:
    return mariadb, fresh_database(mariadb), spark, tmp_path


def filtering(server: Server, folder: Path, rules: dict[str, str], *, more: str = "", apply: str = "") -> Road:
    """A road that captures already. rules: conditions by table."""
    conditions = (f"{{match: '{name}', where: \"{where}\"}}" for name, where in rules.items())
    database = next(iter(rules)).split(".")[0]
    extra = f"{more}, rows: [{', '.join(conditions)}]"
    road = Road(server, folder, include=f"{database}.*", extra=extra, apply=apply)
    road.capture()
    return road


def silver_of(road: Road, name: str, columns: str = "id") -> list[tuple[Any, ...]]:
    return rows_of(road.lake.uri(tables.silver_path(*splits(name)[0])), columns)


def at_source(server: Server, name: str, where: str, columns: str = "id") -> list[tuple[Any, ...]]:
    return sorted(server.query(f"SELECT {columns} FROM {name} WHERE {where}"), key=repr)


BY_HAND = (
    "region COLLATE utf8mb4_bin IN ('EU', 'é') AND region NOT LIKE '% ' AND (n >= 10.5 OR n IS NULL) AND kind = 'a'"
    " AND at < '2024-01-01'"
)


def filled(server: Server, database: str, folder: Path, writer: str) -> Road:
    """Rows from before the log, and logged ones; with a key and without."""
    t, bag, read = f"{database}.t", f"{database}.bag", f"{database}.already"
    create = "(id INT PRIMARY KEY, region VARCHAR(9), n DECIMAL(9,2), at DATETIME, kind ENUM('a', 'B'))"
    run(server, database, f"CREATE TABLE already {create}\nINSERT INTO already VALUES (1, 'EU', 1, NULL, 'a')")
    run(
        server,
        database,
        "INSERT INTO already VALUES (2, 'US', 1, NULL, 'B'), (3, 'EU', -1, NULL, 'B'), (4, 'EU', 0, NULL, 'a')",
    )
    rules = {
        t: "region IN ('EU', 'é') AND (n >= 10.5 OR n IS NULL) AND NOT kind = 'B' AND at < '2024-01-01'",
        bag: "a <> 2",
        read: "n >= 0 and region = 'EU'",
    }
    road = filtering(server, folder, rules, apply=f", writer: {writer}")
    run(server, database, f"""
        CREATE TABLE t {create} CHARACTER SET utf8mb4
        INSERT INTO t VALUES (1, 'EU', 11, '2020-01-01', 'a'), (2, 'eu', 11, '2020-01-01', 'a')
        INSERT INTO t VALUES (3, 'EU', 10.49, '2020-01-01', 'a'), (4, 'é', NULL, '2020-01-01', 'a')
        INSERT INTO t VALUES (5, 'EU ', 11, '2020-01-01', 'a'), (6, NULL, 11, '2020-01-01', 'a')
        INSERT INTO t VALUES (7, 'EU', 11, '2024-01-01', 'a'), (8, 'EU', 11, '2020-01-01', 'B')
        INSERT INTO t VALUES (9, 'EU', 11, NULL, 'a')
        CREATE TABLE bag (a INT, b INT)
        INSERT INTO bag VALUES (1, 1), (1, 1), (2, 2), (NULL, 3)
    """)  # fmt: skip
    road.capture()
    return road


# Writers see decoded rows, and no server: each server and each writer once.
@pytest.mark.parametrize(("any_server", "writer"), [("mariadb", "merge"), ("mysql9", "auto")], indirect=["any_server"])
def test_rows_come_and_go_as_they_come_under_the_condition_and_leave_it(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    server, database = any_server, fresh_database(any_server)
    t, bag, read = f"{database}.t", f"{database}.bag", f"{database}.already"
    road = filled(server, database, tmp_path, writer)
    road.apply(spark)
    Reading(road, spark).run()

    def check(expected: list[tuple[Any, ...]]) -> None:
        road.capture()
        assert not held(road.apply(spark))
        road.assert_equal()
        assert silver_of(road, t) == at_source(server, t, BY_HAND) == expected
        assert silver_of(road, bag, "a, b") == at_source(server, bag, "a <> 2", "a, b")
        assert silver_of(road, read) == at_source(server, read, "n >= 0 AND region = 'EU'")

    check([(1,), (4,)])
    run(server, database, """
        UPDATE t SET region = 'US' WHERE id = 1
        UPDATE t SET region = 'EU' WHERE id = 2
        UPDATE t SET id = 30, n = 99 WHERE id = 3
        DELETE FROM t WHERE id IN (5, 6)
        UPDATE t SET id = 40, kind = 'B' WHERE id = 4
        UPDATE bag SET a = 2 WHERE b = 1 LIMIT 1
        UPDATE bag SET a = 4 WHERE b = 2
        DELETE FROM bag WHERE a IS NULL
        UPDATE already SET n = -n
    """)  # fmt: skip
    check([(2,), (30,)])
    run(server, database, """
        ALTER TABLE t ADD COLUMN more INT DEFAULT 5, MODIFY n DECIMAL(12,3), MODIFY region VARCHAR(20)
        ALTER TABLE t ADD INDEX (region)
        UPDATE t SET n = 11, kind = 'a', at = '2020-01-01'
        TRUNCATE TABLE bag
        INSERT INTO bag VALUES (2, 2), (3, 3)
    """)  # fmt: skip
    check([(2,), (30,), (40,), (7,), (8,), (9,)])
    by_twos = VerifyOptions(timeout_seconds=5, chunk_rows=2)  # some chunks have no row that silver has
    report = verify(road.pipeline, {"one": road.info}, road.lake.root, {}, by_twos)
    assert {result.outcome for result in report.tables} == {Outcome.EQUAL}


def test_shards_and_left_out_or_masked_columns_are_asked_by_their_plain_values(
    made: tuple[Server, str, SparkSession, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    mariadb, database, spark, folder = made
    monkeypatch.setenv("AIRFLOW_CONN_VEIL", '{"password": "a key that nobody guesses"}')
    more = (
        f", routes: [{{match: '{database}.s_\\d', to: {database}.s}}],"
        f" columns: [{{match: '{database}.s', exclude: [tenant]}}],"
        f" masks: [{{match: '{database}.s', columns: [mail], how: hmac, key_conn_id: veil}}]"
    )
    road = filtering(mariadb, folder, {f"{database}.s": "tenant = 7 AND mail <> 'x@y.z'"}, more=more)
    for table in ("s_1", "s_2"):
        run(mariadb, database, f"""
            CREATE TABLE {table} (id INT PRIMARY KEY, tenant INT, mail VARCHAR(40))
            INSERT INTO {table} VALUES (1, 7, 'a@b.c'), (2, 8, 'a@b.c'), (3, 7, 'x@y.z'), (4, 7, NULL)
        """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert silver_of(road, f"{database}.s", "_tg_table, id") == [("s_1", 1), ("s_2", 1)]
    run(mariadb, database, "UPDATE s_1 SET tenant = 7, mail = 'b' WHERE id = 2\nUPDATE s_2 SET tenant = 9 WHERE id = 1")
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert silver_of(road, f"{database}.s", "_tg_table, id") == [("s_1", 1), ("s_1", 2)]


def test_years_impossible_dates_and_odd_names_are_the_same_to_apply_and_to_the_server(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Servers take 24 for 2024 beside a YEAR. Names are those of the source, which silver spells in its own way."""
    server, database = any_server, fresh_database(any_server)
    rules = {
        f"{database}.y": "y < 50 OR y IN (24, 1999)",
        f"{database}.d": "at IS NULL OR NOT day >= '2024-01-01'",
        f"{database}.odd": "`a b` = 1 AND `c;``d` <> 2",
    }
    road = filtering(server, tmp_path, rules)
    run(server, database, """
        CREATE TABLE y (id INT PRIMARY KEY, y YEAR)
        INSERT INTO y VALUES (1, 2024), (2, 0), (3, 1999), (4, NULL)
        SET SESSION sql_mode = 'ALLOW_INVALID_DATES'
        CREATE TABLE d (id INT PRIMARY KEY, at DATETIME(3), day DATE)
        INSERT INTO d VALUES (1, '2024-02-31', '2024-01-01'), (2, '2024-02-28', '2023-02-31'), (3, '2024-01-01', 0)
        INSERT INTO d VALUES (4, '0000-00-00', '2025-01-01'), (5, '2024-01-01', '2023-12-31')
        CREATE TABLE odd (id INT PRIMARY KEY, `a b` INT, `c;``d` INT)
        INSERT INTO odd VALUES (1, 1, 1), (2, 2, 2), (3, 1, 2), (4, 1, NULL)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    expected = {"y": [(2,), (3,)], "d": [(1,), (4,), (5,)], "odd": [(1,)]}
    assert {table: silver_of(road, f"{database}.{table}") for table in expected} == expected
    report = verify(road.pipeline, {"one": road.info}, road.lake.root, {}, VerifyOptions(timeout_seconds=5))
    assert {result.outcome for result in report.tables} == {Outcome.EQUAL}


KEYED = "id INT PRIMARY KEY, a INT"


_HELD = (
    Held("b = 1", KEYED, "", "tables.rows names column b, which the table doesn't have"),
    Held("a = 'x'", KEYED, "", "compares column a of type int(11): 'x' is a text, and the column has numbers"),
    Held("a = 1", "id INT PRIMARY KEY, a DOUBLE", "", "columns of type double aren't compared"),
    Held("a = '10:00:00'", "id INT PRIMARY KEY, a TIME", "", "columns of type time aren't compared"),
    Held("a < '9'", "id INT PRIMARY KEY, a DECIMAL(50, 2)", "", "columns of type decimal text aren't compared"),
    Held(
        "a = 1",
        KEYED,
        "DROP COLUMN a, ADD COLUMN a INT DEFAULT 1",
        "values of column a change, which tables.rows asks",
    ),
    Held("a = 1", KEYED, "RENAME COLUMN a TO b", "names column a"),
    Held("a = 1", KEYED, "MODIFY a TINYINT", "values of column a change, which tables.rows asks"),
    Held("a = 1", f"{KEYED} REFERENCES {{t}} (id) ON DELETE CASCADE", "", "foreign keys change them below the log"),
)


def test_what_can_not_be_asked_holds_its_table_by_name(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, folder = made
    road = filtering(mariadb, folder, {f"{database}.t{number}": case.rule for number, case in enumerate(_HELD)})
    assert_held(road, spark, (mariadb, database), _HELD)


def test_verify_names_tables_whose_condition_can_not_be_asked_and_compares_the_others(
    made: tuple[Server, str, SparkSession, Path],
) -> None:
    """Apply holds them with their next change only. MySQL refuses a comparison with what is no date."""
    mariadb, database, spark, folder = made
    rules = {f"{database}.t": "a = 1", f"{database}.u": "a > 0", f"{database}.d": "d > '2024-01-01'"}
    road = filtering(mariadb, folder, rules)
    run(mariadb, database, "CREATE TABLE d (id INT PRIMARY KEY, d DATE)\nINSERT INTO d VALUES (1, '2024-01-02')")
    for table in ("t", "u"):
        run(mariadb, database, f"CREATE TABLE {table} ({KEYED})\nINSERT INTO {table} VALUES (1, 1)")
    road.capture()
    assert not held(road.apply(spark))
    road.file.write_text(road.text.replace("a = 1", "b = 1").replace("'2024-01-01'", "'soon'"))
    road.pipeline = config.load(road.file)
    report = verify(road.pipeline, {"one": road.info}, road.lake.root, {}, VerifyOptions(timeout_seconds=5))
    outcomes = {result.table: (result.outcome, result.reason) for result in report.tables}
    why = "tables.rows names column b, which the table doesn't have"
    no_date = "tables.rows compares column d of type date: 'soon' is no date: YYYY-MM-DD"
    assert outcomes == {
        f"{database}.t": (Outcome.DIFFERENT, why),
        f"{database}.u": (Outcome.EQUAL, ""),
        f"{database}.d": (Outcome.DIFFERENT, no_date),
    }


def test_a_rename_that_changes_values_of_the_condition_holds_the_table(
    made: tuple[Server, str, SparkSession, Path],
) -> None:
    """Rows that silver doesn't have may come under the condition so."""
    mariadb, database, spark, folder = made
    road = filtering(mariadb, folder, {f"{database}.*": "a = 1"})
    for table in ("t", "u"):
        run(mariadb, database, f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT)\nINSERT INTO {table} VALUES (1, 2)")
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, """
        ALTER TABLE t DROP COLUMN a, ADD COLUMN a INT DEFAULT 1, RENAME TO t_2
        ALTER TABLE u ADD COLUMN b INT DEFAULT 1, RENAME TO u_2
    """)  # fmt: skip
    road.capture()
    waiting = held(road.apply(spark))
    assert "values of column a change, which tables.rows asks" in waiting[f"{database}.t_2"]
    assert f"{database}.u_2" not in waiting


def test_a_table_that_an_online_change_replaces_keeps_its_condition(
    made: tuple[Server, str, SparkSession, Path],
) -> None:
    mariadb, database, spark, folder = made
    road = filtering(mariadb, folder, {f"{database}.t": "a > 1"})
    run(mariadb, database, "CREATE TABLE t (id INT PRIMARY KEY, a INT)\nINSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, """
        CREATE TABLE _t_gho LIKE t
        ALTER TABLE _t_gho ADD COLUMN b INT
        INSERT INTO _t_gho (id, a) SELECT id, a FROM t
        UPDATE _t_gho SET a = 1 WHERE id = 2
        RENAME TABLE t TO _t_del, _t_gho TO t
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert rows_of(road.lake.uri(tables.silver_path(database, "t")), "id, a") == [(3, 3)]


def test_a_changed_condition_holds_a_table_until_it_is_rebuilt_or_emptied(
    made: tuple[Server, str, SparkSession, Path],
) -> None:
    mariadb, database, spark, folder = made
    name = f"{database}.t"
    road = filtering(mariadb, folder, {name: "a > 1"}, more=f", soft_delete: ['{database}.d']")
    plain, number = road.text, 4
    run(mariadb, database, "CREATE TABLE t (id INT PRIMARY KEY, a INT)\nINSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    road.capture()
    assert not held(road.apply(spark))
    for text, left in (("a > 2", 3), ("", 1)):
        rule = f"{{match: '{name}', where: '{text}'}}" if text else ""
        begin = plain.index("rows: [")
        road.file.write_text(f"{plain[:begin]}rows: [{rule}]{plain[plain.index(']', begin) + 1 :]}")
        road.pipeline = config.load(road.file)
        number += 1
        run(mariadb, database, f"INSERT INTO t VALUES ({number}, {number})")
        road.capture()
        assert "and tables.rows says" in held(road.apply(spark))[name]
        plan = Rebuild.plan(road.pipeline, road.lake, name, "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
        swap(plan, BackgroundSession(no_spark), report=road.lines.append)
        assert not held(road.apply(spark))
        road.assert_equal()
        assert silver_of(road, name) == at_source(mariadb, name, f"a >= {left}")
    road.file.write_text(plain)
    road.pipeline = config.load(road.file)
    run(mariadb, database, "TRUNCATE TABLE t\nINSERT INTO t VALUES (1, 1), (2, 2)")
    road.capture()
    assert not held(road.apply(spark)), "no row of the other condition is left"
    run(mariadb, database, "INSERT INTO t VALUES (3, 3)")
    road.capture()
    assert not held(road.apply(spark))
    assert silver_of(road, name) == [(2,), (3,)]


def test_deleted_rows_that_stay_and_conditions_exclude_each_other(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, folder = made
    for more, why in (
        (f", soft_delete: ['{database}.t']", "soft_delete would keep them"),
        (f", changelog: ['{database}.t']", "its changelog"),
    ):
        (folder / more[2:6]).mkdir()
        road = filtering(mariadb, folder / more[2:6], {f"{database}.t": "a = 1"}, more=more)
        run(mariadb, database, "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, a INT)\nINSERT INTO t VALUES (1, 1)")
        road.capture()
        assert why in held(road.apply(spark))[f"{database}.t"]
