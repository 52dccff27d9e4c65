"""A primary whose commits wait dies while sessions write and a large transaction is under way; its replica takes over.

In:  a primary whose commits wait for capture and for its replica, a pipeline that knows both hosts, four writers.
Out: every row that a client was told is committed, in silver and at the new primary; nothing of the half transaction.
     Where capture alone had replied the new primary lacks what it was: capture stops, and names it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pymysql
import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.captures import Background, bronze_segments
from tests.support.replica_pair import Pair, executed, promote, replica_pair, until, words
from tidegate import config
from tidegate.capture.value_log import log as value_log
from tidegate.errors import PositionLost, SourceUnavailable
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo, Endpoint
from tidegate.position import MariadbGtidPosition, MysqlGtidSet
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

_WRITERS: Final = 4
_TOLD_MIN: Final = 60
_FIRST_ID: Final = 0x5B3C0000  # whose bytes are nowhere else in the log
_LARGE_ROWS: Final = 8
_LARGE_BYTES: Final = 4 << 20
_LARGE: Final = "SELECT COUNT(*) FROM shop.large"


@pytest.fixture(params=["mariadb", "mysql9"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """Of one account; commits wait for nobody yet."""
    with replica_pair(request.param, tmp_path) as found:
        for server in (found.primary, found.replica) if found.primary.flavour == "mysql" else ():
            for role in ("source", "replica"):
                server.query(f"INSTALL PLUGIN rpl_semi_sync_{role} SONAME 'semisync_{role}.so'")
        found.replica.query(f"SET GLOBAL {_word(found.replica, 'replica')}_enabled = 1")
        found.replica.query(words(found.replica, "STOP") + " IO_THREAD")
        found.replica.query(words(found.replica, "START") + " IO_THREAD")
        with found.replica.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            cursor.execute(f"ALTER USER '{found.replica.user}'@'%%' IDENTIFIED BY %s", (found.primary.password,))
        found.replica.password = found.primary.password
        yield found


def _word(server: Server, role: str) -> str:
    mariadb = {"source": "master", "replica": "slave"}[role]
    return f"rpl_semi_sync_{mariadb if server.flavour == 'mariadb' else role}"


def _clients(server: Server) -> int:
    return int(server.query(f"SHOW GLOBAL STATUS LIKE '{_word(server, 'source')}_clients'")[0][1])


def _commits_wait(server: Server, *, replies: int) -> None:
    """replies: how many a commit needs; MariaDB's need one."""
    word = _word(server, "source")
    server.query(f"SET GLOBAL {word}_timeout = 600000")
    server.query(f"SET GLOBAL {word}_wait_point = AFTER_SYNC")
    if server.flavour == "mysql":
        server.query(f"SET GLOBAL {word}_wait_for_replica_count = {replies}")
    server.query(f"SET GLOBAL {word}_enabled = 1")


class _Writers:
    """Sessions that insert until their server dies; told: ids of rows whose COMMIT was answered."""

    def __init__(self, server: Server) -> None:
        self.told: list[int] = []
        self._server = server
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(_WRITERS)]
        self._threads.append(threading.Thread(target=self._write_large))

    def begin(self) -> None:
        for thread in self._threads[:_WRITERS]:
            thread.start()

    def begin_large(self) -> None:
        self._threads[-1].start()

    def join(self) -> None:
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _write(self, writer: int) -> None:
        try:
            with self._server.connect("shop") as connection, connection.cursor() as cursor:
                for number in range(_FIRST_ID + 2 * writer, 1 << 31, 2 * _WRITERS):
                    cursor.execute("BEGIN")
                    cursor.execute("INSERT INTO told VALUES (%s, %s)", (number, writer))
                    cursor.execute("INSERT INTO told VALUES (%s, %s)", (number + 1, writer))
                    cursor.execute("COMMIT")
                    self.told += [number, number + 1]
        except (pymysql.err.MySQLError, OSError):
            return

    def _write_large(self) -> None:
        try:
            connection = self._server.connect("shop", max_allowed_packet=256 << 20)
            with connection, connection.cursor() as cursor:
                cursor.execute("BEGIN")
                for number in range(_LARGE_ROWS):
                    cursor.execute("INSERT INTO large VALUES (%s, %s)", (number, os.urandom(_LARGE_BYTES)))
                cursor.execute("COMMIT")
        except (pymysql.err.MySQLError, OSError):
            return


class _Story:
    """A pipeline with semi_sync, whose connection lists both hosts."""

    def __init__(self, pair: Pair, folder: Path) -> None:
        self.pair = pair
        self.road = Road(pair.primary, folder, include="shop.*")
        self.road.file.write_text(self.road.text.replace("start: now", "start: now, semi_sync: true"))
        self.road.pipeline = config.load(self.road.file)
        small = self.road.pipeline.capture.model_copy(update={"land_bytes": 1 << 20, "failover_wait_seconds": 60})
        self.road.pipeline = self.road.pipeline.model_copy(update={"capture": small})

    def background(self) -> Background:
        road, one, other = self.road, self.pair.primary, self.pair.replica
        info = ConnectionInfo(one.host, one.port, one.user, one.password)
        info = replace(info, others=(Endpoint(other.host, other.port),))
        return Background(binlog_run(road.pipeline, "one", info, road.folder / "state"))

    def begin(self, replies: int) -> None:
        self.pair.primary.query("CREATE DATABASE shop")
        self.road.capture()
        self.pair.primary.query("CREATE TABLE shop.told (id INT PRIMARY KEY, writer INT)")
        self.pair.primary.query("CREATE TABLE shop.large (id INT PRIMARY KEY, b LONGBLOB)")
        self.pair.replicated()
        self.road.capture()
        _commits_wait(self.pair.primary, replies=replies)

    def captured_by(self, server: Server) -> bool:
        """Whether bronze has all that the server has."""
        segments = bronze_segments(self.road.folder / "lake")
        return bool(segments) and _covers(server, segments[-1].gtid_executed, executed(server))


def _covers(server: Server, there: str, wanted: str) -> bool:
    if server.flavour == "mysql":
        return not MysqlGtidSet.parse(wanted).minus(MysqlGtidSet.parse(there)).intervals
    has = MariadbGtidPosition.parse(there).domains
    asked = MariadbGtidPosition.parse(wanted).domains
    return all(has.get(domain, (0, 0))[1] >= sequence for domain, (_, sequence) in asked.items())


def _dies_in_the_large_one(story: _Story, writers: _Writers, patched: pytest.MonkeyPatch) -> None:
    """Killed when capture has two segments of it, and the replica all that is before it."""
    real, primary, replica = value_log.ValueLog.append, story.pair.primary, story.pair.replica
    opened: list[Segment] = []
    killed = threading.Event()

    def append(log: value_log.ValueLog, segment: Segment) -> object:
        if segment.flags & SegmentFlag.OPEN_AT_END and not killed.is_set():
            opened.append(segment)
            if len(opened) == 2:
                until(lambda: _covers(replica, executed(replica), segment.gtid_executed))
                primary.kill()
                killed.set()
        return real(log, segment)

    patched.setattr(value_log.ValueLog, "append", append)
    writers.begin_large()
    assert killed.wait(300)
    writers.join()


def test_nothing_that_was_told_is_lost_when_the_primary_dies_in_mid_transaction(
    pair: Pair, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = _Story(pair, tmp_path)
    story.begin(replies=2)
    writers = _Writers(pair.primary)
    with story.background() as run:
        until(lambda: _clients(pair.primary) == 2, 300)
        writers.begin()
        until(lambda: len(writers.told) >= _TOLD_MIN, 300)
        with monkeypatch.context() as patched:
            _dies_in_the_large_one(story, writers, patched)
        pair.replica.query(words(pair.replica, "STOP") + " IO_THREAD")
        until(lambda: _has_applied(pair.replica))
        promote(pair.replica)
        pair.replica.query("INSERT INTO shop.told VALUES (-1, -1)")
        until(lambda: run.error is not None or story.captured_by(pair.replica), 300)
    there = {row[0] for row in pair.replica.query("SELECT id FROM shop.told")}
    assert set(writers.told) <= there
    road = story.road
    road.server = pair.replica
    road.apply(spark)
    assert road.assert_equal() == {"told": len(there), "large": pair.replica.query(_LARGE)[0][0]}


def test_what_capture_alone_replied_to_is_in_bronze_and_named_when_the_new_primary_lacks_it(
    pair: Pair, tmp_path: Path
) -> None:
    story = _Story(pair, tmp_path)
    story.begin(replies=1)
    pair.replica.query(words(pair.replica, "STOP") + " IO_THREAD")
    until(lambda: _clients(pair.primary) == 0, 300)
    writers = _Writers(pair.primary)
    with contextlib.suppress(SourceUnavailable), story.background():
        until(lambda: _clients(pair.primary) == 1, 300)
        writers.begin()
        until(lambda: len(writers.told) >= _TOLD_MIN, 300)
        pair.primary.kill()
        writers.join()
    promote(pair.replica)
    story.road.server = pair.replica
    with pytest.raises(PositionLost, match=r"doesn't have transactions that were captured: GTIDs .*shop\.told"):
        story.road.capture()
    payload = b"".join(bytes(one.payload) for one in bronze_segments(tmp_path / "lake"))
    lost = [one for one in writers.told if one.to_bytes(4, "little") not in payload]
    assert not lost


def _has_applied(replica: Server) -> bool:
    """All of its relay log."""
    with replica.connect() as connection, connection.cursor() as cursor:
        cursor.execute(words(replica, "SHOW") + " STATUS")
        names = [str(column[0]).lower() for column in cursor.description]
        told = dict(zip(names, cursor.fetchone(), strict=True))
    state = told.get("slave_sql_running_state") or told.get("replica_sql_running_state")
    return "has read all relay log" in str(state)
