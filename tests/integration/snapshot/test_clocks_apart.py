"""The reader's clock is ahead of apply's: what apply says of a table still counts behind the waves that it knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.snapshot.test_chunks import finished, road_of, state, stepped, stocked
from tests.support.plain_snapshot import PlainReader
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.lake import control
from tidegate.lake.standing.held import last_states, release
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(600)]


class Ahead(PlainReader):
    """Its machine's clock is ten minutes ahead."""

    def record(self, kind: EventKind, **cells: Any) -> None:
        at = datetime.now(UTC) + timedelta(minutes=10)
        event = SnapshotEvent(self.snapshot, "road", "one", kind, at, *self.name, **cells)
        control.append(self.road.lake, tables.SNAPSHOTS, [event.to_row()])


def test_a_table_that_is_held_meanwhile_takes_its_waves_when_it_catches_up(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    stocked(mariadb, database)
    road = road_of(mariadb, tmp_path, database)
    road.file.write_text(road.text + "ddl: {drop_column: ask}\n")
    road.pipeline = config.load(road.file)
    stepped(road, spark)
    reader, name = Ahead(road, database, "t"), f"{database}.t"
    reader.whole_wave(count=2, chunks=1)
    stepped(road, spark)
    mariadb.query(f"ALTER TABLE {database}.t DROP COLUMN n")
    mariadb.query(f"INSERT INTO {database}.t VALUES (77, 'z')")
    assert state(stepped(road, spark), database, "t") == "held"
    reader.whole_wave(count=4, chunks=1)
    assert state(stepped(road, spark), database, "t") == "held"
    assert reader.told.waiting, "nothing is lost: the wave is taken once the table goes on"
    assert not reader.told.state.is_over, reader.told
    release(road.lake, last_states(road.lake)[name])
    stepped(road, spark)
    app = finished(road, spark, reader)
    assert state(app, database, "t") == "active"
    assert road.assert_equal() == {"t": 11}
    reader.close()
