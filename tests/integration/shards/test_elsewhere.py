"""A shard that routes bring into another table: its rows in the first one are said, and go with that one's snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.snapshots import Reading, states
from tests.support.readers import by_duckdb
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.local.server import Server
from tidegate.tables import SHARD_TABLE, WATERMARK_DATABASE, silver_path
from tidegate.verify.strays import STRAY

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(600)]


def test_rows_of_a_shard_that_flows_elsewhere_by_now(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    routes = "[{{match: '{db}.t_{t}', to: {db}.t}}, {{match: '{db}.t_{u}', to: {db}.u}}]"
    before, after = (routes.format(db=database, t=t, u=u) for t, u in (("[12]", "3"), ("1", "[23]")))
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", routes: {before}")
    road.capture()
    for shard in (1, 2, 3):
        mariadb.query(f"CREATE TABLE {database}.t_{shard} (id INT PRIMARY KEY, a INT)")
        mariadb.query(f"INSERT INTO {database}.t_{shard} VALUES (1, {shard}), (2, {shard})")
    road.capture()
    road.apply(spark)
    assert road.assert_equal() == {"t_1": 2, "t_2": 2, "t_3": 2}

    road.file.write_text(road.text.replace(before, after))
    road.pipeline = config.load(road.file)
    mariadb.query(f"DELETE FROM {database}.t_2 WHERE id = 1")
    road.capture()
    road.apply(spark)
    app = Reading(road, spark).run()
    assert set(states(app).values()) == {"active"}
    with pytest.raises(AssertionError, match=f"{database}.t: .* {STRAY[:30]}"):
        road.assert_equal()
    Reading(road, spark).run(f"{database}.t")
    assert road.assert_equal() == {"t_1": 2, "t_2": 1, "t_3": 2}
    assert shards(road, database, "t") == {"t_1": 2}
    assert shards(road, database, "u") == {"t_2": 1, "t_3": 2}


def shards(road: Road, database: str, table: str) -> dict[str, int]:
    """How many rows silver has of each shard."""
    names = by_duckdb(road.lake.uri(silver_path(database, table))).column(SHARD_TABLE).to_pylist()
    return {name: names.count(name) for name in sorted(set(names))}
