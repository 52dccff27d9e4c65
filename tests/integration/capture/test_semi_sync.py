"""Semi-synchronous replication: a commit that was acknowledged is in bronze, though the primary is gone a moment later.

In:  a real server that waits for a replica's reply before it answers COMMIT, and has no other replica than capture.
Out: what clients were told is committed, looked for in bronze byte by byte.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from tests.support.captures import (
    Background,
    binlog_end,
    bronze_segments,
    capture_run,
    capture_until_quiet,
    info_of,
)
from tests.support.servers import FreshDatabase
from tidegate.errors import SourceRefused
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import connect
from tidegate.mysql.facts.server_facts import read_facts
from tidegate.mysql.start.settled import settled

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

WRITERS = 4
COMMITS_MIN = 200


@pytest.fixture
def waiting_server(any_server: Server, fresh_database: FreshDatabase) -> Iterator[tuple[Server, str, str]]:
    """(a server whose commits wait, the word its variables use, a database with a table t)."""
    database = fresh_database(any_server)  # now: a moment later nothing is committed without capture
    any_server.query(f"CREATE TABLE `{database}`.t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40))")
    any_server.query(f"CREATE TABLE `{database}`.large (b LONGBLOB)")
    any_server.query("SET GLOBAL max_allowed_packet = 268435456")
    mariadb = any_server.flavour == "mariadb"
    word = "master" if mariadb else "source"
    if not mariadb:
        any_server.query("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    any_server.query(f"SET GLOBAL rpl_semi_sync_{word}_timeout = 600000")
    any_server.query(f"SET GLOBAL rpl_semi_sync_{word}_enabled = 1")
    point = any_server.variables[f"rpl_semi_sync_{word}_wait_point"]
    try:
        yield any_server, word, database
    finally:
        if any_server.process is None:
            any_server.start()
        any_server.query(f"SET GLOBAL rpl_semi_sync_{word}_enabled = 0")
        any_server.query(f"SET GLOBAL rpl_semi_sync_{word}_wait_point = {point}")
        if not mariadb:
            any_server.query("UNINSTALL PLUGIN rpl_semi_sync_source")


def _status(server: Server, word: str, name: str) -> int:
    return int(server.query(f"SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_{word}_{name}'")[0][1])


class Writers:
    """Clients that insert one row per transaction, and remember what the server said is committed."""

    def __init__(self, server: Server, database: str) -> None:
        self.told: list[str] = []
        self._server, self._database = server, database
        self._threads = [threading.Thread(target=self._write, args=(n,)) for n in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def _write(self, writer: int) -> None:
        with contextlib.suppress(pymysql.err.MySQLError, OSError):
            connection = self._server.connect(self._database, autocommit=True)
            with connection.cursor() as cursor:
                for number in range(1_000_000):
                    name = f"told-{writer}-{number:07d}."
                    cursor.execute("INSERT INTO t (name) VALUES (%s)", (name,))
                    self.told.append(name)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


def test_what_was_acknowledged_is_in_bronze_after_the_primary_was_killed(
    waiting_server: tuple[Server, str, str], tmp_path: Path
) -> None:
    server, word, database = waiting_server
    lake = tmp_path / "lake"
    with Background(capture_run(server, lake, semi_sync=True)) as capture:
        _wait(lambda: _status(server, word, "clients") == 1, "capture is a replica that replies")
        before, unanswered = (_status(server, word, name) for name in ("yes_tx", "no_tx"))
        writers = Writers(server, database)
        _wait(lambda: len(writers.told) >= COMMITS_MIN, "commits that were replied to")
        # MySQL counts one reply for a group that commits together, of at most one transaction per client.
        assert _status(server, word, "yes_tx") - before >= COMMITS_MIN // WRITERS - 1
        assert _status(server, word, "no_tx") == unanswered, "nobody was answered without our reply"
        blob = os.urandom(20 << 20)  # its event comes in two packets, the second without a mark
        with server.connect(database, autocommit=True, max_allowed_packet=256 << 20) as connection:
            connection.cursor().execute("INSERT INTO large VALUES (%s)", (blob,))
        server.kill()
        writers.join()
        capture.stop.set()
    payload = b"".join(bytes(segment.payload) for segment in bronze_segments(lake))
    assert blob in payload
    assert [name for name in writers.told if name.encode() not in payload] == []
    server.start()
    result = capture_until_quiet(server, lake)
    assert result.last_seq == bronze_segments(lake)[-1].seq


def test_what_waits_for_a_reply_is_not_taken_for_lost_when_capture_starts_again(
    waiting_server: tuple[Server, str, str], tmp_path: Path
) -> None:
    """Another replica is to reply, and is away: the commit is in the log, capture has it, and no one else sees it."""
    server, word, database = waiting_server
    lake, commits_go_on = tmp_path / "lake", f"SET GLOBAL rpl_semi_sync_{word}_enabled = 0"
    server.query(commits_go_on)
    capture_until_quiet(server, lake)
    server.query(f"SET GLOBAL rpl_semi_sync_{word}_wait_point = AFTER_SYNC")
    server.query(f"SET GLOBAL rpl_semi_sync_{word}_enabled = 1")
    insert = threading.Thread(
        target=server.query, args=(f"INSERT INTO `{database}`.t VALUES (1, CONCAT('wa', 'its'))",)
    )
    insert.start()
    try:
        _wait(lambda: _captured(server, lake, b"waits"), "capture of what waits")
        assert server.query(f"SELECT COUNT(*) FROM `{database}`.t") == [(0,)]
        assert capture_until_quiet(server, lake).last_seq >= 1
    finally:
        server.query(commits_go_on)
        insert.join()
    server.query(f"INSERT INTO `{database}`.t VALUES (2, 'after')")
    assert _captured(server, lake, b"after")
    assert b"".join(bytes(one.payload) for one in bronze_segments(lake)).count(b"waits") == 1


def _captured(server: Server, lake: Path, what: bytes) -> bool:
    capture_until_quiet(server, lake)
    return any(what in bytes(segment.payload) for segment in bronze_segments(lake))


def test_a_first_start_begins_before_what_is_logged_but_not_committed(
    waiting_server: tuple[Server, str, str],
) -> None:
    """The commit waits for a reply that nobody gives: it is in the log, and no SELECT sees it."""
    server, word, database = waiting_server
    info, point = info_of(server), server.variables[f"rpl_semi_sync_{word}_wait_point"]
    server.query(f"SET GLOBAL rpl_semi_sync_{word}_wait_point = AFTER_SYNC")
    with connect(info) as connection:
        facts = read_facts(connection, info)
    assert facts.position is not None
    commits_go_on = f"SET GLOBAL rpl_semi_sync_{word}_enabled = 0"
    insert = threading.Thread(target=server.query, args=(f"INSERT INTO `{database}`.t VALUES (1, NULL)",))
    insert.start()
    try:
        while binlog_end(server)[1] == facts.position.offset:
            time.sleep(0.01)
        if server.flavour == "mysql":
            threading.Timer(1.5, server.query, [commits_go_on]).start()
        began = settled(info, facts)
        seen = server.query(f"SELECT COUNT(*) FROM `{database}`.t")[0][0]
    finally:
        server.query(commits_go_on)
        insert.join()
        server.query(f"SET GLOBAL rpl_semi_sync_{word}_wait_point = {point}")
    assert began.position is not None
    if server.flavour == "mariadb":  # it says how far of its log is committed
        assert (seen, began.position.offset) == (0, facts.position.offset)
    else:  # where that can't be known it is waited for
        assert (seen, began.position.offset) == (1, binlog_end(server)[1])
        assert began.gtid_executed == server.query("SELECT @@GLOBAL.gtid_executed")[0][0].replace("\n", "")


def test_a_server_that_has_no_semi_sync_is_refused_by_name(mysql9: Server, tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match="semi_sync is set, but the server doesn't have it"):
        capture_run(mysql9, tmp_path / "lake", semi_sync=True).run(300)


def _wait(done: object, what: str, seconds: float = 300) -> None:
    assert callable(done)
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.05)
