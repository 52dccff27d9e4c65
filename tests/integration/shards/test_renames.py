"""A kept table becomes a shard by RENAME TABLE, also of a source that the cut goes on without.

In:  two real servers, a table of the first one that isn't a shard.
Out: silver equal to the union of the servers' own SELECTs; nobody has to drop anything.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.shards.test_shards import DEFINED, Shards
from tests.support.readers import by_duckdb
from tidegate import tables
from tidegate.lake.standing import held
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]


def test_a_kept_table_of_a_source_that_was_left_behind_becomes_a_shard(
    mariadb: Server, mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    road = Shards({"m": mariadb, "y": mysql9}, tmp_path, 1)
    with ExitStack() as ending:
        ending.callback(road.drop)
        road.capture_all()
        road.create()
        mariadb.query(f"CREATE TABLE only_m.loose ({DEFINED})")
        mariadb.query("INSERT INTO only_m.loose VALUES (1, 2, 3, 'loose')")
        road.fill(1000)
        road.equal(spark)

        shard = ("m", road.shards[0][1], "orders_9")
        _left_behind(road, spark, f"RENAME TABLE only_m.loose TO {shard[1]}.{shard[2]}")
        mariadb.query(f"INSERT INTO {shard[1]}.{shard[2]} VALUES (2, 2, 3, 'shard')")
        road.shards.append(shard)
        _catches_up(road, spark)

        _left_behind(road, spark, f"RENAME TABLE {shard[1]}.{shard[2]} TO only_m.loose")
        mariadb.query("INSERT INTO only_m.loose VALUES (3, 2, 3, 'loose')")
        road.shards.remove(shard)
        _catches_up(road, spark)
        rows = by_duckdb(road.lake.uri(tables.silver_path("only_m", "loose"))).to_pylist()
        there = {row[0] for row in mariadb.query("SELECT id FROM only_m.loose")}
        assert {row["id"] for row in rows} == there > {1, 2, 3}


def _left_behind(road: Shards, spark: SparkSession, rename: str) -> None:
    """The cut goes on without the first source, and then a statement of its links two tables."""
    whole = road.pipeline
    road.pipeline = whole.model_copy(update={"apply": whole.apply.model_copy(update={"stalled_seconds": 0})})
    road.servers["y"].query("INSERT INTO only_y.alone SELECT COALESCE(MAX(id), 0) + 1 FROM only_y.alone")
    road.capture("y")
    road.apply(spark)
    assert held.last_states(road.lake)["only_m.alone"].source == "m"
    road.servers["m"].query(rename)
    road.pipeline = whole


def _catches_up(road: Shards, spark: SparkSession) -> None:
    road.fill(2000 * len(road.shards))
    for _ in range(2):
        road.capture_all("m")
        road.apply(spark)
    road.equal(spark)
