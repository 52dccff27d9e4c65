"""A changelog of a table that begins anew has its changes from before that."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.query.test_changelog import logging, rows_of, run
from tests.integration.snapshot.test_keyless import finished, look, reader_of
from tests.kit.road import Road
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


@pytest.mark.timeout(600)
def test_a_shard_that_lacked_rows_is_named_where_it_begins_anew(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The others go on meanwhile, and the changelog with them; one without a key that lacks nothing has all changes."""
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    mariadb.query(f"GRANT LOCK TABLES ON *.* TO '{mariadb.user}'@'%'")
    routes = f", routes: [{{match: '{database}.t_[0-9]', to: {database}.t}}], exclude: ['{database}.other']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f"{routes}, changelog: ['{database}.t']")
    road.capture()
    run(road, database, "CREATE TABLE t_2 (a INT)", "INSERT INTO t_2 VALUES (1)")
    road.capture()
    road.apply(spark)
    run(road, database, "CREATE TABLE other (a INT)", "INSERT INTO other VALUES (2)", "RENAME TABLE other TO t_1")
    run(road, database, "INSERT INTO t_1 VALUES (3)", "INSERT INTO t_2 VALUES (4)")
    road.capture()
    road.apply(spark)
    run(road, database, "INSERT INTO t_1 VALUES (5)", "INSERT INTO t_2 VALUES (6)")
    request(road.lake, "road", [("one", database, name) for name in ("t_1", "t_2")])
    reader_of(road).run(stop=look(2))
    run(road, database, "INSERT INTO t_1 VALUES (7)", "INSERT INTO t_2 VALUES (8)")
    road.capture()
    road.apply(spark)
    finished(road, spark)
    rows = rows_of(road, database, "t")
    changes = {
        name: [r["after"]["a"] for r in rows if (r["table"], r["op"]) == (name, "insert")] for name in ("t_1", "t_2")
    }
    assert changes == {"t_1": [7], "t_2": [1, 4, 6, 8]}
    (gap,) = [row for row in rows if row["op"] == "gap"]
    assert (gap["table"], "lacked rows" in gap["note"]) == ("t_1", True)
    road.assert_equal()
