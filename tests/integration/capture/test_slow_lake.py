"""A lake that stalls, is slow, recovers: capture reads on, memory stays flat, bronze gets all of it once, in order.

TIDEGATE_TEST_STALL_SECONDS=60 is the formal length, with the default thresholds; without it everything is shorter.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import (
    Background,
    assert_equals_binlog,
    binlog_end,
    bronze_segments,
    capture_run,
    capture_until_quiet,
    info_of,
    pipeline_for,
)
from tests.support.servers import FreshDatabase
from tests.support.writing import writing
from tidegate.capture import status_file
from tidegate.capture.status_file import CaptureStatus
from tidegate.capture.value_log.log import ValueLog
from tidegate.delta.stores import object_store
from tidegate.errors import ValueLogFull
from tidegate.lake.bronze import file as bronze_file
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run

pytestmark = pytest.mark.server

LONG_SECONDS = float(os.environ.get("TIDEGATE_TEST_STALL_SECONDS", "0"))
STALL_SECONDS = LONG_SECONDS or 3.0
SLOW_SECONDS = LONG_SECONDS / 3 or 2.0
# With the long stall the thresholds are those of production.
THRESHOLDS: dict[str, Any] = (
    {} if LONG_SECONDS else {"slow_seconds": 0.3, "hold_seconds": 0.5, "return_seconds": 2.0, "queue_bytes": 2 << 20}
)
SETTINGS = THRESHOLDS | {"segment_bytes": 1 << 18, "land_bytes": 1 << 20}
if LONG_SECONDS:
    SETTINGS |= {"queue_bytes": 64 << 20, "land_bytes": 16 << 20}
MEMORY_BYTES = (150 << 20) + 4 * SETTINGS["queue_bytes"]  # not with the length of the stall
# More than lands while the lake is slow.
BEHIND_BYTES_MIN = 6 << 20
SLOW_BYTES_PER_SECOND = 2e6 if LONG_SECONDS else 1e6
MAX_SILENCE_SECONDS = 1.5 + SETTINGS.get("slow_seconds", 1.0)


ROW_BYTES = 100_000


class SlowLake:
    """Files of bronze that take what they are given no faster than bytes_per_second; nothing at all while stalled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.open.set()
        self.bytes_per_second = float("inf")
        real = bronze_file.write_file

        def write_file(sink: Any, *arguments: Any) -> None:
            real(_SlowFile(self, sink), *arguments)

        monkeypatch.setattr(bronze_file, "write_file", write_file)


class _SlowFile:
    def __init__(self, lake: SlowLake, file: Any) -> None:
        self._lake, self._file = lake, file
        self.closed = False

    def write(self, data: Any) -> int:
        assert self._lake.open.wait(600)
        time.sleep(len(data) / self._lake.bytes_per_second)
        return int(self._file.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def insert(cursor: Any, number: int) -> None:
    """So often some MB a second."""
    cursor.execute("INSERT INTO t VALUES (%s, %s)", (number, os.urandom(ROW_BYTES)))


class Watched(Background):
    """Keeps what progress said, when the value log was appended to, and whether it was full."""

    def __init__(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[Any] = []
        self.appended: list[float] = []
        self.full = threading.Event()
        real = ValueLog.append

        def append(log: ValueLog, segment: Any) -> Any:
            self.appended.append(time.monotonic())
            try:
                return real(log, segment)
            except ValueLogFull:
                self.full.set()
                raise

        monkeypatch.setattr(ValueLog, "append", append)
        super().__init__(run)

    def _note(self, progress: Any) -> None:
        self.told.append(progress)

    @property
    def now(self) -> CaptureStatus:
        found: CaptureStatus = self.told[-1].status
        return found

    def until(self, condition: Any, seconds: float = 300) -> None:
        end = time.monotonic() + seconds
        while not (self.told and condition(self.now)):
            assert time.monotonic() < end, self.told[-1:]
            assert self.error is None, self.error
            time.sleep(0.05)


def begun(server: Server, database: str, lake: Path) -> None:
    server.query("SET GLOBAL max_allowed_packet = 67108864")
    server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY, b LONGBLOB)")
    capture_until_quiet(server, lake)


def assert_bronze_is_the_binlog(server: Server, lake: Path) -> None:
    """Once a last run has read what was written after the one before was stopped."""
    capture_until_quiet(server, lake, **SETTINGS)
    segments = bronze_segments(lake)
    assert_equals_binlog(segments, server)
    assert (segments[-1].file, segments[-1].end_pos) == binlog_end(server)


def test_the_reader_goes_on_while_the_lake_stalls_is_slow_and_recovers(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    begun(mariadb, database, lake)
    slow = SlowLake(monkeypatch)
    run = capture_run(mariadb, lake, **SETTINGS)
    with Watched(run, monkeypatch) as capture, writing(mariadb, database, insert):
        capture.until(lambda now: now.landed_seq > 3)
        assert capture.now.state == "direct"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        slow.open.clear()
        stalled_at = time.monotonic()
        capture.until(lambda now: now.state == "chasing")
        time.sleep(max(0.0, stalled_at + STALL_SECONDS - time.monotonic()))
        capture.until(lambda now: now.behind_bytes > BEHIND_BYTES_MIN)  # the reader goes on
        landed, behind = capture.now.landed_seq, capture.now.behind_bytes
        slow.bytes_per_second = SLOW_BYTES_PER_SECOND
        slow.open.set()
        capture.until(lambda now: now.landed_seq > landed)
        time.sleep(SLOW_SECONDS)
        assert capture.now.state != "direct"
        slow.bytes_per_second = float("inf")
        capture.until(lambda now: now.state == "direct" and now.chases > 0)
        stopped_at = time.monotonic()
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert_bronze_is_the_binlog(mariadb, lake)
    gaps = [after - at for at, after in zip(capture.appended, capture.appended[1:], strict=False) if after < stopped_at]
    print(f"silence {max(gaps):.2f} s, memory +{grown >> 20} MB, {behind >> 20} MB behind; {capture.now}")
    if LONG_SECONDS:  # of a machine that does nothing else
        assert max(gaps) < MAX_SILENCE_SECONDS
        assert capture.now.held_seconds_max < 1.2
    assert (
        max(progress.queued_bytes for progress in capture.told) <= SETTINGS["queue_bytes"] + 2 * SETTINGS["land_bytes"]
    )
    assert grown < MEMORY_BYTES
    assert capture.now.chasing_seconds > SLOW_SECONDS
    assert capture.now.returns_failed * THRESHOLDS.get("return_seconds", 60.0) <= capture.now.chasing_seconds


def test_a_lake_that_cant_be_reached_is_waited_for_and_what_remains_lands_in_the_next_run(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, lake, aside = fresh_database(mariadb), tmp_path / "lake", tmp_path / "aside"
    begun(mariadb, database, lake)
    with Watched(capture_run(mariadb, lake, **SETTINGS), monkeypatch) as capture, writing(mariadb, database, insert):
        capture.until(lambda now: now.landed_seq > 3)
        segments = lake / "bronze" / "segments"
        segments.rename(aside)
        segments.write_text("a file is where the table was")
        capture.until(lambda now: now.state == "chasing" and now.lake_error)
        reached = capture.now.last_seq
        capture.until(lambda now: now.last_seq > reached + 3)
        told = capture.now
        assert told.seconds_left is not None
        assert told.seconds_left == pytest.approx(told.room_bytes / told.bytes_per_second)
        assert status_file.read(tmp_path / "state" / "value_log" / "test" / "one") is not None
    assert capture.result is not None
    assert capture.result.reason == "stopped"
    segments.unlink()
    aside.rename(segments)
    monkeypatch.undo()
    assert_bronze_is_the_binlog(mariadb, lake)


def test_capture_starts_without_the_lake_from_its_value_log_and_lands_when_it_is_back(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    begun(mariadb, database, lake)
    pipeline = pipeline_for(mariadb, lake, **SETTINGS)
    pipeline = pipeline.model_copy(update={"lake": pipeline.lake.model_copy(update={"path": "s3://nowhere/lake"})})
    options = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "max_retries": "0",
    }
    monkeypatch.setattr(object_store, "STORE_RETRY_SECONDS_MAX", 1.0)
    away = binlog_run(pipeline, "one", info_of(mariadb), tmp_path / "state", storage_options=options)
    with Watched(away, monkeypatch) as capture, writing(mariadb, database, insert):
        capture.until(lambda now: now.lake_error and now.last_seq > 5)
    monkeypatch.undo()
    assert len(bronze_segments(lake)) < capture.now.last_seq
    assert_bronze_is_the_binlog(mariadb, lake)


def test_at_the_end_of_its_budget_capture_stops_cleanly_and_goes_on_when_the_lake_is_back(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    begun(mariadb, database, lake)
    slow = SlowLake(monkeypatch)
    monkeypatch.setattr("tidegate.limits.DISK_LOOK_SECONDS", 1.0)
    settings = SETTINGS | {"value_log_bytes_max": 8 << 20, "queue_bytes": 2 << 20}
    with Watched(capture_run(mariadb, lake, **settings), monkeypatch) as capture:
        with writing(mariadb, database, insert):
            capture.until(lambda now: now.landed_seq > 3)
            slow.open.clear()
            assert capture.full.wait(300), capture.told[-1:]
            slow.open.set()
            capture.thread.join(300)
        assert isinstance(capture.error, ValueLogFull)
        assert "nothing that was captured is lost" in str(capture.error)
        capture.error = None
    folder = tmp_path / "state" / "value_log" / "test" / "one"
    assert sum(path.stat().st_size for path in folder.glob("*.vlog")) <= 8 << 20
    assert_bronze_is_the_binlog(mariadb, lake)
