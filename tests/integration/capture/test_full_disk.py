"""A disk that is full for real: a small tmpfs under the value log, and one under the lake.

In:  a mount, which takes root; a test that can't have one is skipped, and says what was missing.
Out: capture stops cleanly, or goes on without the lake; when there is room again bronze becomes the server's binlog.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
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
)
from tests.support.servers import FreshDatabase
from tests.support.writing import writing
from tidegate.capture.value_log.log import ValueLog
from tidegate.errors import LakeUnavailable, ValueLogFull
from tidegate.lake.bronze.table import check_writable
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server

pytestmark = pytest.mark.server

DISK_BYTES = 16 << 20
ROW_BYTES = 100_000
SETTINGS = {"segment_bytes": 1 << 18, "land_bytes": 1 << 20, "value_log_reserve_bytes": 0}

Disk = Callable[[str], Path]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A factory of mounted folders of DISK_BYTES."""
    mounted: list[Path] = []

    def make(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no right to mount a tmpfs: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def database(mariadb: Server, fresh_database: FreshDatabase) -> str:
    name = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE `{name}`.t (a INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)")
    return name


def fill(folder: Path) -> Path:
    """A file that takes what is left there."""
    hog = folder / "hog"
    with hog.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            return hog


def insert(server: Server, database: str, rows: int) -> None:
    with server.connect(database) as connection, connection.cursor() as cursor:
        for _ in range(rows):
            cursor.execute("INSERT INTO t (b) VALUES (%s)", (os.urandom(ROW_BYTES),))


def insert_one(cursor: Any, _number: int) -> None:
    """So often about 5 MB a second."""
    cursor.execute("INSERT INTO t (b) VALUES (%s)", (os.urandom(ROW_BYTES),))


def assert_bronze_is_the_binlog(server: Server, lake: Path, **settings: object) -> None:
    capture_until_quiet(server, lake, **SETTINGS | settings)
    segments = bronze_segments(lake)
    assert_equals_binlog(segments, server)
    assert (segments[-1].file, segments[-1].end_pos) == binlog_end(server)


@pytest.mark.parametrize("seen", ["before a record", "in the middle of a record"])
def test_the_value_logs_disk_is_full(
    mariadb: Server, database: str, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: str
) -> None:
    lake, folder = tmp_path / "lake", disk("log")
    settings = {"value_log_path": str(folder)}
    capture_until_quiet(mariadb, lake, **SETTINGS | settings)
    insert(mariadb, database, 20)
    hog = fill(folder)
    with monkeypatch.context() as patched:
        if seen == "in the middle of a record":
            os.truncate(hog, hog.stat().st_size - 100_000)
            patched.setattr(
                ValueLog, "room_bytes", lambda _log: 1 << 40
            )  # the look before it is passed; the kernel isn't
        wanted = "less than 0 bytes of its disk" if seen == "before a record" else "No space left on device"
        with pytest.raises(ValueLogFull, match=f"{wanted}.*nothing that was captured is lost"):
            capture_until_quiet(mariadb, lake, **SETTINGS | settings)
    hog.unlink()
    assert_bronze_is_the_binlog(mariadb, lake, **settings)


def test_the_lakes_disk_is_full_and_capture_goes_on_until_there_is_room(
    mariadb: Server, database: str, disk: Disk, tmp_path: Path
) -> None:
    """Without a restart: the slow chaser keeps what comes, and lands it when the disk has room."""
    folder = disk("disk")
    lake, hog = folder / "lake", folder / "hog"
    settings = {"value_log_path": str(tmp_path / "log"), "return_seconds": 0.5}
    capture_until_quiet(mariadb, lake, **SETTINGS | settings)
    with (
        Background(capture_run(mariadb, lake, **SETTINGS | settings)) as capture,
        writing(mariadb, database, insert_one),
    ):
        insert(mariadb, database, 10)
        fill(folder)
        reached = capture.bytes
        until(lambda: capture.bytes > reached + (3 << 20), capture)
        subprocess.run(["mount", "-o", "remount,size=1g", str(folder)], check=True)
        hog.unlink()
        landed = len(bronze_segments(lake))
        until(lambda: len(bronze_segments(lake)) > landed + 10, capture)
    assert_bronze_is_the_binlog(mariadb, lake, **settings)


def test_the_lakes_disk_is_full_to_the_end_of_a_run_and_the_next_lands_the_rest(
    mariadb: Server, database: str, disk: Disk, tmp_path: Path
) -> None:
    folder = disk("disk")
    lake = folder / "lake"
    settings = {"value_log_path": str(tmp_path / "log")}
    capture_until_quiet(mariadb, lake, **SETTINGS | settings)
    hog = fill(folder)
    with Background(capture_run(mariadb, lake, **SETTINGS | settings)) as capture:
        insert(mariadb, database, 30)
        until(lambda: capture.bytes > 30 * ROW_BYTES, capture)
    before = bronze_segments(lake)
    assert sum(len(segment.payload) for segment in before) < 30 * ROW_BYTES
    hog.unlink()
    assert_bronze_is_the_binlog(mariadb, lake, **settings)


def test_a_look_at_a_full_disk_leaves_nothing_on_it(disk: Disk) -> None:
    folder = disk("disk")
    hog = fill(folder)
    with pytest.raises(LakeUnavailable) as caught:
        check_writable(LakeFiles(str(folder / "lake")))
    assert list(folder.iterdir()) == [hog], caught.value


def until(condition: Callable[[], bool], capture: Background, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert capture.error is None, capture.error
        assert time.monotonic() < end
        time.sleep(0.05)
