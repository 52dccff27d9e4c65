"""Chunks that a reader landed become rows of silver: a table that had rows before capture is whole, exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.kit.road import Road
from tests.support.plain_snapshot import PlainReader
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.local.server import Server
from tidegate.snapshot.events import SnapshotState

pytestmark = [pytest.mark.server, pytest.mark.spark]


def state(app: Application, database: str, table: str) -> str:
    """Of the silver table; active when nothing was ever said."""
    found = app.states.get(f"{database}.{table}")
    return found.state if found else "active"


def stocked(server: Server, database: str, rows: int = 10) -> None:
    """A table that has rows before capture begins."""
    server.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a VARCHAR(20), n INT)")
    values = ", ".join(f"({i}, 'old {i}', NULL)" for i in range(1, rows + 1))
    server.query(f"INSERT INTO {database}.t VALUES {values}")


def road_of(server: Server, folder: Path, database: str, settings: str = "writer: positional", more: str = "") -> Road:
    road = Road(server, folder, include=f"{database}.*", extra=more)
    road.text = road.text.replace("apply: {mode: batch}", f"apply: {{mode: batch, {settings}}}")
    road.file.write_text(road.text)
    road.pipeline = config.load(road.file)
    return road


def stepped(road: Road, spark: SparkSession) -> Application:
    road.capture()
    return road.apply(spark)


@pytest.mark.parametrize("writer", ["merge", "positional"])
def test_a_table_with_rows_from_before_is_whole_after_its_snapshot(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(any_server)
    stocked(any_server, database)
    road = road_of(any_server, tmp_path, database, f"writer: {writer}")
    app = stepped(road, spark)
    assert state(app, database, "t") == "held"
    reader = PlainReader(road, database, "t")
    reader.low()
    any_server.query(f"UPDATE {database}.t SET a = 'seen' WHERE id = 2")
    reader.read(3)
    any_server.query(f"UPDATE {database}.t SET a = 'too late' WHERE id = 3")
    any_server.query(f"DELETE FROM {database}.t WHERE id = 1")
    assert state(stepped(road, spark), database, "t") == "held", "a wave that is open changes nothing"
    reader.read(3)
    reader.high()
    any_server.query(f"UPDATE {database}.t SET id = 60 WHERE id = 6")
    assert state(stepped(road, spark), database, "t") == "snapshot"
    assert reader.told.waves == 1
    assert not reader.told.waiting
    any_server.query(f"INSERT INTO {database}.t VALUES (4000, 'new', 4)")
    reader.whole_wave(count=2, chunks=9)
    assert state(stepped(road, spark), database, "t") == "snapshot"
    assert not reader.told.left
    reader.end()
    any_server.query(f"DELETE FROM {database}.t WHERE id = 7")
    assert state(stepped(road, spark), database, "t") == "active"
    assert reader.told.state is SnapshotState.DONE
    assert road.assert_equal() == {"t": 9}
    reader.close()
