"""A shard comes, or comes again, with a wider type than silver has by the others: no value is lost, nothing stops."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.snapshot.test_by_themselves import Reading, states
from tests.kit.road import Road
from tests.support.seeds import LONG
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.local.server import Server
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("writer", ["positional", "merge"] if LONG else ["positional"])
def test_a_wider_shard_joins_by_its_rows_by_create_and_by_create_again(
    writer: str, mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.t_3 (id INT PRIMARY KEY, a BIGINT)")
    mariadb.query(f"INSERT INTO {database}.t_3 VALUES (1, 5000000001)")
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    out = f", exclude: ['{database}.t_3']"
    routes = f", routes: [{{match: '{database}.t_[0-9]', to: {database}.t}}]"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=routes + out, apply=f", writer: {writer}")
    reading = Reading(road, spark)
    road.capture()
    for shard in (1, 2):
        mariadb.query(f"CREATE TABLE {database}.t_{shard} (id INT PRIMARY KEY, a SMALLINT)")
        mariadb.query(f"INSERT INTO {database}.t_{shard} VALUES (1, 11), (2, 22)")
    road.capture()
    road.apply(spark)
    assert road.assert_equal() == {"t_1": 2, "t_2": 2}

    mariadb.query(f"UPDATE {database}.t_1 SET a = 12 WHERE id = 1")
    mariadb.query(f"DROP TABLE {database}.t_2")
    mariadb.query(f"CREATE TABLE {database}.t_2 (id INT PRIMARY KEY, a INT)")
    mariadb.query(f"INSERT INTO {database}.t_2 VALUES (7, 1000000)")
    road.capture()
    app = road.apply(spark)
    assert set(states(app).values()) <= {"active"}, [state.reason for state in app.states.values()]
    assert road.assert_equal() == {"t_1": 2, "t_2": 1}

    road.file.write_text(road.text.replace(out, ""))
    road.pipeline = config.load(road.file)
    mariadb.query(f"UPDATE {database}.t_3 SET a = a + 1")
    mariadb.query(f"INSERT INTO {database}.t_1 VALUES (9, 99)")
    road.capture()
    road.apply(spark)
    app = reading.run()
    assert set(states(app).values()) <= {"active"}, [state.reason for state in app.states.values()]
    assert road.assert_equal() == {"t_1": 3, "t_2": 1, "t_3": 1}
