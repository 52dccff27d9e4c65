"""A changelog of a table that begins anew has its changes from before that."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.query.test_changelog import logging, rows_of, run
from tests.integration.snapshot.test_keyless import finished, look, reader_of
from tests.support.driver import killed
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.snapshot.progress.requests import request
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.timeout(600)
def test_a_whole_table_that_is_read_again(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Without a key all of its rows are replaced at the wave's low mark, whatever came before in the same window."""
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    mariadb.query(f"GRANT LOCK TABLES ON *.* TO '{mariadb.user}'@'%'")
    road = logging(mariadb, database, tmp_path, "t")
    run(road, database, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)")
    road.capture()
    road.apply(spark)
    run(road, database, "INSERT INTO t VALUES (2)", "TRUNCATE TABLE t", "INSERT INTO t VALUES (4)")
    request(road.lake, "road", [("one", database, "t")])
    reader_of(road).run(stop=look(2))
    run(road, database, "INSERT INTO t VALUES (3)")
    road.capture()
    killed(spark, road.file, "apply_after_changelog")
    road.apply(spark)
    finished(road, spark)
    rows = rows_of(road, database, "t")
    kinds = [row["op"] if row["op"] != "insert" else row["after"]["a"] for row in rows]
    assert kinds == ["begin", "create", 1, 2, "truncate", 4, "snapshot", "snapshot", 3], kinds
    road.assert_equal()
