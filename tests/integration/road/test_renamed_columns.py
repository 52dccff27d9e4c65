"""Columns that silver has under other names (tables.renames): keys, too.

In:  real servers; rules of a pipeline file, rows, DDL, snapshots, both writers, all modes, another hand in silver.
Out: silver has the source's rows under the new names, by the server's own SELECT; two columns of one name hold their
     table; a changed rule is applied by a rebuild.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_columns_left_out import Held, assert_held, fields, rules_for
from tests.integration.road.test_masks import silver_of
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.kit.spark import no_spark
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.lake.silver.changed_names import changed_names
from tidegate.local.server import Server
from tidegate.table_names import splits
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark]

COLUMNS = "id INT, code VARCHAR(9), a INT, b INT, `Order ID` INT, PRIMARY KEY (id, code)"
RULE = "columns: {ID: key_id, a: b, b: a, 'Order ID': order_id}"


@pytest.fixture
def made(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> tuple[Server, str, SparkSession, Path]:
    return mariadb, fresh_database(mariadb), spark, tmp_path


def renaming(server: Server, folder: Path, database: str, rules: str, more: str = "", apply: str = "") -> Road:
    """A road that captures already."""
    road = Road(server, folder, include=f"{database}.*", extra=f"{more}, renames: [{rules}]", apply=apply)
    road.capture()
    return road


def check(road: Road, server: Server, name: str, live: str = "true") -> None:
    """Silver's rows are the server's, and swapped columns are swapped."""
    rows = silver_of(road, name, f"key_id, code, b, a, order_id, CAST({live} AS INT) AS live")
    there = sorted(server.query(f"SELECT id, code, a, b, `Order ID` FROM {name}"), key=repr)
    assert [row[:-1] for row in rows if row[-1]] == there
    assert there


@pytest.mark.parametrize(("any_server", "writer"), [("mariadb", "merge"), ("mysql9", "auto")], indirect=["any_server"])
def test_silver_has_the_rows_under_other_names(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    server, database = any_server, fresh_database(any_server)
    run(server, database, f"CREATE TABLE u ({COLUMNS})\nINSERT INTO u VALUES (1, 'x', 1, 2, 3), (2, 'y', NULL, 5, 6)")
    more = (
        f", soft_delete: ['{database}.d'], history: ['{database}.h'], changelog: ['{database}.t']"
        f", rows: [{{match: '{database}.t', where: 'a IS NULL OR a < 1000'}}]"
        f", computed: [{{match: '{database}.t', name: total, type: bigint, expression: 'a + order_id'}}]"
        f", clustering: [{{match: '{database}.t', columns: [order_id]}}]"
        f", comments: [{{match: '{database}.t', columns: {{key_id: ours}}}}]"
    ).replace(f", changelog: ['{database}.t']", f", changelog: ['{database}.d']")
    rules = f"{{match: '{database}.*', {RULE}}}"
    road = renaming(server, tmp_path, database, rules, more, f", writer: {writer}")
    run(server, database, "\n".join(f"CREATE TABLE {name} ({COLUMNS})" for name in "tdh"))
    for name in "tdh":
        run(server, database, f"INSERT INTO {name} VALUES (1, 'x', 1, 2, 3), (2, 'y', NULL, 5, 6), (3, 'z', 7, 8, 9)")
    road.capture()
    road.apply(spark)
    Reading(road, spark).run()
    live = {"d": "NOT _tg_deleted", "h": "_tg_is_current"}

    def check_all(names: str) -> None:
        road.capture()
        assert not held(road.apply(spark))
        assert road.assert_equal().keys() == set(names)
        for name in names:
            check(road, server, f"{database}.{name}", live.get(name, "true"))

    check_all("utdh")
    for name in "utdh":
        run(server, database, f"""
            UPDATE {name} SET a = 10, `Order ID` = 11 WHERE id = 1
            DELETE FROM {name} WHERE id = 2
            UPDATE {name} SET id = 4 WHERE id = 3
            ALTER TABLE {name} ADD COLUMN extra INT DEFAULT 5 FIRST, MODIFY id BIGINT
            UPDATE {name} SET extra = 6, b = 77
            INSERT INTO {name} VALUES (9, 9, 'n', 3, 2, 1)
            ALTER TABLE {name} DROP COLUMN extra
        """)  # fmt: skip
    check_all("utdh")
    silver = silver_of(road, f"{database}.t", "total, a, order_id")
    assert [total for total, _, _ in silver] == [a + order for _, a, order in silver]
    assert (2, "y", None) in silver_of(road, f"{database}.d", "key_id, code, b")
    run(server, database, "ALTER TABLE u MODIFY a BIGINT, RENAME TO r\nINSERT INTO r VALUES (30, 'q', 1, 1, 1)")
    check_all("rtdh")
    run(server, database, "TRUNCATE TABLE t\nINSERT INTO t VALUES (5, 'n', 1, 2, 3)")
    check_all("rtdh")


def test_ddl_moves_columns_into_a_rule_and_out_of_it(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = renaming(mariadb, tmp_path, database, f"{{match: '{database}.t', columns: {{a: x, c: x, k: key_k}}}}")
    run(mariadb, database, "CREATE TABLE t (k INT PRIMARY KEY, a INT)\nINSERT INTO t VALUES (1, 10), (2, 20)")

    def after(script: str) -> list[str]:
        run(mariadb, database, script)
        road.capture()
        assert not held(road.apply(spark))
        road.assert_equal()
        return [name for name in fields(road, database, "t") if not name.startswith("_tg_")]

    assert after("INSERT INTO t VALUES (3, 30)") == ["key_k", "x"]
    assert after("ALTER TABLE t RENAME COLUMN a TO c\nUPDATE t SET c = 11 WHERE k = 1") == ["key_k", "x"]
    assert after("ALTER TABLE t RENAME COLUMN c TO d\nINSERT INTO t VALUES (4, 40)") == ["key_k", "d"]
    assert after("ALTER TABLE t ADD COLUMN a INT DEFAULT 5\nUPDATE t SET a = 6 WHERE k = 2") == ["key_k", "d", "x"]
    assert after("ALTER TABLE t DROP COLUMN a, RENAME COLUMN k TO id\nDELETE FROM t WHERE id = 3") == ["id", "d"]
    back = "ALTER TABLE t RENAME COLUMN id TO k, RENAME COLUMN d TO a"
    assert after(f"{back}\nINSERT INTO t VALUES (9, 9)") == ["key_k", "x"]
    assert silver_of(road, f"{database}.t", "key_k, x") == [(1, 11), (2, 20), (4, 40), (9, 9)]


def test_shards_and_rows_below_foreign_keys_are_renamed(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    rules = (
        f"{{match: '{database}.p', columns: {{id: parent_id}}}},"
        f" {{match: '{database}.c', columns: {{id: child_id, p_id: parent}}}},"
        f" {{match: '{database}.s', columns: {{id: shard_id, a: value}}}}"
    )
    road = renaming(mariadb, tmp_path, database, rules, f", routes: [{{match: '{database}.s_\\d', to: {database}.s}}]")
    run(mariadb, database, """
        CREATE TABLE p (id INT PRIMARY KEY)
        CREATE TABLE c (id INT PRIMARY KEY, p_id INT REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE)
        CREATE TABLE s_1 (id INT PRIMARY KEY, a INT)
        CREATE TABLE s_2 (a INT, id INT PRIMARY KEY)
        INSERT INTO p VALUES (1), (2), (3)
        INSERT INTO c VALUES (1, 1), (2, 2)
        INSERT INTO s_1 VALUES (1, 1)
        INSERT INTO s_2 VALUES (20, 1)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, """
        DELETE FROM p WHERE id = 1
        INSERT INTO c VALUES (3, 3)
        DELETE FROM p WHERE id = 3
        UPDATE p SET id = 5 WHERE id = 2
        UPDATE s_2 SET a = 21
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert silver_of(road, f"{database}.c", "child_id, parent") == [(1, None), (2, 5), (3, None)]
    assert silver_of(road, f"{database}.s", "shard_id, value") == [(1, 1), (1, 21)]


_KEYED, _WHY = "id INT PRIMARY KEY, a INT", "tables.renames gives two columns the name"
_HELD = (
    Held("columns: {a: B}", "b INT, a INT PRIMARY KEY", "", _WHY),
    Held("columns: {a: b}", _KEYED, "DROP COLUMN id, ADD COLUMN B INT PRIMARY KEY AUTO_INCREMENT", _WHY),
    Held("columns: {c: D}", _KEYED, "RENAME COLUMN a TO c, RENAME COLUMN id TO d", _WHY),
    Held("columns: {c: ID}", _KEYED, "RENAME COLUMN a TO c", _WHY),
)


def test_two_columns_of_one_name_hold_their_table_by_name(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, tmp_path = made
    road = renaming(mariadb, tmp_path, database, rules_for(database, _HELD))
    assert_held(road, spark, (mariadb, database), _HELD)


def test_rows_that_move_to_another_table_get_its_names(
    made: tuple[Server, str, SparkSession, Path],
) -> None:
    mariadb, database, spark, tmp_path = made
    road = renaming(mariadb, tmp_path, database, f"{{match: '{database}.t', columns: {{id: key_id, a: b, b: a}}}}")
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)
        INSERT INTO t VALUES (1, 10, 11), (2, 20, 21)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, """
        CREATE TABLE _t_gho LIKE t
        ALTER TABLE _t_gho ADD COLUMN z INT DEFAULT 3
        INSERT INTO _t_gho (id, a, b) SELECT id, a, b FROM t
        UPDATE _t_gho SET a = 12 WHERE id = 1
        RENAME TABLE t TO _t_del, _t_gho TO t
        INSERT INTO t (id, a, b) VALUES (3, 30, 31)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert silver_of(road, f"{database}.t", "key_id, b, a, z") == [(1, 12, 11, 3), (2, 20, 21, 3), (3, 30, 31, 3)]
    run(mariadb, database, "RENAME TABLE t TO plain\nINSERT INTO plain VALUES (4, 40, 41, 4)")
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert silver_of(road, f"{database}.plain", "id, a, b")[0] == (1, 12, 11)
    run(mariadb, database, "RENAME TABLE plain TO t\nUPDATE t SET a = 41 WHERE id = 4")
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert silver_of(road, f"{database}.t", "key_id, b, a")[-1] == (4, 41, 41)


def test_a_changed_rule_holds_a_table_until_it_is_rebuilt(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, tmp_path = made
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", history: ['{database}.h'], renames: []")
    road.capture()
    plain, number = road.text, 1
    for name in "th":
        run(
            mariadb,
            database,
            f"CREATE TABLE {name} (id INT PRIMARY KEY, a INT, b INT)\nINSERT INTO {name} VALUES (1, 10, 11)",
        )
    road.capture()
    assert not held(road.apply(spark))

    def changed(rules: str) -> None:
        nonlocal number
        number += 1
        road.file.write_text(plain.replace("renames: []", f"renames: [{rules}]"))
        road.pipeline = config.load(road.file)
        for name in "th":
            run(mariadb, database, f"INSERT INTO {name} VALUES ({number}, {number}0, {number}1)")
        road.capture()
        reasons = held(road.apply(spark))
        for name in (f"{database}.t", f"{database}.h"):
            assert "isn't as tables.renames says" in reasons[name]
            plan = Rebuild.plan(road.pipeline, road.lake, name, "", "")
            assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
            swap(plan, BackgroundSession(no_spark), report=road.lines.append)
        assert not held(road.apply(spark))
        road.assert_equal()

    match = f"match: '{database}.*'"
    changed(f"{{{match}, columns: {{a: b, b: a}}}}")
    assert silver_of(road, f"{database}.t", "id, b, a") == [(1, 10, 11), (2, 20, 21)]
    assert silver_of(road, f"{database}.h", "id, b, a") == [(1, 10, 11), (2, 20, 21)]
    changed(f"{{{match}, columns: {{id: key_id, a: c}}}}")
    assert silver_of(road, f"{database}.t", "key_id, c, b") == [(1, 10, 11), (2, 20, 21), (3, 30, 31)]
    changed("")
    assert [name for name in fields(road, database, "t") if not name.startswith("_tg_")] == ["id", "a", "b"]


def test_a_column_that_comes_with_its_rule_has_its_name_at_once(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, tmp_path = made
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", history: ['{database}.h'], renames: []")
    road.capture()
    for name in "th":
        run(mariadb, database, f"CREATE TABLE {name} (id INT PRIMARY KEY, a INT)\nINSERT INTO {name} VALUES (1, 10)")
    road.capture()
    assert not held(road.apply(spark))
    rule = f"{{match: '{database}.*', columns: {{later: due}}}}"
    road.file.write_text(road.text.replace("renames: []", f"renames: [{rule}]"))
    road.pipeline = config.load(road.file)
    for name in "th":
        added = f"ALTER TABLE {name} ADD COLUMN later INT DEFAULT 3"
        run(mariadb, database, f"{added}\nINSERT INTO {name} VALUES (2, 20, 5)")
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    for name in "th":
        assert silver_of(road, f"{database}.{name}", "id, a, due") == [(1, 10, 3), (2, 20, 5)]


def test_a_changed_rule_is_said_before_it_holds_a_table(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, tmp_path = made
    road = renaming(mariadb, tmp_path, database, f"{{match: '{database}.t', columns: {{a: b, gone: x}}}}")
    run(mariadb, database, "CREATE TABLE t (id INT PRIMARY KEY, a INT)\nCREATE TABLE u (id INT PRIMARY KEY)")
    run(mariadb, database, "INSERT INTO t VALUES (1, 10)\nINSERT INTO u VALUES (1)")
    road.capture()
    assert not held(road.apply(spark))
    assert changed_names(road.lake, road.pipeline) == []
    before = road.text
    for after, due in (("a: c, more: y", "c"), ("gone: z", "a")):
        pipeline = config.parse(before.replace("a: b, gone: x", after), where="test")
        (line,) = changed_names(road.lake, pipeline)
        assert f"{database}.t: silver calls column a b, and tables.renames {due}: it is held until" in line
    assert changed_names(road.lake, config.parse(before.replace("gone: x", "gone: z"), where="test")) == []


def test_verify_finds_and_mends_rows_under_other_names(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, tmp_path = made
    name = f"{database}.t"
    road = renaming(mariadb, tmp_path, database, f"{{match: '{name}', columns: {{id: key_id, a: b, b: a}}}}")
    run(
        mariadb,
        database,
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)\nINSERT INTO t VALUES (1, 10, 11), (2, 20, 21), (3, 7, 8)",
    )
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    uri = road.lake.spark_uri(tables.silver_path(*splits(name)[0]))
    spark.sql(f"UPDATE delta.`{uri}` SET b = 99 WHERE key_id < 3")
    report = verify(road.pipeline, {"one": road.info}, road.lake.root, {}, VerifyOptions(timeout_seconds=5))
    (result,) = (table for table in report.tables if table.table == name)
    assert (result.outcome, result.different) == (Outcome.DIFFERENT, 2)
    Reading(road, spark).run(name)
    road.assert_equal()
    assert sorted(silver_of(road, name, "key_id, b, a")) == [(1, 10, 11), (2, 20, 21), (3, 7, 8)]


def test_a_column_of_the_owner_stays_where_no_column_of_the_source_has_its_name(
    made: tuple[Server, str, SparkSession, Path],
) -> None:
    mariadb, database, spark, tmp_path = made
    road = renaming(mariadb, tmp_path, database, f"{{match: '{database}.*', columns: {{cust_no: customer_id}}}}")
    run(mariadb, database, "CREATE TABLE t (id INT PRIMARY KEY, a INT)\nINSERT INTO t VALUES (1, 1), (2, 2)")
    road.capture()
    assert not held(road.apply(spark))
    uri = road.lake.spark_uri(tables.silver_path(database, "t"))
    spark.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMNS (customer_id INT)")
    spark.sql(f"UPDATE delta.`{uri}` SET customer_id = 7")
    road.assert_equal()
    run(mariadb, database, "ALTER TABLE t MODIFY a VARCHAR(20)\nUPDATE t SET a = 'x' WHERE id = 1")
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert silver_of(road, f"{database}.t", "id, a, customer_id") == [(1, "x", 7), (2, "2", 7)]
    run(mariadb, database, "ALTER TABLE t ADD COLUMN cust_no INT DEFAULT 3")
    road.capture()
    reasons = held(road.apply(spark))
    assert "silver has a column of that name" in reasons[f"{database}.t"]
    assert "customer_id" in fields(road, database, "t")
