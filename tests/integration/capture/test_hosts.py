"""A source with a list of hosts: which of them capture reads while they die, come back, fall behind, and lose things.

In:  a primary and its replica of each flavour, and a server of another cluster; one pipeline whose connection lists
     them in several orders.
Out: every transaction once, from whichever host has it; an error that names each host where none can go on; silver
     equal to the last primary.

One story per flavour, so that two servers are started, and not two for each of its chapters.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pymysql.cursors import DictCursor
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.captures import Background, bronze_segments, wait_for_bronze
from tests.support.replica_pair import Pair, executed, promote, purge_logs, replica_pair, replicate, until, words
from tidegate.capture.captured import Captured
from tidegate.capture.recovery import recover
from tidegate.capture.value_log.log import ValueLog
from tidegate.commit_ts import physical_ms
from tidegate.config import load
from tidegate.errors import PositionLost, SourceUnavailable
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.figures.status import captured_server
from tidegate.local.server import Server, free_port
from tidegate.mysql.capturing.acceptance import find_gap
from tidegate.mysql.capturing.reader import BinlogSource, binlog_run
from tidegate.mysql.checking.examination import examine
from tidegate.mysql.connecting.connection import ConnectionInfo, Endpoint
from tidegate.mysql.looking.position_asker import PositionAsker
from tidegate.mysql.servers.hosts import host_of
from tidegate.position import MariadbGtidPosition, MysqlGtidSet

pytestmark = [pytest.mark.server, pytest.mark.timeout(1200)]


@pytest.fixture(params=["mariadb", "mysql9"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """Both have the account with one password, as a replicated account has."""
    with replica_pair(request.param, tmp_path) as found:
        for server in (found.replica, request.getfixturevalue(request.param)):
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_log_bin = 0")
                cursor.execute("CREATE USER IF NOT EXISTS hosts@'%%' IDENTIFIED BY %s", (found.primary.password,))
                for grant in server.grants:
                    cursor.execute(f"GRANT {grant} TO hosts@'%'")
        with found.primary.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            cursor.execute("CREATE USER hosts@'%%' IDENTIFIED BY %s", (found.primary.password,))
            for grant in found.primary.grants:
                cursor.execute(f"GRANT {grant} TO hosts@'%'")
        yield found


class Story:
    """A pipeline, and what its connection's hosts are in a chapter."""

    def __init__(self, pair: Pair, folder: Path, stranger: Server) -> None:
        self.a, self.b, self.stranger = pair.primary, pair.replica, stranger
        self.road = Road(self.a, folder, include="shop.*")
        self.rows = 0

    def hosts(self, *servers: Server | int) -> ConnectionInfo:
        """In this order; a number is a port where nobody listens."""
        ends = [Endpoint("127.0.0.1", one if isinstance(one, int) else one.port) for one in servers]
        own = ConnectionInfo(ends[0].host, ends[0].port, "hosts", self.road.server.password)
        return replace(own, others=tuple(ends[1:]))

    def insert(self, server: Server, before: str = "") -> None:
        self.rows += 1
        with server.connect("shop") as connection, connection.cursor() as cursor:
            if before:
                cursor.execute(before)
            cursor.execute("INSERT INTO orders VALUES (%s, %s)", (self.rows, server.port))

    def run(self, *servers: Server | int, seconds: float = 60) -> None:
        self._run(*servers).run(seconds, idle_seconds=1)

    def gets_to(self, server: Server, *servers: Server | int) -> None:
        """Read that one of these until all is captured that it has; a busy machine may need several runs."""
        for _ in range(10):
            self.run(*servers)
            if self.reached(server):
                return
        raise AssertionError(f"{self.gtids} of {self.read_from} is captured, {server} has {executed(server)}")

    def background(self, *servers: Server | int) -> Background:
        return Background(self._run(*servers))

    def _run(self, *servers: Server | int):  # type: ignore[no-untyped-def]
        road = self.road
        return binlog_run(road.pipeline, "one", self.hosts(*servers), road.folder / "state")

    @property
    def read_from(self) -> Server | None:
        """Whose the newest segment is."""
        found = captured_server(self.road.lake, "one")
        ids = {101: self.a, 102: self.b}
        return ids.get(found[0]) if found else None

    @property
    def gtids(self) -> str:
        last = next(Bronze(self.road.lake, "one").newest_first())
        return last.gtid_executed

    def reached(self, server: Server) -> bool:
        kind = MariadbGtidPosition if server.flavour == "mariadb" else MysqlGtidSet
        return self.read_from is server and kind.parse(self.gtids) == kind.parse(executed(server))


def test_capture_reads_whichever_host_has_what_comes_next(
    pair: Pair, tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.mysql.servers.fence.FENCE_LOOK_SECONDS", 1.0)
    stranger = request.getfixturevalue("mariadb" if pair.primary.flavour == "mariadb" else "mysql9")
    story = Story(pair, tmp_path, stranger)
    pair.primary.query("CREATE DATABASE shop")
    _a_dead_host_in_front_is_passed_over(story, pair)
    _the_primary_dies_while_its_replica_is_behind(story)
    _a_former_primary_that_comes_back_alone_is_not_read(story)
    _a_former_primary_that_lives_on_is_left_once_it_is_fenced_off(story)
    _an_errant_transaction_is_told_of_before(story)
    _a_host_that_purged_it_is_passed_over(story)
    story.road.server = story.a
    story.road.apply(spark)
    assert story.road.assert_equal() == {"orders": story.rows}
    _no_host_has_it(story)


def _a_dead_host_in_front_is_passed_over(story: Story, pair: Pair) -> None:
    """And the replica, though it stands before the server that was captured and has all of it."""
    story.run(free_port(), story.a, story.b)
    story.a.query("CREATE TABLE shop.orders (id INT PRIMARY KEY, at_port INT)")
    tag = "SET gtid_domain_id = 7" if story.a.flavour == "mariadb" else "SET gtid_next = 'AUTOMATIC:blue'"
    story.insert(story.a, tag)
    story.gets_to(story.a, free_port(), story.a, story.b)
    pair.replicated()
    story.insert(story.a)
    story.gets_to(story.a, story.b, story.a)
    assert host_of(story.hosts(story.b, story.a), captured_server(story.road.lake, "one")).port == story.a.port


def _the_primary_dies_while_its_replica_is_behind(story: Story) -> None:
    """One run sees it through: the replica is waited for, then read, and written to after it was promoted."""
    with (
        story.background(story.a, story.b) as run,
        story.b.connect("shop") as holder,
        holder.cursor() as cursor,
    ):
        until(lambda: story.reached(story.a))
        cursor.execute("LOCK TABLES orders READ")
        story.insert(story.a)
        until(lambda: story.reached(story.a))
        had = executed(story.a)
        until(lambda: _received(story.b, had))  # and can't apply it
        story.a.kill()
        threading.Timer(2, cursor.execute, ["UNLOCK TABLES"]).start()
        until(lambda: executed(story.b) == had or run.error is not None)
        promote(story.b)
        story.insert(story.b)
        until(lambda: story.reached(story.b) or run.error is not None)
    assert story.reached(story.b)


def _a_former_primary_that_comes_back_alone_is_not_read(story: Story) -> None:
    """It has all that is captured and answers first; the primary writes on, and nobody tells it."""
    story.a.start()
    wakes = PositionAsker(story.hosts(story.a, story.b), str(_position(story.b)))
    assert wakes.position() == str(_position(story.b))
    wakes.close()
    story.run(story.a, story.b)
    story.insert(story.b)
    story.gets_to(story.b, story.a, story.stranger, story.b)
    with pytest.raises(SourceUnavailable) as caught:  # the dead one may come back with all of it
        story.run(free_port(), story.a, story.stranger, seconds=2)
    assert "none of the source's 3 hosts can go on" in str(caught.value)
    assert str(caught.value).count("doesn't have transactions that were captured") == 2
    with pytest.raises(PositionLost):
        story.run(story.a, story.stranger, seconds=2)
    replicate(story.b, story.a)
    until(lambda: executed(story.a) == executed(story.b))


def _a_former_primary_that_lives_on_is_left_once_it_is_fenced_off(story: Story) -> None:
    """While it is read, and by who connects anew; not before the other one has something that it lacks."""
    with story.background(story.b, story.a) as run:
        story.b.query("SET GLOBAL read_only = 1")
        promote(story.a)
        time.sleep(3)
        assert story.read_from is story.b, "it has all that there is"
        story.insert(story.a)
        until(lambda: story.reached(story.a) or run.error is not None)
    assert story.reached(story.a)
    story.b.query("SET GLOBAL read_only = 0")
    replicate(story.a, story.b)
    until(lambda: executed(story.a) == executed(story.b))
    promote(story.b)
    story.insert(story.b)
    story.run(story.a, story.b, seconds=5)
    assert story.read_from is story.a, "as long as it may be written to nobody can tell the two apart"
    story.a.query("SET GLOBAL read_only = 1")
    story.gets_to(story.b, story.a, story.b)
    story.a.query("SET GLOBAL read_only = 0")
    replicate(story.b, story.a)
    until(lambda: executed(story.a) == executed(story.b))


def test_commits_of_a_promoted_host_keep_their_time(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The former primary lives on, fenced off and quiet, and is read meanwhile: its heartbeats prove nothing."""
    monkeypatch.setattr("tidegate.mysql.servers.fence.FENCE_LOOK_SECONDS", 8.0)
    story, lake = Story(pair, tmp_path, pair.primary), tmp_path / "lake"
    pair.primary.query("CREATE DATABASE shop")
    pair.primary.query("CREATE TABLE shop.orders (id INT PRIMARY KEY, at_port INT)")
    with story.background(story.a, story.b) as run:
        wait_for_bronze(lake, lambda segments: segments or run.error is not None)
        story.insert(story.a)
        wait_for_bronze(lake, lambda segments: run.error is not None or any(one.has_bytes for one in segments))
        pair.replicated()
        story.a.query("SET GLOBAL read_only = 1")
        time.sleep(1)
        promote(story.b)
        time.sleep(1.5)
        story.insert(story.b)
        committed_ms = int(story.b.query("SELECT UNIX_TIMESTAMP(NOW(6)) * 1000")[0][0])
        until(lambda: story.reached(story.b) or run.error is not None)
    newest = [one for one in bronze_segments(lake) if one.txn_count][-1]
    assert abs(physical_ms(newest.max_commit_ts) - committed_ms) < 2_000


def test_commits_keep_their_time_when_a_replica_that_is_read_stops(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It followed its primary at the last look: from the stop on its heartbeats prove nothing."""
    monkeypatch.setattr("tidegate.mysql.servers.fence.FENCE_LOOK_SECONDS", 8.0)
    story, lake = Story(pair, tmp_path, pair.primary), tmp_path / "lake"
    pair.primary.query("CREATE DATABASE shop")
    pair.primary.query("CREATE TABLE shop.orders (id INT PRIMARY KEY, at_port INT)")
    pair.replicated()
    story.b.query("SET GLOBAL read_only = 1")
    with story.background(story.b, story.a) as run:
        wait_for_bronze(lake, lambda segments: segments or run.error is not None)
        story.insert(story.a)
        wait_for_bronze(lake, lambda segments: run.error is not None or any(one.has_bytes for one in segments))
        time.sleep(1.5)
        story.b.query(words(story.b, "STOP"))
        time.sleep(1)
        story.insert(story.a)
        committed_ms = int(story.a.query("SELECT UNIX_TIMESTAMP(NOW(6)) * 1000")[0][0])
        until(lambda: story.reached(story.a) or run.error is not None)
    newest = [one for one in bronze_segments(lake) if one.txn_count][-1]
    assert abs(physical_ms(newest.max_commit_ts) - committed_ms) < 2_000


def _an_errant_transaction_is_told_of_before(story: Story) -> None:
    """And taken after the failover: it is part of the new primary's tables."""
    assert any("has what the host that is read has, and replicates" in line for line in _checked(story))
    story.insert(story.a, "SET gtid_domain_id = 8" if story.a.flavour == "mariadb" else "")
    assert any("has transactions that the host that is read lacks" in line for line in _checked(story))


def _a_host_that_purged_it_is_passed_over(story: Story) -> None:
    """The one that was captured last, too: by then its replica has more."""
    story.insert(story.b)
    until(lambda: story.a.query("SELECT count(*) FROM shop.orders") == [(story.rows,)])
    purge_logs(story.b)
    story.gets_to(story.a, story.b, story.a)
    promote(story.a)
    story.b.kill()


def _no_host_has_it(story: Story) -> None:
    """The log is reset at the only host that is left: a person is asked, at the host that answers."""
    story.insert(story.a)
    story.run(story.a)
    flush = "RESET MASTER" if story.a.flavour == "mariadb" else "RESET BINARY LOGS AND GTIDS"
    story.a.query(flush)
    with pytest.raises(PositionLost):
        story.run(story.a, seconds=2)
    road = story.road
    source = BinlogSource(road.pipeline, "one", story.hosts(story.b, story.a), road.lake)
    bronze, value_log = Bronze(road.lake, "one"), ValueLog(road.folder / "aside")
    try:
        recovered = recover(bronze, value_log, source.nothing)
        gap = find_gap(source, Captured(bronze, value_log, recovered.tail), recovered.checkpoint)
    finally:
        value_log.close()
    assert gap is not None
    assert gap.where.endswith(f":{story.a.port}")
    assert "not asked: 127.0.0.1:" in gap.why


def _received(replica: Server, executed_there: str) -> bool:
    """Whether a replica has read all that its primary has executed."""
    with replica.connect(cursorclass=DictCursor) as connection, connection.cursor() as cursor:
        cursor.execute(f"{words(replica, 'SHOW')} STATUS")
        (row,) = cursor.fetchall()
    if replica.flavour == "mariadb":
        received = MariadbGtidPosition.parse(row["Gtid_IO_Pos"])
        return received.covers(MariadbGtidPosition.parse(executed_there))
    both = f"{row['Executed_Gtid_Set']},{row['Retrieved_Gtid_Set']}".replace("\n", "").strip(",")
    return MysqlGtidSet.parse(both).covers(MysqlGtidSet.parse(executed_there))


def _position(server: Server) -> str:
    row = server.query("SHOW MASTER STATUS" if server.flavour == "mariadb" else "SHOW BINARY LOG STATUS")[0]
    return f"{row[0]}:{row[1]}"


def _checked(story: Story) -> list[str]:
    """What is said of the host that isn't read."""
    found = examine(load(story.road.file), story.road.lake, lambda _: story.hosts(story.a, story.b))
    return [str(line) for line in found.lines if "host 127" in str(line)]
