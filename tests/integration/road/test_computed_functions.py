"""Columns of silver by functions in Python (tables.computed), on a real server.

In:  distributions on the driver's path alone; rows, snapshots, both writers, history, another version of the function.
Out: silver equals the server's own SELECT; a row without a value holds its table by name, and others go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_masks import silver_of
from tests.integration.road.test_renames import held, released, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.kit.spark import no_spark
from tests.support.functions import Distributions
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.local.server import Server
from tidegate.mysql.checking.examination import examine
from tidegate.table_names import splits
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark]

TEXT = """
import pyarrow as pa
import pyarrow.compute as pc

def total(price, count):
    assert 666 not in count.to_pylist(), price
    return pc.multiply(price, count.cast(pa.decimal128(10, 0))).cast(pa.decimal128(20, 2))

def backwards(name):
    return pc.utf8_reverse(name)
"""
POINTS = "total = acme_rows:total\nbackwards = acme_rows:backwards"
COLUMNS = "id INT PRIMARY KEY, price DECIMAL(9,2), count INT, name VARCHAR(20)"
THERE = "id, price * count AS total, reverse(name) AS back"


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Distributions]:
    folder = tmp_path / "site"
    folder.mkdir()
    made = Distributions(folder)
    made.install("acme-rows", "1.0", "acme_rows", TEXT, POINTS)
    yield made
    made.close()


def road_of(server: Server, folder: Path, database: str, more: str = "", apply: str = "") -> Road:
    rules = (
        f"{{match: '{database}.*', name: total, type: 'decimal(20,2)', function: total, columns: [Price, count]}},"
        f" {{match: '{database}.*', name: back, type: string, function: backwards, columns: [name]}}"
    )
    road = Road(server, folder, include=f"{database}.*", extra=f"{more}, computed: [{rules}]", apply=apply)
    road.capture()
    return road


def rebuilt(road: Road, spark: SparkSession, name: str, *, to: str = "") -> None:
    plan = Rebuild.plan(road.pipeline, road.lake, name, "", to)
    session = BackgroundSession(lambda: spark)
    assert rebuild(plan, session, compare=bool(to), report=road.lines.append) == 0, road.lines
    if not to:
        swap(plan, BackgroundSession(no_spark), report=road.lines.append)


@pytest.mark.parametrize("apply", [", writer: positional, driver_decode_bytes: 0", ", writer: merge"])
def test_silver_has_what_the_source_would_compute(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, acme: Distributions, apply: str
) -> None:
    """Large windows are no workers' either: none of them has the function."""
    database = fresh_database(mariadb)
    run(mariadb, database, f"CREATE TABLE u ({COLUMNS})\nINSERT INTO u VALUES (1, 1.25, 3, 'é!')")
    road = road_of(mariadb, tmp_path, database, f", history: ['{database}.h']", apply)
    run(mariadb, database, f"""
        CREATE TABLE t ({COLUMNS})
        CREATE TABLE h ({COLUMNS})
        INSERT INTO t VALUES (1, 1.10, 2, 'a'), (2, NULL, NULL, NULL), (3, 9999999.99, -2147483648, 'abc')
        INSERT INTO h SELECT * FROM t
    """)  # fmt: skip
    road.capture()
    assert held(road.apply(spark)).keys() == {f"{database}.u"}, "its rows are from before"
    Reading(road, spark).run()
    for name in "tuh":
        run(mariadb, database, f"""
            UPDATE {name} SET price = 7, name = 'changed' WHERE id = 1
            DELETE FROM {name} WHERE id = 2
            UPDATE {name} SET id = 4 WHERE id = 3
            INSERT INTO {name} VALUES (9, 3.5, 2, '')
        """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal().keys() == set("tuh")
    for name in "tuh":
        live = "_tg_is_current" if name == "h" else "true"
        rows = [row[:-1] for row in silver_of(road, f"{database}.{name}", f"id, total, back, {live}") if row[-1]]
        assert sorted(rows, key=repr) == sorted(mariadb.query(f"SELECT {THERE} FROM {database}.{name}"), key=repr)
        assert rows
    assert (1, "a", False) in silver_of(road, f"{database}.h", "id, back, _tg_is_current")
    rebuilt(road, spark, f"{database}.h", to="again")
    assert road.lines[-1] == "equal"


def test_an_error_holds_its_table_until_a_new_version_rebuilds_it(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, acme: Distributions
) -> None:
    database = fresh_database(mariadb)
    road, name = road_of(mariadb, tmp_path, database), f"{database}.t"
    run(mariadb, database, f"""
        CREATE TABLE t ({COLUMNS})
        CREATE TABLE u ({COLUMNS})
        INSERT INTO t VALUES (1, 1, 1, 'a')
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, """
        INSERT INTO u VALUES (1, 1, 1, 'b')
        INSERT INTO t VALUES (2, 2, 2, 'b'), (3, 4711, 666, 'c'), (4, 4, 4, 'd')
    """)  # fmt: skip
    road.capture()
    ((where, reason),) = held(road.apply(spark)).items()
    assert where == name
    assert "tables.computed: column total, for the row at commit_ts" in reason
    assert "function total of acme-rows 1.0 raises AssertionError" in reason
    assert "4711" not in reason
    assert road.assert_equal() == {"u": 1}
    acme.install(
        "acme-rows", "1.1", "acme_rows", TEXT.replace("666", "667").replace("utf8_reverse", "utf8_upper"), POINTS
    )
    rebuilt(road, spark, name)
    assert not [table for table in held(road.apply(spark)) if table == name]
    rows = silver_of(road, name, "id, total, back")
    assert rows == sorted(mariadb.query(f"SELECT id, price * count, upper(name) FROM {name}"))
    run(mariadb, database, "INSERT INTO u VALUES (2, 2, 2, 'c')")
    road.capture()
    assert "column back, total isn't as tables.computed says" in held(road.apply(spark))[f"{database}.u"]
    assert silver_of(road, f"{database}.u", "id, back") == [(1, "b")], "none of the new version's values beside it"
    rebuilt(road, spark, f"{database}.u")
    assert not held(road.apply(spark))
    assert road.assert_equal().keys() == {"t", "u"}
    assert silver_of(road, f"{database}.u", "id, back") == [(1, "B"), (2, "C")]


def test_a_function_that_is_not_installed_holds_its_table_and_check_says_it_before(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, acme: Distributions
) -> None:
    database = fresh_database(mariadb)
    road, name = road_of(mariadb, tmp_path, database), f"{database}.t"
    run(mariadb, database, f"CREATE TABLE t ({COLUMNS})\nINSERT INTO t VALUES (1, 1.5, 3, 'abc')")

    def told() -> list[str]:
        lines = examine(road.pipeline, road.lake, lambda _: road.info).lines
        return [f"{line.text} {line.tables}" for line in lines if "no function total" in f"{line.text} {line.tables}"]

    assert not told()
    acme.remove("acme-rows")
    (line,) = told()
    assert name in line
    road.capture()
    assert "total: no function total is installed here" in held(road.apply(spark))[name]
    acme.install("acme-rows", "1.0", "acme_rows", TEXT, POINTS)
    released(road, name)
    assert not held(road.apply(spark))
    road.assert_equal()
    path = tables.silver_path(*splits(name)[0])
    spark.sql(f"UPDATE delta.`{road.lake.spark_uri(path)}` SET back = 'x'")
    report = verify(road.pipeline, {"one": road.info}, road.lake.root, {}, VerifyOptions(timeout_seconds=5))
    (result,) = (table for table in report.tables if table.table == name)
    assert (result.outcome, result.different) == (Outcome.DIFFERENT, 1)
    assert "other values than tables.computed gives: back in 1 rows" in result.reason
