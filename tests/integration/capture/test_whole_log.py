"""Bronze is the server's binlog, byte for byte, from real servers by GTID and by position."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from tests.support.captures import (
    Background,
    assert_decodes_alone,
    assert_equals_binlog,
    begin_capture,
    binlog_end,
    bronze_segments,
    capture_run,
    capture_until_quiet,
    has_reached,
    wait_for_bronze,
)
from tests.support.servers import FreshDatabase
from tidegate.commit_ts import physical_ms
from tidegate.local.server import Server
from tidegate.tables import SegmentFlag, SegmentKind

pytestmark = pytest.mark.server
DUMPS = ["gtid", "position"]


def write_shop(server: Server, database: str, *, rows: int = 40) -> None:
    """Transactions of several kinds, DDL, a rotation, XA and a rollback."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(200), b INT)")
        for number in range(rows):
            cursor.execute("BEGIN")
            cursor.executemany("INSERT INTO t (a, b) VALUES (%s, %s)", [("x" * 100, n) for n in range(10)])
            cursor.execute("UPDATE t SET b = b + 1 WHERE id % 7 = 0")
            cursor.execute("ROLLBACK" if number % 5 == 4 else "COMMIT")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("ALTER TABLE t ADD COLUMN c INT")
        cursor.execute("XA START 'x'")
        cursor.execute("DELETE FROM t WHERE id % 3 = 0")
        cursor.execute("XA END 'x'")
        cursor.execute("XA PREPARE 'x'")
        cursor.execute("XA COMMIT 'x'")
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO t (a) VALUES ('one')")
        cursor.execute("SAVEPOINT s")
        cursor.execute("INSERT INTO t (a) VALUES ('two')")
        cursor.execute("ROLLBACK TO s")
        cursor.execute("COMMIT")


@pytest.mark.parametrize("dump", DUMPS)
def test_two_runs_give_the_servers_own_binlog(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, dump: str
) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    begin_capture(any_server, lake, dump=dump)
    write_shop(any_server, database)
    capture_until_quiet(any_server, lake, dump=dump)
    any_server.query(f"INSERT INTO `{database}`.t (a) VALUES ('later')")
    result = capture_until_quiet(any_server, lake, dump=dump)

    segments = bronze_segments(lake)
    assert assert_equals_binlog(segments, any_server) > 40 * 10 * 100
    assert (segments[-1].file, segments[-1].end_pos) == binlog_end(any_server)
    assert result.position == segments[-1].end
    assert sum(segment.txn_count for segment in segments) == 32 + 1 + 1 + 2 + 1 + 1
    named = {name for segment in segments for name in segment.tables}
    assert f"{database}.t" in named
    assert [s for s in segments if s.flags & SegmentFlag.HAS_DDL and f"{database}.t" in s.tables]
    assert [s for s in segments if s.flags & SegmentFlag.HAS_PREWRITE]


def test_executed_gtids_are_the_servers_own(any_server: Server, fresh_database: FreshDatabase, tmp_path: Path) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    begin_capture(any_server, lake)
    write_shop(any_server, database, rows=5)
    capture_until_quiet(any_server, lake)
    name = "gtid_executed" if any_server.flavour == "mysql" else "gtid_binlog_pos"
    assert bronze_segments(lake)[-1].gtid_executed == any_server.variables[name].replace("\n", "")


@pytest.mark.parametrize("dump", DUMPS)
def test_a_transaction_larger_than_a_segment_and_packets_over_16_mib(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, dump: str
) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query("SET GLOBAL max_allowed_packet = 268435456")
    begin_capture(any_server, lake, dump=dump)
    with any_server.connect(database, max_allowed_packet=256 << 20) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE b (id INT PRIMARY KEY, x LONGBLOB)")
        cursor.execute("CREATE TABLE u (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO b VALUES (1, %s)", (os.urandom(20 << 20),))
        cursor.execute("BEGIN")
        for number in range(2, 8):
            cursor.execute("INSERT INTO u VALUES (%s)", (number,))
            cursor.execute("INSERT INTO b VALUES (%s, %s)", (number, os.urandom(5 << 20)))
        cursor.execute("COMMIT")
    capture_until_quiet(any_server, lake, dump=dump)

    segments = bronze_segments(lake)
    assert assert_equals_binlog(segments, any_server) > 50 << 20
    large = [s for s in segments if len(s.payload) > 16 << 20]
    assert large, "the 20 MB row is a segment of its own"
    assert all(s.event_count == 1 for s in large)
    inside = [s for s in segments if s.flags & SegmentFlag.OPEN_AT_START]
    assert len(inside) >= 3
    for segment in inside:
        assert_decodes_alone(segment)


@pytest.mark.parametrize("dump", DUMPS)
def test_a_run_that_ends_inside_a_transaction_is_continued_by_the_next(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, dump: str
) -> None:
    """Segments of 4 KiB and a hard bound reached inside a transaction: stop there, and go on."""
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query("SET GLOBAL max_allowed_packet = 268435456")
    begin_capture(any_server, lake, dump=dump)
    with any_server.connect(database, max_allowed_packet=256 << 20) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE b (id INT PRIMARY KEY, x LONGBLOB)")
        cursor.execute("BEGIN")
        for number in range(12):
            cursor.execute("INSERT INTO b VALUES (%s, %s)", (number, os.urandom(4 << 20)))
        cursor.execute("COMMIT")
    stop = threading.Event()
    run = capture_run(any_server, lake, dump=dump)
    # The first news stops the run: with 48 MB to read, that is inside the transaction.
    _stop_at_first_news(run, stop)
    middle = bronze_segments(lake)
    assert middle[-1].flags & SegmentFlag.OPEN_AT_END
    capture_until_quiet(any_server, lake, dump=dump)
    segments = bronze_segments(lake)
    assert assert_equals_binlog(segments, any_server) > 48 << 20
    assert (segments[-1].file, segments[-1].end_pos) == binlog_end(any_server)


def _stop_at_first_news(run: object, stop: threading.Event) -> None:
    from tidegate.capture.value_log import log as value_log

    original = value_log.ValueLog.append

    def append(log: value_log.ValueLog, segment: object) -> None:
        original(log, segment)  # type: ignore[arg-type]
        if segment.kind is SegmentKind.BINLOG and segment.flags & SegmentFlag.OPEN_AT_END:  # type: ignore[attr-defined]
            stop.set()

    value_log.ValueLog.append = append  # type: ignore[method-assign]
    try:
        run.run(30, stop=stop)  # type: ignore[attr-defined]
    finally:
        value_log.ValueLog.append = original  # type: ignore[method-assign]


@pytest.mark.parametrize("dump", DUMPS)
def test_checksums_switched_while_listening_change_nothing(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, dump: str
) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    try:
        with Background(capture_run(any_server, lake, dump=dump)):
            wait_for_bronze(lake, bool)  # it listens: a file that ends before is none of its
            for number, algorithm in enumerate(["NONE", "CRC32", "NONE"]):
                any_server.query(f"INSERT INTO `{database}`.t VALUES (%s)", (2 * number,))
                any_server.query(f"SET GLOBAL binlog_checksum = {algorithm}")
                any_server.query(f"INSERT INTO `{database}`.t VALUES (%s)", (2 * number + 1,))
            end = binlog_end(any_server)
            wait_for_bronze(lake, has_reached(end))
    finally:
        any_server.query("SET GLOBAL binlog_checksum = CRC32")
    segments = bronze_segments(lake)
    assert len({segment.file for segment in segments}) >= 3
    assert_equals_binlog(segments, any_server)


@pytest.mark.parametrize("dump", DUMPS)
def test_a_server_restart_inside_a_run_is_survived(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, dump: str
) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    with Background(capture_run(any_server, lake, dump=dump)):
        any_server.query(f"INSERT INTO `{database}`.t VALUES (1)")
        end = binlog_end(any_server)
        wait_for_bronze(lake, has_reached(end))
        any_server.restart()
        any_server.query(f"INSERT INTO `{database}`.t VALUES (2)")
        end = binlog_end(any_server)
        wait_for_bronze(lake, has_reached(end))
    assert_equals_binlog(bronze_segments(lake), any_server)


def test_a_quiet_source_proves_its_resolved_ts_and_later_commits_lie_above(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    with Background(capture_run(any_server, lake)):
        started = time.time() * 1000
        quiet = wait_for_bronze(lake, lambda s: physical_ms(s[-1].resolved_ts) > started)
        assert quiet[-1].kind is SegmentKind.HEARTBEAT
        any_server.query(f"INSERT INTO `{database}`.t VALUES (1)")
        after = wait_for_bronze(lake, lambda s: any(x.max_commit_ts > quiet[-1].resolved_ts for x in s))
    written = next(s for s in after if s.max_commit_ts > quiet[-1].resolved_ts)
    assert written.min_commit_ts > max(s.resolved_ts for s in after if s.seq < written.seq)
    assert_equals_binlog(bronze_segments(lake), any_server)
