"""Silver tables whose owner has set properties, added columns or had them rewritten follow their source on.

In:  a real server, what an owner does to silver by Spark, statements at the source.
Out: rows equal to the source, the owner's columns with their values; what can't be followed is held before anything is
     lost, by name and with what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs import maintain
from spark_jobs.maintenance import Maintenance
from spark_jobs.session.spark import maintenance_session
from tests.kit.road import Road
from tests.support.readers import READERS
from tests.support.servers import FreshDatabase
from tidegate.lake.standing.held import last_states, release
from tidegate.local.server import Server
from tidegate.tables import State, silver_path
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

Kinds = tuple[str, ...]
_STATS: str = "spark.databricks.delta.stats.collect"
_VECTORS: str = "spark.databricks.delta.update.persistentDeletionVectors.enabled"
_CREATES = {
    "noted": "(id INT PRIMARY KEY, v INT, w INT, x INT)",
    "keyless": "(id INT, v INT)",
    "cdf": "(id INT PRIMARY KEY, v INT)",
    "tracked": "(id INT PRIMARY KEY, v INT)",
    "mapped": "(id INT PRIMARY KEY, v INT)",
    "checked": "(id INT PRIMARY KEY, v INT)",
    "bare": "(id INT PRIMARY KEY, v INT)",
    "forever": "(id INT, valid_to DATETIME(3), v INT, PRIMARY KEY (id, valid_to))",
    "finer": "(id INT, valid_to DATETIME(6), v INT, PRIMARY KEY (id, valid_to))",
}
_ROWS = {
    "noted": "(1, 1, 1, 1), (2, 2, 2, 2)",
    "forever": "(1, '9999-12-31 23:59:59.999', 5)",
    "finer": "(1, '9999-12-31 23:59:59.999999', 5)",
}


class Owned:
    """A road, and what silver's owner does beside it."""

    def __init__(self, server: Server, database: str, spark: SparkSession, folder: Path) -> None:
        self.server, self.database, self.spark = server, database, spark
        self.road = Road(server, folder, include=f"{database}.*")
        self.road.capture()

    def at_source(self, *statements: str) -> dict[str, str]:
        """Run them, and apply what they did; the held tables, and why."""
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                connection.commit()
        self.road.capture()
        app = self.road.apply(self.spark)
        return {name: state.reason for name, state in app.states.items() if state.state is State.HELD}

    def by_owner(self, table: str, *statements: str) -> None:
        place = f"delta.`{self.road.lake.uri(silver_path(self.database, table))}`"
        for statement in statements:
            self.spark.sql(statement.format(t=place)).collect()

    def silver(self, table: str, reader: str = "DuckDB") -> list[dict[str, Any]]:
        return READERS[reader](self.road.lake.uri(silver_path(self.database, table))).to_pylist()

    def assert_equal(self, *tables: str) -> None:
        """By the source's own columns."""
        for table in tables:
            described = self.server.query(f"SHOW COLUMNS FROM {table}", database=self.database)
            names = [str(name) for name, *_ in described]
            rows = [tuple(row[name] for name in names) for row in self.silver(table)]
            assert sorted(rows) == sorted(self.server.query(f"SELECT * FROM {table}", database=self.database)), table

    def verified(self) -> list[tuple[Outcome, str]]:
        road = self.road
        report = verify(road.pipeline, {"one": road.info}, road.lake.root, {}, VerifyOptions(timeout_seconds=5))
        return [(one.outcome, one.reason) for one in report.tables]


def changed_by_its_owner(it: Owned, kinds: Kinds) -> None:
    noting = ("ALTER TABLE {t} ADD COLUMN note STRING", "UPDATE {t} SET note = concat('n', id)")
    by_owner = {
        "noted": noting,
        "keyless": noting,
        "cdf": ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",),
        "tracked": ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",),
        "mapped": ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",),
        "checked": ("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (v > 0)",),
        "forever": ("UPDATE {t} SET v = v",),  # so that its file is one of Spark's
        "finer": ("UPDATE {t} SET v = v",),
    }
    for table in filter(by_owner.__contains__, kinds):
        it.by_owner(table, *by_owner[table])
    for name in (_STATS, _VECTORS):
        it.spark.conf.set(name, "false")
    it.by_owner("bare", "UPDATE {t} SET v = v")
    for name in (_STATS, _VECTORS):
        it.spark.conf.unset(name)


TELLING: Kinds = ("noted", "checked", "bare", "forever")


@pytest.mark.parametrize("kinds", [TELLING, tuple(_CREATES)], ids=["telling", "all"])
def test_silver_of_an_owners_own_making_follows_its_source(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, kinds: Kinds
) -> None:
    it = Owned(mariadb, fresh_database(mariadb), spark, tmp_path)

    def some(*names: str) -> list[str]:
        return [name for name in names if name in kinds]

    made = [f"CREATE TABLE {name} {_CREATES[name]}" for name in kinds]
    made += [f"INSERT INTO {name} VALUES {_ROWS.get(name, '(1, 1), (2, 2)')}" for name in kinds]
    assert not it.at_source(*made)
    changed_by_its_owner(it, kinds)
    keyless = ["ALTER TABLE keyless MODIFY v BIGINT"] * len(some("keyless"))
    assert not it.at_source(
        *(
            f"UPDATE {table} SET v = v + 10"
            for table in some("cdf", "tracked", "mapped", "checked", "forever", "finer")
        ),
        *(f"ALTER TABLE {table} ADD COLUMN c INT" for table in some("cdf", "tracked", "mapped")),
        *(f"INSERT INTO {table} VALUES (3, 3, 3)" for table in some("cdf", "tracked", "mapped")),
        "UPDATE bare SET v = 7 WHERE id = 1",
        "ALTER TABLE noted MODIFY v BIGINT",
        "ALTER TABLE noted CHANGE w width INT",
        "ALTER TABLE noted DROP COLUMN x",
        "INSERT INTO noted VALUES (3, 3, 3)",
        "ALTER TABLE noted DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)",
        *keyless,
    )
    it.assert_equal(*kinds)
    wanted = {"noted": {1: "n1", 2: "n2", 3: None}, "keyless": {1: "n1", 2: "n2"}}
    for table in some("noted", "keyless"):
        assert {row["id"]: row["note"] for row in it.silver(table)} == wanted[table]
    assert {row["id"]: row["v"] for row in it.silver("bare", "Polars")} == {1: 7, 2: 2}

    job = Maintenance(maintenance_session(spark, 1 << 28), it.road.pipeline, it.road.lake, it.road.lines.append)
    for table in some("tracked", "mapped", "cdf"):
        maintain.run(job, f"{it.database}.{table}")
    emptied = some("cdf", "tracked", "mapped", "noted")
    held = it.at_source(
        *(f"TRUNCATE {table}" for table in emptied),
        *(f"INSERT INTO {table} VALUES (4, 4, 4)" for table in emptied),
        "DROP TABLE checked",
        "CREATE TABLE checked (id INT PRIMARY KEY, amount INT)",
        "INSERT INTO checked VALUES (1, 1)",
    )
    assert list(held) == [f"{it.database}.checked"]
    assert "constraint positive (v > 0) names column v" in held[f"{it.database}.checked"]
    it.assert_equal(*emptied)
    assert [row["note"] for row in it.silver("noted")] == [None]
    assert list(it.at_source(*(f"DROP TABLE {table}" for table in some("cdf", "tracked", "mapped")))) == list(held)


def test_columns_that_went_before_a_truncate_are_none_of_its_owners(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """What comes before a statement that leaves no row isn't done, and its columns go all the same."""
    it = Owned(mariadb, fresh_database(mariadb), spark, tmp_path)
    assert not it.at_source("CREATE TABLE t (id INT PRIMARY KEY, a INT, gone INT)", "INSERT INTO t VALUES (1, 1, 1)")
    it.by_owner("t", "ALTER TABLE {t} ADD COLUMN note STRING")
    assert not it.at_source(
        "ALTER TABLE t RENAME COLUMN a TO b",
        "ALTER TABLE t DROP COLUMN gone",
        "TRUNCATE t",
        "INSERT INTO t VALUES (2, 2)",
    )
    it.assert_equal("t")
    assert {name for name in it.silver("t")[0] if name[:4] != "_tg_"} == {"id", "b", "note"}


@pytest.mark.parametrize("default", ["", " DEFAULT 5"])
def test_a_column_that_comes_with_the_name_of_the_owners_waits_until_that_one_is_away(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, default: str
) -> None:
    it = Owned(mariadb, fresh_database(mariadb), spark, tmp_path)
    assert not it.at_source("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    it.by_owner("t", "ALTER TABLE {t} ADD COLUMN Note INT", "UPDATE {t} SET Note = 7")
    held = it.at_source(f"ALTER TABLE t ADD COLUMN note INT{default}", "INSERT INTO t VALUES (3, 3, 3)")
    assert "column note is added here, and silver has a column of that name" in held[f"{it.database}.t"]
    assert {row["id"]: row["Note"] for row in it.silver("t")} == {1: 7, 2: 7}
    it.by_owner(
        "t",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} RENAME COLUMN Note TO owners_note",
    )
    release(it.road.lake, last_states(it.road.lake)[f"{it.database}.t"])
    assert not it.at_source("INSERT INTO t VALUES (4, 4, 4)")
    it.assert_equal("t")
    assert {row["id"]: row["owners_note"] for row in it.silver("t")} == {1: 7, 2: 7, 3: None, 4: None}
    assert it.verified() == [(Outcome.EQUAL, "not compared: silver's own owners_note")]
    it.by_owner("t", "UPDATE {t} SET v = 9 WHERE id = 2")
    assert [outcome for outcome, _ in it.verified()] == [Outcome.DIFFERENT]
