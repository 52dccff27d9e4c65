"""A server that may not be written to is snapshotted as exactly: its marks stand in the lake, and nothing is locked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.shards.test_snapshots import assert_rebuilt
from tests.kit.road import Road
from tests.kit.snapshots import Reader, Reading, changing, patiently, rows, states
from tests.support.captures import info_of
from tests.support.replica_pair import executed, promote, replica_pair, words
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.errors import SourceUnavailable
from tidegate.lake.figures.status import bronze_files
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import connect
from tidegate.snapshot.marks import unlogged_marks
from tidegate.snapshot.marks.marks import MarksRefused, MarkWriter
from tidegate.snapshot.marks.unlogged_marks import UnloggedMarks
from tidegate.snapshot.progress.events import EventKind
from tidegate.snapshot.progress.requests import events_of, told
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.watermark import Mark, MarkKind
from tidegate.snapshot.work import SnapshotWork

pytestmark = [pytest.mark.server, pytest.mark.spark]


class Quiet(Road):
    """Each capture waits for a heartbeat. Beside a writer none is ever idle: it ends by its time."""

    def capture(self, *, seconds: float = 4, heartbeat: bool = True) -> None:
        super().capture(seconds=seconds, heartbeat=True)


@contextmanager
def read_only(server: Server) -> Iterator[None]:
    server.query("SET GLOBAL read_only = 1")
    try:
        yield
    finally:
        server.query("SET GLOBAL read_only = 0")


def changes(number: int) -> Iterator[str]:
    yield f"UPDATE t SET a = 'now {number}' WHERE id % 50 = {number % 50}"
    yield f"DELETE FROM t WHERE id = {number * 3 % 900}"
    yield f"REPLACE INTO t VALUES ({number * 7 % 900}, 'again'), ({1000 + number}, 'more')"
    yield f"INSERT INTO bare VALUES ({number % 5}, 'more')"
    yield f"DELETE FROM bare WHERE id = {number % 40} LIMIT 1"


@pytest.mark.timeout(1800)
def test_a_read_only_server_is_read_between_places_of_its_log(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    for name, key in (("t", "PRIMARY KEY"), ("bare", "")):
        any_server.query(f"CREATE TABLE {database}.{name} (id INT {key}, a VARCHAR(20))")
        any_server.query(f"INSERT INTO {database}.{name} VALUES {rows(1, 900)}")
    any_server.query(f"GRANT LOCK TABLES ON *.* TO '{any_server.user}'@'%'")
    road = Quiet(any_server, tmp_path, include=f"{database}.*")
    road.file.write_text(road.text + "snapshot: {chunk_rows: 100, parallel: 2}\n")
    road.pipeline = config.load(road.file)
    road.capture()
    reading = Reading(road, spark)
    with read_only(any_server):
        with changing(any_server, database, changes, 0.1):  # as a replica's rows do
            app = reading.run()
        assert states(app) == {"t": "active", "bare": "active"}, (app.states, told(road.lake, "road"))
        assert any("read without marks in its log" in line for line in reading.lines)
        road.capture()
        road.apply(spark)
        assert road.assert_equal().keys() == {"t", "bare"}
        events = events_of(road.lake, "road")
        assert {one.event for one in events} >= {EventKind.MARKED, EventKind.PLACED}
        marks = [one.token for one in events if one.event is EventKind.MARKED]
        assert len(marks) == len({one.token for one in events if one.event is EventKind.PLACED}) >= 3

        # Nobody writes any more, and silver is wrong: the place stays, and heartbeats pass it.
        with any_server.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute("DELETE FROM t WHERE id > 1000")
            cursor.execute("UPDATE t SET a = 'unheard' WHERE id < 100")
            connection.commit()
        app = reading.run(f"{database}.t")
        assert states(app)["t"] == "active"
        assert road.assert_equal().keys() == {"t", "bare"}
    assert_rebuilt(road, spark, f"{database}.t")


def test_a_wave_of_a_quiet_server_ends_above_the_cut_of_its_view(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """A view's rows begin above the last transaction that it sees, also where the log has ended there."""
    database = fresh_database(any_server)
    any_server.query(f"CREATE TABLE {database}.bare (id INT, a VARCHAR(20))")
    any_server.query(f"INSERT INTO {database}.bare VALUES {rows(1, 9)}")
    any_server.query(f"GRANT LOCK TABLES ON *.* TO '{any_server.user}'@'%'")
    road = Quiet(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    road.apply(spark)
    any_server.query(f"INSERT INTO {database}.bare VALUES (10, 'new')")
    road.capture()
    reading = Reading(road, spark)
    with read_only(any_server):
        reader = Reader(SnapshotWork(road.pipeline, road.lake, lambda _: road.info, reading.lines.append))
        while EventKind.WAVE not in {event.event for event in events_of(road.lake, "road")}:
            assert not reader.is_over(0.1), reading.lines
        road.apply(spark)  # up to where the view was
        for _ in patiently():
            road.capture()
            app = road.apply(spark)
            if reader.is_over(0.3) and states(app) == {"bare": "active"}:
                break
        assert states(app) == {"bare": "active"}, told(road.lake, "road")
        assert road.assert_equal() == {"bare": 10}


def test_a_wave_in_which_its_server_is_promoted_goes_on_and_one_that_capture_left_is_none(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, info = fresh_database(any_server), info_of(any_server)
    any_server.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    road = Quiet(any_server, tmp_path, include=f"{database}.*")
    low, high = (Mark("snapshot", 1, kind, "0" * 32) for kind in (MarkKind.LOW, MarkKind.HIGH))
    monkeypatch.setattr(unlogged_marks, "SNAPSHOT_STANDING_SECONDS", 1.0)

    def resolved() -> int:
        road.capture()
        return max(file.resolved_ts for file in bronze_files(road.lake)["one"])

    with WorkerConnection(info) as asked, connect(info) as marking:
        marks = UnloggedMarks(asked, marking, road.lake, "road", "one")
        with read_only(any_server):
            marks.begin()
            before = resolved()
            marks.write(low)
        any_server.query(f"INSERT INTO {database}.t VALUES (1)")  # it is a primary now, and a read would see this
        with pytest.raises(SourceUnavailable, match="capture hasn't landed this server's log"):
            marks.write(high)
        after = resolved()
        marks.write(high)
        (marked,) = [one for one in events_of(road.lake, "road") if one.event is EventKind.MARKED]
        assert marked.low_ts is not None
        assert marked.high_ts is not None
        assert marked.low_ts <= before < marked.high_ts <= after

        asked.server_uuid = "00000000-0000-0000-0000-000000000000"  # of a server that capture doesn't read any more
        left = UnloggedMarks(asked, marking, road.lake, "road", "one")
        left.write(low)
        with pytest.raises(SourceUnavailable, match="is capture running, and at this server"):
            left.write(high)
    assert [one for one in events_of(road.lake, "road") if one.event is EventKind.MARKED] == [marked]


@pytest.mark.parametrize("flavour", ["mariadb", "mysql9"])
def test_into_a_replicas_log_goes_nothing_until_it_is_promoted(flavour: str, tmp_path: Path) -> None:
    with replica_pair(flavour, tmp_path) as pair:
        pair.primary.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON tidegate.* TO '{pair.primary.user}'@'%'")
        pair.replicated()
        info = info_of(pair.replica)
        with connect(info) as connection:
            marks = MarkWriter(connection, info, "pipeline", "one")
            with pytest.raises(MarksRefused, match="is a replica"):
                marks.begin()
            pair.replicated()
            pair.replica.query(words(pair.replica, "STOP"))  # MariaDB's account may not see that it is one
            with pytest.raises(MarksRefused, match=r"(be|is) a replica"):
                marks.begin()
            assert executed(pair.replica) == executed(pair.primary)
            promote(pair.replica)
            if flavour == "mariadb":
                with pytest.raises(MarksRefused, match="GRANT REPLICA MONITOR"):
                    marks.begin()
                pair.replica.query(f"GRANT REPLICA MONITOR ON *.* TO '{info.user}'@'%'")
        with connect(info) as connection:
            marks = MarkWriter(connection, info, "pipeline", "one")
            marks.begin()
            marks.write(Mark("snapshot", 1, MarkKind.LOW, "0" * 32))
        assert executed(pair.replica) != executed(pair.primary)
