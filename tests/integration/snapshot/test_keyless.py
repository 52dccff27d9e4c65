"""Tables without a key: read whole at one moment, their rows replace what silver has, and the log goes on behind it."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.snapshot.test_chunks import road_of, state, stepped
from tests.kit.road import Road
from tests.kit.snapshots import patiently
from tests.support.captures import info_of
from tests.support.driver import killed
from tests.support.replica_pair import until
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.snapshot.marks.marks import MarkWriter
from tidegate.snapshot.progress.events import SnapshotState, TableProgress
from tidegate.snapshot.progress.requests import request, told
from tidegate.snapshot.reader import ReaderSettings, SnapshotReader
from tidegate.snapshot.reading.table_reader import ChunkBounds
from tidegate.snapshot.view_reading import ExactView
from tidegate.snapshot.watermark import Mark, MarkKind
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROWS = 500
SMALL = ReaderSettings(parallel=2, chunk=ChunkBounds(90, 1 << 20, 2.0), waves_waiting=2)
# Where apply dies, of the window that has a wave: each kill is of the same window, one step further.
POINTS = (
    *("apply_before_snapshot_version", "apply_after_snapshot_version", "apply_in_chunks", "apply_in_merge"),
    *("apply_after_merge", "apply_before_publish"),
)


def stocked(server: Server, database: str) -> None:
    """`logs` has equal rows and NULLs, `nulls` a unique key with NULLs, `few` no row."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE logs (n INT, a VARCHAR(40), f FLOAT)")
        cursor.executemany(
            "INSERT INTO logs VALUES (%s, %s, %s)",
            [(None if n % 7 == 0 else n % 50, f"old {n % 20}", n % 3 / 10) for n in range(ROWS)],
        )
        cursor.execute("CREATE TABLE nulls (k INT NULL UNIQUE, a VARCHAR(40))")
        cursor.executemany("INSERT INTO nulls VALUES (%s, %s)", [(n or None, "x") for n in (0, 0, 1, 2)])
        cursor.execute("CREATE TABLE few (a INT)")
        connection.commit()
    server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
    server.query(f"GRANT LOCK TABLES ON *.* TO '{server.user}'@'%'")


def reader_of(road: Road, settings: ReaderSettings = SMALL) -> SnapshotReader:
    return SnapshotReader("road", "one", info_of(road.server), road.lake, settings, road.lines.append)


def look(times: int) -> Callable[[], bool]:
    """A stop() that says no so often."""
    left = iter([False] * times)
    return lambda: next(left, True)


def progress(road: Road) -> dict[str, TableProgress]:
    return {one.table: one for one in told(road.lake, "road", "one")}


def finished(road: Road, spark: SparkSession, *, seconds: float = 60) -> None:
    for _ in patiently():
        reader_of(road).run(stop=look(2))
        road.capture(seconds=seconds)
        road.apply(spark)
        if all(one.state.is_over for one in told(road.lake, "road", "one")):
            return
    raise AssertionError(told(road.lake, "road", "one"))


@pytest.mark.parametrize(
    ("any_server", "writer"), [("mariadb", "merge"), ("mysql9", "positional")], indirect=["any_server"]
)
def test_tables_without_a_key_are_whole_at_once_and_again(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(any_server)
    stocked(any_server, database)
    road = road_of(any_server, tmp_path, database, f"writer: {writer}")
    assert state(stepped(road, spark), database, "logs") == "held"
    names = ("logs", "nulls", "few")
    request(road.lake, "road", [("one", database, name) for name in names])
    any_server.query(f"INSERT INTO {database}.logs SELECT * FROM {database}.logs LIMIT 3")
    reader_of(road).run(stop=look(1))
    any_server.query(f"DELETE FROM {database}.logs WHERE n = 5")
    any_server.query(f"UPDATE {database}.nulls SET a = 'y'")
    any_server.query(f"INSERT INTO {database}.few VALUES (1), (1)")
    any_server.query(f"CREATE TABLE {database}.beside (a INT)")  # with a DDL a window goes through all versions
    any_server.query(f"DROP TABLE {database}.beside")
    road.capture()
    for point in POINTS:
        killed(spark, road.file, point)
    app = road.apply(spark)
    assert {state(app, database, name) for name in names} == {"snapshot"}
    finished(road, spark)
    assert road.assert_equal().keys() == set(names)

    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")  # silver goes wrong: it never hears of these
        cursor.execute("DELETE FROM logs WHERE n = 7 LIMIT 1")
        cursor.execute("INSERT INTO logs SELECT * FROM logs WHERE n = 9")
        connection.commit()
    request(road.lake, "road", [("one", database, "logs")])
    any_server.query(f"INSERT INTO {database}.logs VALUES (9, 'between', NULL)")
    assert state(stepped(road, spark), database, "logs") == "active"
    reader_of(road).run(stop=look(1))
    any_server.query(f"DELETE FROM {database}.logs WHERE n = 9")
    any_server.query(f"ALTER TABLE {database}.few ADD COLUMN b INT DEFAULT 4")
    finished(road, spark)
    assert road.assert_equal().keys() == set(names)
    assert {one.state for one in progress(road).values()} == {SnapshotState.DONE}
    lines: list[str] = []
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.logs", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=lines.append) == 0, lines


def test_a_transaction_that_is_open_is_not_waited_for(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """MySQL's lock waits for it, and who writes next waits for the lock: it is given up at once, and tried later."""
    database = fresh_database(any_server)
    stocked(any_server, database)
    road = road_of(any_server, tmp_path, database)
    stepped(road, spark)
    request(road.lake, "road", [("one", database, name) for name in ("logs", "nulls")])
    locks = any_server.flavour == "mysql"
    with any_server.connect(database) as open_one, open_one.cursor() as cursor:
        open_one.begin()
        cursor.execute("DELETE FROM logs WHERE n = 3")
        reader_of(road).run(stop=look(6))
        assert any("logs can't be read now: transactions" in line for line in road.lines) == locks, road.lines
        assert "nulls can't" not in " ".join(road.lines)
        assert {name: one.waves for name, one in progress(road).items()} == {"logs": 1 - locks, "nulls": 1}
        stepped(road, spark)
        open_one.commit()
    finished(road, spark)
    assert road.assert_equal() == {"logs": ROWS - 9, "nulls": 4, "few": 0}


class Busy(threading.Thread):
    """Inserts, changes and deletes rows of `logs`, equal ones among them, until it is told to stop."""

    def __init__(self, server: Server, database: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._connection, self._random, self._done = server.connect(database), random.Random(seed), threading.Event()
        self.transactions = 0
        self.longest = 0.0

    def run(self) -> None:
        with self._connection.cursor() as cursor:
            while not self._done.wait(0.002):
                began = time.monotonic()
                n = self._random.randrange(60)
                with contextlib.suppress(pymysql.err.OperationalError):  # deadlocks among them
                    match self._random.randrange(3):
                        case 0:
                            cursor.execute("INSERT INTO logs VALUES (%s, %s, 0.5), (%s, 'x', NULL)", (n, f"old {n}", n))
                        case 1:
                            cursor.execute("UPDATE logs SET a = %s WHERE n = %s LIMIT 2", (f"new {n % 9}", n))
                        case 2:
                            cursor.execute("DELETE FROM logs WHERE n = %s LIMIT 2", (n,))
                    self._connection.commit()
                    self.transactions += 1
                    self.longest = max(self.longest, time.monotonic() - began)

    def stop(self) -> None:
        self._done.set()
        self.join()
        self._connection.close()


def test_a_table_without_a_key_is_exact_while_sessions_write_to_it(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Each wave's place is another one; the log behind it is applied to all that the view has, and to nothing else."""
    database = fresh_database(any_server)
    stocked(any_server, database)
    any_server.query("SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2")
    any_server.query(f"ALTER TABLE {database}.logs ADD INDEX (n)")
    road = road_of(any_server, tmp_path, database)
    stepped(road, spark)
    writers = [Busy(any_server, database, seed) for seed in range(4)]
    for writer in writers:
        writer.start()
    for _ in range(2):
        request(road.lake, "road", [("one", database, "logs")])
        finished(road, spark, seconds=2)
    until(lambda: sum(writer.transactions for writer in writers) > 300, seconds=600)
    for writer in writers:
        writer.stop()
    stepped(road, spark)
    assert {(one.state, one.refused) for one in told(road.lake, "road", "one")} == {(SnapshotState.DONE, ())}
    assert road.assert_equal()["logs"] > 0


def test_a_view_shows_the_transaction_before_its_place_and_not_the_one_behind_it(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both change the table: the first must not be applied again to what the view has, the second must be applied."""
    database = fresh_database(mariadb)
    stocked(mariadb, database)
    road = road_of(mariadb, tmp_path, database)
    stepped(road, spark)
    marked, read = MarkWriter.write, ExactView.read

    def write(writer: MarkWriter, mark: Mark) -> None:
        marked(writer, mark)
        if mark.kind is MarkKind.LOW:
            mariadb.query(f"INSERT INTO {database}.logs VALUES (1, 'before', NULL)")

    def late(view: ExactView, *given: Any) -> None:
        mariadb.query(f"INSERT INTO {database}.logs VALUES (1, 'behind', NULL)")
        read(view, *given)

    monkeypatch.setattr(MarkWriter, "write", write)
    monkeypatch.setattr(ExactView, "read", late)
    request(road.lake, "road", [("one", database, "logs")])
    reader_of(road).run(stop=look(1))
    monkeypatch.undo()
    finished(road, spark)
    assert road.assert_equal()["logs"] == ROWS + 2
