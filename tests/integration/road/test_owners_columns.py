"""Which columns of silver are its owner's: those that the source never brought, whatever happened to silver meanwhile.

In:  real MariaDB; tables that wait, are dropped, made anew; silver with a column of its owner, put back, restored.
Out: silver has the source's columns and its owner's.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_column_that_goes_while_its_table_waits_is_no_column_of_silvers_owner(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Two applications: the second one's table goes on behind the column's DROP, and silver is from before it.

    Of s an older copy came back.
    """
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)
        CREATE TABLE s (id INT PRIMARY KEY, a INT, b INT)
        INSERT INTO t VALUES (1, 1, 1)
        INSERT INTO s VALUES (1, 1, 1)
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    silver = {name: road.lake.uri(tables.silver_path(database, name)) for name in ("t", "s")}
    for uri in silver.values():
        spark.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMN mine INT")
    shutil.copytree(silver["s"], tmp_path / "older")
    run(mariadb, database, """
        SET SESSION binlog_row_image = 'MINIMAL'
        UPDATE t SET a = 7
        SET SESSION binlog_row_image = 'FULL'
        ALTER TABLE t DROP COLUMN a
        ALTER TABLE t RENAME COLUMN b TO c
        ALTER TABLE s DROP COLUMN a
        ALTER TABLE s RENAME COLUMN b TO c
    """)  # fmt: skip
    road.capture()
    waits = held(road.apply(spark))
    assert waits.keys() == {f"{database}.t"}, waits
    run(mariadb, database, "DROP TABLE t")
    road.capture()
    assert not held(road.apply(spark))
    shutil.rmtree(silver["s"])
    shutil.move(tmp_path / "older", silver["s"])
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, c INT)
        INSERT INTO t VALUES (2, 2)
        INSERT INTO s VALUES (2, 2)
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    Reading(road, spark).run()
    road.capture()
    assert not held(road.apply(spark))  # the reader's end, too
    assert road.assert_equal() == {"t": 1, "s": 2}
    for uri in silver.values():
        names = [field.name for field in DeltaTable(uri).schema().fields]
        assert names == ["id", "c", "_tg_commit_ts", "mine"]


def test_a_restore_to_before_another_table_of_the_name_brings_none_of_its_columns(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Delta's RESTORE keeps what a table says of its transactions: by that, silver has the newest columns only."""
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT)
        INSERT INTO t VALUES (1, 1, '1')
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    uri = road.lake.uri(tables.silver_path(database, "t"))
    spark.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMN b2 STRING COMMENT 'of its owner'")
    before = DeltaTable(uri).version()
    run(mariadb, database, """
        DROP TABLE t
        CREATE TABLE t (id INT PRIMARY KEY, c INT)
        INSERT INTO t VALUES (2, 2)
    """)  # fmt: skip
    road.capture()
    road.apply(spark)
    spark.sql(f"RESTORE TABLE delta.`{uri}` TO VERSION AS OF {before}")
    run(mariadb, database, "INSERT INTO t VALUES (3, 3)")
    road.capture()
    road.apply(spark)
    Reading(road, spark).run()
    assert road.assert_equal() == {"t": 2}
    assert [field.name for field in DeltaTable(uri).schema().fields] == ["id", "c", "_tg_commit_ts", "b2"]


def test_an_owners_column_with_a_space_holds_no_table(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Delta takes such a name in a table with column mapping."""
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()

    def step(statements: str) -> None:
        run(mariadb, database, statements)
        road.capture()
        assert not held(road.apply(spark))
        road.assert_equal()

    step("CREATE TABLE t (id INT PRIMARY KEY, a INT)\nINSERT INTO t VALUES (1, 1)")
    table = f"delta.`{road.lake.spark_uri(tables.silver_path(database, 't'))}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (`my note` STRING)")
    spark.sql(f"UPDATE {table} SET `my note` = 'mine'")
    step("ALTER TABLE t COMMENT 'new'\nINSERT INTO t VALUES (2, 2)")
    step("ALTER TABLE t ADD COLUMN b INT DEFAULT 3, MODIFY a INT COMMENT 'of a'\nUPDATE t SET a = 7 WHERE id = 2")
    found = spark.sql(f"SELECT id, a, b, `my note` FROM {table} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, 1, 3, "mine"), (2, 7, 3, None)]
