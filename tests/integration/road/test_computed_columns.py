"""Columns of silver that are computed from the others (tables.computed).

In:  real servers; rules of a pipeline file, rows, DDL, snapshots, both writers, all modes, another hand in silver.
Out: silver has what the server's own SELECT computes; verify sees a value that isn't so; what can't be computed holds
     its table by name.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_columns_left_out import Held, assert_held, rules_for
from tests.integration.road.test_masks import silver_of
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.kit.spark import no_spark
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.local.server import Server
from tidegate.table_names import splits
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark]

# Silver's columns by DuckDB, and the same by the source.
RULES = {
    "day": ("date", "CAST(made AS DATE)", "CAST(made AS DATE)"),
    "total": ("decimal(20,2)", "price::DECIMAL(20,2) * count", "price * count"),
    "shout": ("string", "upper(name) || ''!''", "concat(upper(name), '!')"),
}
COLUMNS = "id INT PRIMARY KEY, made DATETIME, price DECIMAL(9,2), count INT, name VARCHAR(20)"
THERE = f"id, {', '.join(f'{here} AS {name}' for name, (_, _, here) in RULES.items())}"


@pytest.fixture
def made(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> tuple[Server, str, SparkSession, Path]:
    return mariadb, fresh_database(mariadb), spark, tmp_path


def rules_of(match: str) -> str:
    return ", ".join(
        f"{{match: '{match}', name: {name}, type: '{kind}', expression: '{text}'}}"
        for name, (kind, text, _) in RULES.items()
    )


def computing(server: Server, folder: Path, database: str, rules: str, more: str = "", apply: str = "") -> Road:
    """A road that captures already."""
    road = Road(server, folder, include=f"{database}.*", extra=f"{more}, computed: [{rules}]", apply=apply)
    road.capture()
    return road


def check(road: Road, server: Server, name: str, live: str = "true") -> None:
    """Silver's computed columns are what the server's SELECT computes. live: of silver's rows."""
    rows = silver_of(road, name, f"id, {', '.join(RULES)}, CAST({live} AS INT) AS live")
    there = sorted(server.query(f"SELECT {THERE} FROM {name}"), key=repr)
    assert [row[:-1] for row in rows if row[-1]] == there
    assert there


@pytest.mark.parametrize(("any_server", "writer"), [("mariadb", "merge"), ("mysql9", "auto")], indirect=["any_server"])
def test_silver_has_what_the_source_would_compute(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    server, database = any_server, fresh_database(any_server)
    run(server, database, f"CREATE TABLE u ({COLUMNS})\nINSERT INTO u VALUES (1, '2020-02-29 23:59:59', 1.25, 3, 'é')")
    more = f", soft_delete: ['{database}.d'], history: ['{database}.h'], changelog: ['{database}.d']"
    road = computing(server, tmp_path, database, rules_of(f"{database}.*"), more, f", writer: {writer}")
    run(server, database, "\n".join(f"CREATE TABLE {name} ({COLUMNS})" for name in "tdh"))
    for name in "tdh":
        run(server, database, f"""
            INSERT INTO {name} VALUES (1, '2020-01-01 10:00:00', 1.10, 2, 'a'), (2, NULL, NULL, 7, NULL)
            INSERT INTO {name} VALUES (3, '1999-12-31', 9999999.99, -2147483648, 'z''z')
        """)  # fmt: skip
    road.capture()
    road.apply(spark)
    Reading(road, spark).run()
    live = {"d": "NOT _tg_deleted", "h": "_tg_is_current"}

    def check_all() -> None:
        road.capture()
        assert not held(road.apply(spark))
        assert road.assert_equal().keys() == set("tudh")
        for name in "tudh":
            check(road, server, f"{database}.{name}", live.get(name, "true"))

    check_all()
    for name in "tudh":
        run(server, database, f"""
            UPDATE {name} SET price = price + 1, name = 'changed' WHERE id = 1
            DELETE FROM {name} WHERE id = 2
            UPDATE {name} SET id = 4 WHERE id = 3
            ALTER TABLE {name} ADD COLUMN extra INT DEFAULT 5 FIRST, MODIFY id BIGINT
            UPDATE {name} SET extra = 6, made = '2024-12-31 00:00:00'
            INSERT INTO {name} VALUES (9, 9, NULL, 3.5, 2, '')
            ALTER TABLE {name} DROP COLUMN extra
        """)  # fmt: skip
    check_all()
    run(server, database, "RENAME TABLE u TO r")
    road.capture()
    assert not held(road.apply(spark))
    check(road, server, f"{database}.r")
    deleted = silver_of(road, f"{database}.d", "id, shout, _tg_deleted")
    assert (2, None, True) in deleted
    assert (3, "Z'Z!", True) in deleted, "the values that the row had"


def test_shards_and_rows_below_foreign_keys_are_computed(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    rules = (
        f"{{match: '{database}.c', name: orphan, type: boolean, expression: p_id IS NULL}},"
        f" {{match: '{database}.s', name: twice, type: bigint, expression: a * 2}}"
    )
    road = computing(mariadb, tmp_path, database, rules, f", routes: [{{match: '{database}.s_\\d', to: {database}.s}}]")
    run(mariadb, database, """
        CREATE TABLE p (id INT PRIMARY KEY)
        CREATE TABLE c (id INT PRIMARY KEY, p_id INT REFERENCES p (id) ON DELETE SET NULL)
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
        UPDATE s_2 SET a = 21
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert silver_of(road, f"{database}.c", "id, orphan") == [(1, True), (2, False), (3, True)]
    assert silver_of(road, f"{database}.s", "a, twice") == [(1, 2), (21, 42)]


_OF_A, _KEYED = "name: more, type: int, expression: a", "id INT PRIMARY KEY, a INT"
_HELD = (
    Held(_OF_A, "id INT, a INT", "", "a table without a key"),
    Held("name: more, type: int, expression: b", _KEYED, "", "from column b, which silver doesn't have"),
    Held(_OF_A, "a INT, MORE INT PRIMARY KEY", "", "the source has one of that name"),
    Held(_OF_A, _KEYED, "DROP COLUMN a, ADD b INT", "from column a, which"),
    Held(_OF_A, _KEYED, "RENAME COLUMN a TO b", "from column a, which"),
    Held(_OF_A, _KEYED, "MODIFY a BIGINT", "values of column a change"),
    Held(_OF_A, _KEYED, "ADD more INT FIRST, DROP a", "source has one"),
)


def test_what_can_not_be_computed_holds_its_table_by_name(made: tuple[Server, str, SparkSession, Path]) -> None:
    mariadb, database, spark, tmp_path = made
    road = computing(mariadb, tmp_path, database, rules_for(database, _HELD))
    assert_held(road, spark, (mariadb, database), _HELD)


def test_a_value_that_fails_holds_its_table_alone_without_showing_it(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = computing(
        mariadb, tmp_path, database, f"{{match: '{database}.t', name: b, type: int, expression: 'a::UTINYINT'}}"
    )
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, a INT)
        CREATE TABLE u (id INT PRIMARY KEY)
        INSERT INTO t VALUES (1, 255)
        INSERT INTO u VALUES (1)
        INSERT INTO t VALUES (2, 4711)
    """)  # fmt: skip
    road.capture()
    (reason,) = held(road.apply(spark)).values()
    assert "tables.computed: Conversion Error in a value of b" in reason
    assert "4711" not in reason
    assert road.assert_equal() == {"u": 1}


def test_rows_keep_their_computed_columns_as_their_table_is_replaced(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """As gh-ost does it; and rows that come to a table without the rule hold it."""
    database = fresh_database(mariadb)
    name = f"{database}.t"
    road = computing(mariadb, tmp_path, database, f"{{match: '{name}', name: b, type: int, expression: a + 1}}")
    run(mariadb, database, "CREATE TABLE t (id INT PRIMARY KEY, a INT)\nINSERT INTO t VALUES (1, 10), (2, 20)")
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, """
        CREATE TABLE _t_gho LIKE t
        ALTER TABLE _t_gho ADD COLUMN z INT DEFAULT 3
        INSERT INTO _t_gho (id, a) SELECT id, a FROM t
        UPDATE _t_gho SET a = 11 WHERE id = 1
        RENAME TABLE t TO _t_del, _t_gho TO t
        INSERT INTO t (id, a) VALUES (3, 30)
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    assert silver_of(road, name, "a, b, z") == [(11, 12, 3), (20, 21, 3), (30, 31, 3)]
    run(mariadb, database, "RENAME TABLE t TO u")
    road.capture()
    assert "tables.computed has other columns there" in "".join(held(road.apply(spark)).values())


def test_a_changed_rule_holds_a_table_until_it_is_rebuilt(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=", computed: []")
    road.capture()
    plain, number = road.text, 1
    run(mariadb, database, "CREATE TABLE t (id INT PRIMARY KEY, a INT)\nINSERT INTO t VALUES (1, 10)")
    road.capture()
    assert not held(road.apply(spark))

    def changed(rules: str) -> None:
        nonlocal number
        number += 1
        road.file.write_text(plain.replace("computed: []", f"computed: [{rules}]"))
        road.pipeline = config.load(road.file)
        run(mariadb, database, f"INSERT INTO t VALUES ({number}, {number}0)")
        road.capture()
        assert "column b isn't as tables.computed says" in held(road.apply(spark))[f"{database}.t"]
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.t", "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
        swap(plan, BackgroundSession(no_spark), report=road.lines.append)
        assert not held(road.apply(spark))
        road.assert_equal()

    rule = f"match: '{database}.t', name: b"
    changed(f"{{{rule}, type: int, expression: a + 1}}")
    assert silver_of(road, f"{database}.t", "a, b") == [(10, 11), (20, 21)]
    changed(f"{{{rule}, type: string, expression: a + 1}}")
    assert silver_of(road, f"{database}.t", "a, b") == [(10, "11"), (20, "21"), (30, "31")]
    changed("")
    names = [field["name"] for field in road.lake.log(tables.silver_path(database, "t")).state().schema["fields"]]
    assert "b" not in names


def test_verify_sees_a_value_that_is_computed_otherwise(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    name = f"{database}.t"
    road = computing(mariadb, tmp_path, database, f"{{match: '{name}', name: b, type: int, expression: a + 1}}")
    run(mariadb, database, "CREATE TABLE t (id INT PRIMARY KEY, a INT)\nINSERT INTO t VALUES (1, 10), (2, 20), (3, 7)")
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    uri = road.lake.spark_uri(tables.silver_path(*splits(name)[0]))
    spark.sql(f"UPDATE delta.`{uri}` SET b = 99 WHERE id < 3")
    report = verify(road.pipeline, {"one": road.info}, road.lake.root, {}, VerifyOptions(timeout_seconds=5))
    (result,) = (table for table in report.tables if table.table == name)
    assert (result.outcome, result.different) == (Outcome.DIFFERENT, 2)
    assert "other values than tables.computed gives: b in 2 rows" in result.reason
    Reading(road, spark).run(name)
    road.assert_equal()
    assert sorted(silver_of(road, name, "a, b")) == [(7, 8), (10, 11), (20, 21)]
