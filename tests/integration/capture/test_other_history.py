"""MariaDB: another server with GTIDs that look alike isn't gone on with; a replica, whatever it has written last, is.

In:  two servers of one server_id that went their own ways; a primary and its replica.
Out: capture refuses the first by the GTID that differs, and goes on at the second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import bronze_segments, capture_run, capture_to_end, source_of
from tests.support.own_server import own_server_or_skip
from tests.support.replica_pair import replica_pair
from tidegate.capture.captured import Captured
from tidegate.capture.recovery import recover
from tidegate.capture.value_log.log import ValueLog
from tidegate.errors import PositionLost
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.capturing.acceptance import find_gap

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


def _insert(server: Server, *ids: int, name: str) -> None:
    for number in ids:
        server.query("INSERT INTO shop.orders VALUES (%s, %s)", (number, name))


def test_a_server_with_the_same_gtids_and_a_history_of_its_own_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, options = tmp_path / "lake", ("--server-id=11",)
    first = own_server_or_skip("mariadb", tmp_path / "a", options=options)
    with first, own_server_or_skip("mariadb", tmp_path / "b", options=options) as second:
        for server in (first, second):
            server.query("CREATE DATABASE shop")
            server.query("CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(20))")
        capture_to_end(first, one)
        _insert(first, 0, 1, name="production")
        capture_to_end(first, one)
        _insert(first, 2, name="production")
        capture_to_end(first, one)
        captured = bronze_segments(one)
        time.sleep(1.1)
        _insert(second, 100, 101, 102, 103, 104, name="staging")
        with pytest.raises(PositionLost, match=r"another server.*GTID 0-11-5 is another transaction there.*s apart"):
            capture_run(second, one).run(60)
        assert bronze_segments(one) == captured

        source = source_of(second, one)
        value_log = ValueLog(one.parent / "state" / "value_log" / "test" / "one")
        bronze = Bronze(LakeFiles(str(one)), "one")
        recovered = recover(bronze, value_log, source.nothing)
        gap = find_gap(source, Captured(bronze, value_log, recovered.tail), recovered.checkpoint)
        value_log.close()
        assert gap is not None
        assert gap.segment.tables, "what differs is named, not passed over"
        capture_to_end(first, one)


def test_rows_that_differ_in_one_moment_are_told_apart(tmp_path: Path) -> None:
    one, options = tmp_path / "lake", ("--server-id=11",)
    first = own_server_or_skip("mariadb", tmp_path / "a", options=options)
    with first, own_server_or_skip("mariadb", tmp_path / "b", options=options) as second:
        for server in (first, second):
            server.query("CREATE DATABASE shop")
            server.query("CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(20))")
        capture_to_end(first, one)
        for server, name in ((first, "ours"), (second, "them")):
            for number in (0, 1):
                with server.connect("shop") as connection, connection.cursor() as cursor:
                    cursor.execute("SET timestamp = 1700000000")
                    cursor.execute("INSERT INTO orders VALUES (%s, %s)", (number, name))
        capture_to_end(first, one)
        with pytest.raises(PositionLost, match=r"GTID 0-11-4 is another transaction there: it has other rows"):
            capture_run(second, one).run(60)


def _slow(cursor: Any) -> None:
    """A replica dates its GTID event by its last statement, the primary by its COMMIT."""
    cursor.execute("BEGIN")
    cursor.execute("INSERT INTO a (v) VALUES (REPEAT('y', 30000))")
    time.sleep(2)
    cursor.execute("UPDATE a SET v = 'q' LIMIT 1")
    time.sleep(2)
    cursor.execute("COMMIT")


def _statements(*texts: str) -> Callable[[Any], None]:
    def run(cursor: Any) -> None:
        for text in texts:
            cursor.execute(text)

    return run


LAST: list[Callable[[Any], None]] = [
    _slow,
    _statements("INSERT INTO m VALUES (1, 'not transactional')"),
    _statements("INSERT INTO a (v) SELECT REPEAT('z', 9000) FROM seq_1_to_20"),
    _statements("SET timestamp = 1000000", "INSERT INTO a (v) VALUES ('old')"),
    _statements("XA START 'q'", "INSERT INTO a (v) VALUES ('x')", "XA END 'q'", "XA PREPARE 'q'", "XA COMMIT 'q'"),
    _statements("CREATE TABLE c AS SELECT * FROM a"),
    _statements("ALTER TABLE a ADD n INT"),
    _statements("SET gtid_domain_id = 7", "INSERT INTO a (v) VALUES ('of another domain')"),
    _statements("SET gtid_domain_id = 7", "INSERT INTO a (v) VALUES ('once more')"),
]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_replica_is_gone_on_with_whatever_came_last(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, compressed: bool
) -> None:
    lake = tmp_path / "lake"
    with replica_pair("mariadb", tmp_path / "pair") as pair:
        if compressed:
            pair.replica.query("SET GLOBAL log_bin_compress = ON")
        pair.primary.query("CREATE DATABASE shop")
        pair.primary.query("CREATE TABLE shop.a (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)")
        pair.primary.query("CREATE TABLE shop.m (id INT PRIMARY KEY, v TEXT) ENGINE = MyISAM")
        capture_to_end(pair.primary, lake)
        pair.primary.query("INSERT INTO shop.a (v) VALUES ('first')")
        for last in LAST:
            with pair.primary.connect("shop") as connection, connection.cursor() as cursor:
                last(cursor)
            capture_to_end(pair.primary, lake)
            pair.replicated()
            caplog.clear()
            capture_to_end(pair.replica, lake)
            assert "is read from another server now" in caplog.text
            assert "compare" not in caplog.text
            pair.primary.query("INSERT INTO shop.a (v) VALUES ('back again')")
            capture_to_end(pair.primary, lake)
