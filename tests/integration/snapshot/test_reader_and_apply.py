"""The reader and apply together: what a pipeline's tables held before capture is in silver, while they change."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.captures import info_of
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.requests import request, told
from tidegate.snapshot.reader import ReaderSettings, SnapshotReader
from tidegate.snapshot.reading.table_reader import ChunkBounds
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]

_TABLES = {
    "orders": "id INT PRIMARY KEY, a VARCHAR(20), d DATETIME(3), f FLOAT",
    "lines": "place ENUM('b', 'a'), id INT, n DECIMAL(12,2), PRIMARY KEY (place, id)",
}


def test_tables_with_rows_from_before_are_read_by_the_reader_and_whole(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    for table, columns in _TABLES.items():
        any_server.query(f"CREATE TABLE {database}.{table} ({columns})")
    orders = ", ".join(f"({i}, 'old {i}', '2026-01-01 00:00:00.{i:03}', {i}.1)" for i in range(1, 200))
    lines = ", ".join(f"('{'ab'[i % 2]}', {i}, {i}.25)" for i in range(1, 150))
    any_server.query(f"INSERT INTO {database}.orders VALUES {orders}")
    any_server.query(f"INSERT INTO {database}.lines VALUES {lines}")
    any_server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{any_server.user}'@'%'")
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    road.apply(spark)
    request(road.lake, "road", [("one", database, table) for table in _TABLES])
    settings = ReaderSettings(parallel=2, chunk=ChunkBounds(30, 1 << 20, 2.0), wave_bytes=9000, waves_waiting=2)
    for step in range(12):
        looks = iter([False, False, True])
        reader = SnapshotReader("road", "one", info_of(any_server), road.lake, settings)
        reader.run(stop=lambda looks=looks: next(looks, True))
        any_server.query(f"UPDATE {database}.orders SET a = 'new {step}' WHERE id % 12 = {step}")
        any_server.query(f"DELETE FROM {database}.lines WHERE id = {7 * step + 1}")
        any_server.query(f"UPDATE {database}.orders SET id = id + 1000 WHERE id = {9 * step + 3}")
        road.capture()
        road.apply(spark)
        progress = told(road.lake, "road", "one")
        if all(one.state is SnapshotState.DONE for one in progress):
            break
    assert {one.table: (one.state, one.reason) for one in progress} == dict.fromkeys(_TABLES, (SnapshotState.DONE, ""))
    assert sum(one.waves for one in progress) > 2
    any_server.query(f"INSERT INTO {database}.orders VALUES (5000, 'last', NULL, NULL)")
    road.capture()
    road.apply(spark)
    assert road.assert_equal().keys() == _TABLES.keys()
