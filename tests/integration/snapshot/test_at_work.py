"""A large table is snapshotted while sessions write to it and apply dies at every point: silver is the source."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pymysql
import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.plain_snapshot import PlainReader
from tests.support.seeds import LONG
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import SnapshotState

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROWS = 100_000 if LONG else 20_000
WAVE_ROWS = ROWS // 2
# A source that is written to is never silent: capture goes on so long, and longer until it has what was there.
BUSY_SECONDS = 2
WRITERS = ("positional", "merge")
# Where apply dies, wave by wave; each kill is of the same window again, one step further.
POINTS = (
    ("apply_before_snapshot_version", "apply_after_snapshot_version", "apply_in_chunks"),
    ("apply_after_watermarks", "apply_after_merge"),
)


class Writer(threading.Thread):
    """Inserts, updates, deletes and key changes all over the table, a few per transaction, until it is told to stop."""

    def __init__(self, server: Server, database: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._connection, self._random, self._done = server.connect(database), random.Random(seed), threading.Event()
        self.transactions = 0

    def run(self) -> None:
        with self._connection.cursor() as cursor:
            while not self._done.wait(0.01):
                try:
                    for _ in range(self._random.randint(1, 4)):
                        self._change(cursor)
                    self._connection.commit()
                except pymysql.err.IntegrityError:
                    self._connection.rollback()
                self.transactions += 1

    def _change(self, cursor: pymysql.cursors.Cursor) -> None:
        key, other = self._random.randint(1, ROWS), self._random.randint(1, 2 * ROWS)
        sql, values = self._random.choice([
            ("UPDATE t SET n = n + 1 WHERE id BETWEEN %s AND %s", (key, key + 9)),
            ("DELETE FROM t WHERE id = %s", (key,)),
            ("UPDATE t SET id = %s WHERE id = %s", (other, key)),
            ("REPLACE INTO t (id, a, n) VALUES (%s, %s, 0)", (other, f"new {other}")),
        ])  # fmt: skip
        cursor.execute(sql, values)

    def stop(self) -> None:
        self._done.set()
        self.join()
        self._connection.close()


def stocked_road(server: Server, folder: Path, database: str, writer: str) -> Road:
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(40), n INT NOT NULL)")
        for first in range(1, ROWS, 10_000):
            rows = [(i, f"old {i}", i % 7) for i in range(first, first + 10_000)]
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", rows)
        connection.commit()
    road = Road(server, folder, include=f"{database}.*", apply=f", writer: {writer}")
    road.capture()
    return road


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("turn", range(len(WRITERS)) if LONG else [0])
def test_a_large_table_is_the_source_after_its_snapshot(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, turn: int
) -> None:
    # Each server and each writer once; with each other in the long run.
    writer = WRITERS[(turn + (any_server.flavour == "mysql")) % len(WRITERS)]
    database, chance = fresh_database(any_server), random.Random(5)
    road = stocked_road(any_server, tmp_path, database, writer)
    road.apply(spark)
    reader, busy = PlainReader(road, database, "t"), Writer(any_server, database, 7)
    busy.start()
    waves = iter(POINTS)
    while not reader.told.is_read:
        reader.low()
        while reader.rows_of_wave < WAVE_ROWS and reader.read(chance.randint(WAVE_ROWS // 10, WAVE_ROWS // 3)):
            if chance.random() < 0.1:  # a window ends in mid-wave
                road.capture(seconds=BUSY_SECONDS)
                road.apply(spark)
        reader.high()
        if reader.waves == 2:
            any_server.query(f"ALTER TABLE {database}.t ADD COLUMN c INT NOT NULL DEFAULT 3")
        road.capture(seconds=BUSY_SECONDS)
        for point in next(waves, ()):
            killed(spark, road.file, point)
        app = road.apply(spark)
        assert app.states[f"{database}.t"].state == "snapshot"
        assert reader.waves < 40, reader.told
    reader.end()
    road.capture(seconds=BUSY_SECONDS)
    killed(spark, road.file, "apply_before_publish")
    app = road.apply(spark)
    assert (app.states[f"{database}.t"].state, reader.told.state) == ("active", SnapshotState.DONE)
    busy.stop()
    road.capture()
    road.apply(spark)
    assert busy.transactions > 100
    assert road.assert_equal()["t"] > ROWS / 2
    lines: list[str] = []
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.t", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=lines.append) == 0, lines
    reader.close()
