"""Two lakes with one past at one source: each hears the marks of the other's snapshots, and loses no row by them.

In:  a table of silver, read again in waves; a copy of the lake from between two waves.
Out: behind the end mark of its twin the copy has the source's rows; waves of both, one inside the other,
     are all taken.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.lake.test_copies import lake_command, second
from tests.kit.road import Road
from tests.kit.snapshots import patiently
from tests.support.captures import info_of
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.requests import request, told
from tidegate.snapshot.reader import ReaderSettings, SnapshotReader
from tidegate.snapshot.reading.table_reader import ChunkBounds
from tidegate.snapshot.wave_reading import WaveReading
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(1200)]

ROWS = 120


def read_waves(road: Road, count: int) -> None:
    """So many waves, of a few rows each; the end mark if nothing is left."""
    looks = iter([False] * count)
    settings = ReaderSettings(parallel=1, chunk=ChunkBounds(20, 1 << 20, 2.0), wave_bytes=1, waves_waiting=9)
    SnapshotReader("road", "one", info_of(road.server), road.lake, settings).run(stop=lambda: next(looks, True))


def half_read(server: Server, database: str, folder: Path, spark: SparkSession) -> Road:
    """A lake whose only table is whole, and read again as far as to the second wave."""
    server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
    road = Road(server, folder, include=f"{database}.*")
    road.capture()
    server.query("CREATE TABLE t (id INT PRIMARY KEY, v INT)", database=database)
    server.query(f"INSERT INTO t SELECT seq, seq FROM seq_1_to_{ROWS}", database=database)
    road.capture()
    road.apply(spark)
    request(road.lake, "road", [("one", database, "t")])
    read_waves(road, 2)
    road.capture(heartbeat=True)
    road.apply(spark)
    (progress,) = told(road.lake, "road", "one")
    assert progress.left, "some are to be read"
    assert progress.low_ts, "and some are taken"
    assert not progress.waiting
    return road


def read_to_its_end(road: Road, spark: SparkSession) -> None:
    for _ in patiently():
        read_waves(road, 9)
        road.capture(heartbeat=True)
        road.apply(spark)
        if all(table.state is SnapshotState.DONE for table in told(road.lake, "road", "one")):
            return
    raise AssertionError(told(road.lake, "road", "one"))


def test_a_lake_put_back_to_amid_a_snapshot_keeps_the_rows_that_its_later_waves_had(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = half_read(mariadb, database, tmp_path, spark)
    lake_command(road, "backup", str(tmp_path / "copy"))
    read_to_its_end(road, spark)
    after = second(road, tmp_path / "after", database)
    lake_command(after, "restore", str(tmp_path / "copy"))
    mariadb.query("INSERT INTO t VALUES (1000, 1)", database=database)
    after.capture(heartbeat=True)
    after.apply(spark)
    assert after.assert_equal() == {"t": ROWS + 1}
    read_to_its_end(after, spark)
    assert after.assert_equal() == {"t": ROWS + 1}


def test_the_end_mark_of_a_copys_snapshot_ends_not_the_other_ones(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = half_read(mariadb, database, tmp_path, spark)
    copy = second(road, tmp_path / "copy", database)
    shutil.copytree(tmp_path / "lake", tmp_path / "copy" / "lake")
    read_to_its_end(copy, spark)
    assert copy.assert_equal() == {"t": ROWS}
    mariadb.query("INSERT INTO t VALUES (1000, 1)", database=database)
    road.capture(heartbeat=True)
    road.apply(spark)
    assert road.assert_equal() == {"t": ROWS + 1}
    read_to_its_end(road, spark)
    assert road.assert_equal() == {"t": ROWS + 1}


@pytest.mark.parametrize("shared", [False, True], ids=["strangers", "copies"])
def test_waves_of_two_lakes_at_once_refuse_each_other_nothing(
    shared: bool,
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each wave of one has a whole wave of the other between its marks, and a window's end, too."""
    database = fresh_database(mariadb)
    road = half_read(mariadb, database, tmp_path, spark)
    other = second(road, tmp_path / "other", database)
    if shared:
        shutil.copytree(tmp_path / "lake", tmp_path / "other" / "lake")
    else:
        other._begun = False
        other.capture()
        request(other.lake, "road", [("one", database, "t")])
    roads, within = [road, other], [False]
    reads = WaveReading.run

    def nested(reading: WaveReading, *given: object) -> None:
        if not within[0]:
            within[0] = True
            read_waves(roads[1], 1)
            for each in roads:
                each.capture(heartbeat=True)
                each.apply(spark)
            within[0] = False
        reads(reading, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(WaveReading, "run", nested)
    for _ in range(20):
        roads.reverse()
        read_waves(roads[0], 2)
        for each in roads:
            each.capture(heartbeat=True)
            each.apply(spark)
        progress = [table for each in roads for table in told(each.lake, "road", "one")]
        assert not [table.refused for table in progress if table.refused]
        if all(table.state is SnapshotState.DONE for table in progress):
            break
    assert all(table.state is SnapshotState.DONE for table in progress), progress
    assert [each.assert_equal() for each in roads] == [{"t": ROWS}] * 2
