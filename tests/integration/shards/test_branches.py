"""XA branches of a shard that lacks rows: it alone waits, and silver has nothing of it until a snapshot has read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.road.test_prewrites import answer, prepare
from tests.integration.shards.test_snapshots import made, now, stepped
from tests.kit.road import Road
from tests.support.readers import by_duckdb
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.timeout(900)
def test_a_branch_brings_no_shard_back_that_waits_for_a_snapshot(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    routes = f", routes: [{{match: '{database}.t_[0-9]', to: {database}.t}}]"
    road = Road(mariadb, tmp_path, include=f"{database}.t_[0-9]", extra=routes)
    road.capture()
    made(mariadb, database, "t_1")
    made(mariadb, database, "elsewhere")
    mariadb.query(f"RENAME TABLE {database}.elsewhere TO {database}.t_2")
    for xid in ("'with its rename'", "'later'"):
        prepare(mariadb, database, xid, f"UPDATE t_2 SET a = {xid} WHERE id = 7")
        road.capture()
        answer(mariadb, xid, commit=True)
        mariadb.query(f"UPDATE {database}.t_1 SET a = {xid} WHERE id = 4")
        app = stepped(road, spark)
        assert now(app) == {"t": "snapshot"}, [state.reason for state in app.states.values()]
        found = by_duckdb(road.lake.uri(tables.silver_path(database, "t"))).to_pylist()
        there = {(row[tables.SHARD_TABLE], row["id"]): row["a"] for row in found}
        assert there["t_1", 4] == xid.strip("'")
        assert {shard for shard, _ in there} == {"t_1"}
