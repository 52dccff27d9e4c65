"""Partition DDL moves and deletes rows without row events: the tables are held and the way out is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.road import Road
from tests.support.servers import FreshDatabase
from tidegate.demo.server import Server
from tidegate.tables import NEEDS_SNAPSHOT

pytestmark = [pytest.mark.server, pytest.mark.spark]

STATEMENTS = {
    "exchanged": "ALTER TABLE exchanged EXCHANGE PARTITION p0 WITH TABLE given",
    "emptied": "ALTER TABLE emptied TRUNCATE PARTITION p0",
    "shrunk": "ALTER TABLE shrunk DROP PARTITION p0",
    "split": "ALTER TABLE split CONVERT PARTITION p0 TO TABLE split_off",
    "grown": "ALTER TABLE grown CONVERT TABLE taken TO PARTITION p2 VALUES LESS THAN (30)",
}


def test_partition_ddl_that_changes_rows_holds_its_tables_and_one_that_moves_none_does_not(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture(idle=0.5)
    ranges = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        for table in (*STATEMENTS, "same"):
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY) {ranges}")
            cursor.execute(f"INSERT INTO {table} VALUES (1), (11)")
        for table, row in (("given", 2), ("taken", 22)):
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO {table} VALUES ({row})")
        connection.commit()
        for sql in STATEMENTS.values():
            cursor.execute(sql)
        cursor.execute(
            "ALTER TABLE same REORGANIZE PARTITION p0 INTO"
            " (PARTITION a VALUES LESS THAN (5), PARTITION b VALUES LESS THAN (10))"
        )
        cursor.execute("ALTER TABLE same ADD PARTITION (PARTITION p3 VALUES LESS THAN (40))")
        cursor.execute("INSERT INTO same VALUES (33)")
        connection.commit()
    road.capture(idle=0.3)
    app = road.apply(spark)
    held = {name: state for name, state in app.states.items() if state.state == "held"}
    assert held.keys() == {f"{database}.{table}" for table in (*STATEMENTS, "given", "split_off")}
    for name, state in held.items():
        assert state.error == NEEDS_SNAPSHOT
        assert state.reason.startswith(f"{name} at ")
        assert "take a snapshot" in state.reason
        assert "PARTITION" in state.reason
    assert road.assert_equal() == {"same": 3}
    assert app.states[f"{database}.taken"].state == "dropped"
