"""Capture killed with SIGKILL at each of its points, against a busy server, loses nothing and doubles nothing.

The matrix: where it is killed x which server (and so which GTID) x the first time or a later one. After each
kill it is started again, until it is quiet; then bronze must be the server's own binlog, byte for byte.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.capture_process import CaptureProcess
from tests.support.captures import assert_equals_binlog, binlog_end, bronze_segments
from tests.support.nursery import Nursery
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.tables import SegmentFlag

pytestmark = pytest.mark.server


@contextmanager
def busy(server: Server, database: str) -> Iterator[None]:
    """Sessions that write while the block runs: small transactions, one of 20 MB, and now and then a new file."""
    over = threading.Event()

    def write(session: int) -> None:
        with server.connect(database, max_allowed_packet=64 << 20) as connection, connection.cursor() as cursor:
            number = 0
            while not over.wait(0.01):
                number += 1
                cursor.execute("BEGIN")
                rows = [(session * 1_000_000 + number * 50 + n, "x" * 200) for n in range(20)]
                cursor.executemany("INSERT INTO t VALUES (%s, %s)", rows)
                cursor.execute("UPDATE t SET b = 'y' WHERE a = %s", (rows[0][0],))
                cursor.execute("ROLLBACK" if number % 7 == 0 else "COMMIT")
                if session == 1 and number == 10:
                    cursor.execute("BEGIN")
                    for part in range(5):
                        cursor.execute("INSERT INTO big VALUES (%s, %s)", (part, os.urandom(4 << 20)))
                    cursor.execute("COMMIT")
                if session == 1 and number % 40 == 0:
                    cursor.execute("FLUSH BINARY LOGS")

    threads = [threading.Thread(target=write, args=(session,)) for session in (1, 2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


KILLS = [
    ("mariadb", "gtid", "capture_before_value_log"),
    ("mysql9", "gtid", "capture_after_value_log_sync:7"),
    ("mariadb", "position", "capture_before_bronze_commit"),
    ("mysql9", "position", "capture_after_bronze_file"),
    ("mariadb", "gtid", "capture_after_bronze_file:3"),
    ("mysql9", "gtid", "capture_after_bronze_commit"),
]


@pytest.mark.parametrize("kill", KILLS, ids="-".join)
def test_killed_at_a_point_and_started_again_bronze_is_the_binlog(
    request: pytest.FixtureRequest,
    fresh_database: FreshDatabase,
    nursery: Nursery,
    tmp_path: Path,
    kill: tuple[str, str, str],
) -> None:
    server, dump, point = kill
    any_server: Server = request.getfixturevalue(server)
    database = fresh_database(any_server)
    any_server.query("SET GLOBAL max_allowed_packet = 67108864")
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY, b VARCHAR(200))")
    any_server.query(f"CREATE TABLE `{database}`.big (a INT PRIMARY KEY, b LONGBLOB)")
    capture = CaptureProcess(nursery, any_server, tmp_path, dump)
    with busy(any_server, database):
        assert capture.run(point) == -signal.SIGKILL
    end = binlog_end(any_server)
    capture.runs_until_quiet()
    segments = bronze_segments(tmp_path / "lake")
    assert_equals_binlog(segments, any_server)
    assert (segments[-1].file, segments[-1].end_pos) >= end  # a server itself may add to its log
    assert not segments[-1].flags & SegmentFlag.OPEN_AT_END


def test_killed_after_a_heartbeat_resolved_ts_never_goes_back(
    mariadb: Server, nursery: Nursery, tmp_path: Path
) -> None:
    capture = CaptureProcess(nursery, mariadb, tmp_path, "gtid")
    assert capture.run("capture_after_heartbeat:2") == -signal.SIGKILL
    before = bronze_segments(tmp_path / "lake") if (tmp_path / "lake").exists() else []
    capture.runs_until_quiet()
    after = bronze_segments(tmp_path / "lake")
    assert [s.seq for s in after] == list(range(1, len(after) + 1))
    assert [s.resolved_ts for s in after] == sorted({s.resolved_ts for s in after})
    assert [s.resolved_ts for s in after[: len(before)]] == [s.resolved_ts for s in before]
