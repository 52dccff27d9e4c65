"""History that is switched on for tables already in silver, whose first news is a statement on names or partitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.past import Past
from tests.support.readers import READERS
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_swap_and_a_moved_partition_are_the_first_that_history_sees(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=", history: ['none.none']")
    road.capture()
    past = Past(mariadb, database, ["t", "old", "p", "q"])
    past.begin()
    for name in "tu":
        past.done(f"CREATE TABLE {name} (id INT PRIMARY KEY, code VARCHAR(20))")
        past.done(f"INSERT INTO {name} VALUES (1, '{name}1'), (2, '{name}2')")
    parts = "PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (5), PARTITION high VALUES LESS THAN MAXVALUE)"
    past.done(f"CREATE TABLE p (id INT PRIMARY KEY, code VARCHAR(20)) {parts}")
    past.done("CREATE TABLE q (id INT PRIMARY KEY, code VARCHAR(20))")
    past.done("INSERT INTO p VALUES (1, 'p1'), (7, 'p7')")
    past.done("INSERT INTO q VALUES (2, 'q2')")
    road.capture()
    road.apply(spark)
    road.file.write_text(road.text.replace("none.none", f"{database}.*"))
    road.pipeline = config.load(road.file)
    since = len(past.states)
    past.done("RENAME TABLE t TO old, u TO t")
    past.done("ALTER TABLE p EXCHANGE PARTITION low WITH TABLE q")
    road.capture()
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    past.done("UPDATE t SET code = 'last' WHERE id = 2")
    past.done("UPDATE p SET code = 'last'")
    road.capture()
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    road.assert_equal()
    past.check(road, since=since)
    rows = READERS["DuckDB"](road.lake.uri(tables.silver_path(database, "t"))).to_pylist()
    ended = {row["code"] for row in rows if not row[tables.IS_CURRENT]}
    assert ended == {"t1", "t2", "u2"}
