"""A MariaDB that dies while it writes to its binlog keeps half an event at a file's end, and begins the next file.

In:  a server of our own that is killed inside a write of some hundred megabytes.
Out: capture that reads this file later goes on behind it; it stops where the file lacks what was committed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pymysql
import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.captures import binlog_end, bronze_segments, capture_run, capture_to_end
from tests.support.own_server import own_server_or_skip
from tidegate import config
from tidegate.binlog.format.events import read_header
from tidegate.errors import StreamCorrupt
from tidegate.local.server import Server
from tidegate.tables import SegmentFlag

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

_HEADER_BYTES = 19
_TRIES = 20
_FLUSHED_SECONDS = 4  # InnoDB writes its own log out each second: before that it takes a commit back


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with own_server_or_skip("mariadb", tmp_path / "server") as server:
        server.query("CREATE DATABASE shop")
        server.query("CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(2000))")
        server.query("CREATE TABLE shop.wide (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)")
        yield server


def _end_of_events(path: Path) -> int:
    """Where the last whole event ends."""
    data, at = path.read_bytes(), 4
    while at + _HEADER_BYTES <= len(data) and at + read_header(data[at : at + _HEADER_BYTES]).size <= len(data):
        at += read_header(data[at : at + _HEADER_BYTES]).size
    return at


def _dies_inside_an_event(server: Server) -> Path:
    """Kill it as it writes a transaction of several large events, until a file has a part of one at its end."""

    def write() -> None:
        with suppress(pymysql.err.MySQLError), server.connect("shop") as connection, connection.cursor() as cursor:
            for _ in range(4):
                cursor.execute("INSERT INTO wide (b) VALUES (REPEAT('half', 3000000))")
            connection.commit()

    for _ in range(_TRIES):
        name, size = binlog_end(server)
        path = server.data / "data" / name
        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        while path.stat().st_size < size + (1 << 20) and writer.is_alive():
            time.sleep(0.0002)
        server.kill()
        writer.join()
        torn = path.stat().st_size - _end_of_events(path) > _HEADER_BYTES
        server.start()
        if torn:
            return path
    pytest.fail(f"none of {_TRIES} kills left a part of an event")


def _payload(lake: Path) -> bytes:
    return b"".join(bytes(segment.payload) for segment in bronze_segments(lake))


def _insert(server: Server, *names: str) -> None:
    for name in names:
        server.query("INSERT INTO shop.t (name) VALUES (%s)", (name,))


def test_what_a_server_died_in_is_passed_over_and_what_follows_is_captured(server: Server, tmp_path: Path) -> None:
    lake, small = tmp_path / "lake", tmp_path / "small"
    for folder in (lake, small):
        capture_to_end(server, folder)
    _insert(server, "before the crash")
    torn = _dies_inside_an_event(server)
    _insert(server, "behind the crash")
    again = _dies_inside_an_event(server)
    _insert(server, "behind both")
    assert torn != again
    capture_to_end(server, lake)
    payload = _payload(lake)
    for name in (b"before the crash", b"behind the crash", b"behind both"):
        assert payload.count(name) == 2, "its statement and its row"
    last = [segment for segment in bronze_segments(lake) if segment.has_bytes][-1]
    assert (last.file, last.end_pos) == binlog_end(server)
    # The half of a transaction that is captured is read again by position, and given up as well.
    capture_to_end(server, small, segment_bytes=1 << 20)
    assert _payload(small).count(b"behind both") == 2


@pytest.mark.spark
def test_silver_never_has_rows_of_the_half_that_is_in_the_log(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    """Captured in segments smaller than the half, so that it lands before its end is known."""
    road = Road(server, tmp_path, include="shop.*")
    road.file.write_text(road.text.replace("land_seconds: 0.1", "land_seconds: 0.1, segment_bytes: 1048576"))
    road.pipeline = config.load(road.file)
    road.capture()
    _insert(server, "before the crash")
    _dies_inside_an_event(server)
    _insert(server, "behind the crash")
    server.query("INSERT INTO shop.wide (b) VALUES ('whole')")
    road.capture()
    segments = bronze_segments(Path(road.lake.root))
    half = [after for before, after in pairwise(segments) if before.flags & SegmentFlag.OPEN_AT_END]
    assert not half[-1].flags & SegmentFlag.OPEN_AT_START
    road.apply(spark)
    wide = server.query("SELECT COUNT(*) FROM shop.wide")[0][0]
    assert road.assert_equal() == {"t": 2, "wide": wide}


def test_a_file_that_lacks_what_was_committed_stops_capture_each_time(server: Server, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    capture_to_end(server, lake)
    _insert(server, "sound")
    name, end = binlog_end(server)
    _insert(server, "lost " * 100, "lost too")
    server.query("FLUSH BINARY LOGS")
    _insert(server, "behind")
    path = server.data / "data" / name
    whole = path.read_bytes()
    os.truncate(path, end + 60)
    for _ in range(2):
        with pytest.raises(StreamCorrupt, match=rf"its own binlog damaged: .*truncated in the middle.*{name}"):
            capture_run(server, lake).run(300, idle_seconds=2)
        assert b"behind" not in _payload(lake)
    path.write_bytes(whole)
    capture_to_end(server, lake)
    assert [_payload(lake).count(name) for name in (b"sound", b"lost too", b"behind")] == [2, 2, 2]


def test_a_machine_that_lost_committed_events_is_told(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With sync_binlog = 0, MariaDB's default, a power cut takes the end of the log, and the table has its rows."""
    lake = tmp_path / "lake"
    capture_to_end(server, lake)
    _insert(server, "kept")
    name, end = binlog_end(server)
    _insert(server, "lost " * 100)
    path = server.data / "data" / name
    time.sleep(_FLUSHED_SECONDS)
    server.kill()
    os.truncate(path, end + 60)
    server.start()
    _insert(server, "behind")
    assert server.query("SELECT COUNT(*) FROM shop.t")[0][0] == 3
    capture_to_end(server, lake)
    payload = _payload(lake)
    assert [payload.count(text) for text in (b"kept", b"lost", b"behind")] == [2, 0, 2]
    assert "sync_binlog is 0" in caplog.text
    assert "tidegate verify" in caplog.text
