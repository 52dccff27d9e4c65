"""A lake on a disk that gets full for real, while apply, a snapshot's reader and maintain are at work.

In:  a mount, which takes root; a test that can't have one is skipped, and says what was missing.
Out: each says that there is no room, and when there is some again silver becomes the source; no table is held.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs import maintain
from spark_jobs.maintenance import Maintenance
from spark_jobs.session.spark import maintenance_session
from tests.kit.road import Road
from tests.support.captures import info_of
from tests.support.servers import FreshDatabase
from tidegate.errors import TidegateError
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.snapshot.progress.requests import request, told
from tidegate.snapshot.reader import ReaderSettings, SnapshotReader
from tidegate.tables import WATERMARK_DATABASE, State

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(1200)]

DISK_BYTES = 60 << 20
LEFT_BYTES = [0, 64 << 10, 900 << 10]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "lake"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no right to mount a tmpfs: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def full(folder: Path, left: int) -> Iterator[None]:
    """So many bytes are left there."""
    hog = folder / "hog"
    with hog.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 12))
        except OSError:
            pass
    os.truncate(hog, hog.stat().st_size - left)
    try:
        yield
    finally:
        hog.unlink()


def change(road: Road, database: str, number: int) -> None:
    with road.server.connect(database) as connection, connection.cursor() as cursor:
        for table in ("a", "b", "c"):
            for row in range(6):
                cursor.execute(f"REPLACE INTO {table} VALUES (%s, %s, %s)", (row + number, number, os.urandom(60_000)))
            cursor.execute(f"DELETE FROM {table} WHERE id = %s", (number,))
        connection.commit()


def begun(server: Server, database: str, disk: Path) -> Road:
    server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
    road = Road(server, disk.parent, include=f"{database}.*")
    road.capture()
    for table in ("a", "b", "c"):
        server.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT, p LONGBLOB)", database=database)
    change(road, database, 0)
    road.capture()
    road.apply()
    return road


def read(road: Road) -> None:
    """A wave or two of what was asked for."""
    looks = iter([False] * 2)
    SnapshotReader("road", "one", info_of(road.server), road.lake, ReaderSettings()).run(stop=lambda: next(looks, True))


def whole(road: Road, said: list[str]) -> None:
    road.capture()
    app = road.apply()
    assert [standing for _, standing in app.states.items() if standing.state is not State.ACTIVE] == []
    assert len(road.assert_equal()) == 3
    assert [line for line in said if "disk-full.md" not in line and "control/maintenance" not in line] == []


def test_apply_goes_on_when_there_is_room_again(mariadb: Server, fresh_database: FreshDatabase, disk: Path) -> None:
    database = fresh_database(mariadb)
    road, said = begun(mariadb, database, disk), list[str]()
    for number, left in enumerate(LEFT_BYTES, 1):
        change(road, database, number)
        road.capture()
        with full(disk, left):
            try:
                road.apply()
            except (TidegateError, OSError) as error:
                said.append(f"{type(error).__name__} {error}")
        whole(road, said)
    assert said


def test_a_snapshots_reader_goes_on_when_there_is_room_again(
    mariadb: Server, fresh_database: FreshDatabase, disk: Path
) -> None:
    database = fresh_database(mariadb)
    road, said = begun(mariadb, database, disk), list[str]()
    for left in LEFT_BYTES:
        request(road.lake, "road", [("one", database, name) for name in ("a", "b", "c")])
        with full(disk, left):
            try:
                read(road)
                road.capture()
                road.apply()
            except (TidegateError, OSError) as error:
                said.append(f"{type(error).__name__} {error}")
        for _ in range(10):
            read(road)
            road.capture(heartbeat=True)
            road.apply()
            if all(table.state.is_over for table in told(road.lake, "road")):
                break
        assert [table.reason for table in told(road.lake, "road") if table.state != "done"] == []
        whole(road, said)
    assert said


def test_maintain_goes_on_when_there_is_room_again(
    mariadb: Server, fresh_database: FreshDatabase, disk: Path, spark: SparkSession
) -> None:
    database = fresh_database(mariadb)
    road, said = begun(mariadb, database, disk), list[str]()
    for number, left in enumerate(LEFT_BYTES, 1):
        change(road, database, number)
        road.capture()
        road.apply()
        with full(disk, left):
            try:
                maintain.run(
                    Maintenance(
                        maintenance_session(spark, 1 << 28), road.pipeline, LakeFiles(road.lake.root), road.lines.append
                    )
                )
            except TidegateError as error:
                said.append(f"{type(error).__name__} {error}")
        whole(road, said)
    maintain.run(
        Maintenance(maintenance_session(spark, 1 << 28), road.pipeline, LakeFiles(road.lake.root), road.lines.append)
    )
    whole(road, said)
