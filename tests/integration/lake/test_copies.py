"""The runbooks of docs/backup.md on a real server, while it is written to: backup, restore, go on; move.

In:  capture and apply at work, a client that changes rows and columns; `tidegate lake` as a person calls it, killed at
     each of its points.
Out: a lake that goes on from the copy, and has the server's own rows.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.replica_pair import purge_logs
from tests.support.servers import ROOT, FreshDatabase
from tidegate import config
from tidegate.lake.cuts.published import cut_at
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(1200)]


def lake_command(road: Road, *arguments: str, point: str = "", code: int = 0) -> str:
    """`tidegate lake ...`; what it said. point: a failpoint at which it dies."""
    info = road.info
    login = json.dumps({"conn_type": "mysql", "host": info.host, "port": info.port, "login": info.user})
    login = json.dumps(json.loads(login) | {"password": info.password})
    environment = os.environ | {"TIDEGATE_HOME": str(ROOT), "AIRFLOW_CONN_ROAD_ONE": login}
    if point:
        environment["TIDEGATE_FAILPOINT"] = point
    name, *rest = arguments
    done = subprocess.run(
        [str(Path(sys.executable).parent / "tidegate"), "lake", name, str(road.file), *rest],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert done.returncode == code, said
    return said


@contextmanager
def at_work(*works: Callable[[], object]) -> Iterator[None]:
    """Each is done again and again meanwhile."""
    over, failed = threading.Event(), list[BaseException]()

    def again(work: Callable[[], object]) -> None:
        try:
            while not over.is_set():
                work()
        except BaseException as error:  # noqa: BLE001 - raised where the test sees it
            failed.append(error)
            over.set()

    threads = [threading.Thread(target=again, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(300)
    assert not failed, failed


class Client:
    """Changes rows, and now and then columns."""

    def __init__(self, server: Server, database: str) -> None:
        self.server, self.database, self.turn = server, database, 0
        self.dice = random.Random(7)

    def query(self, statement: str) -> None:
        self.server.query(statement.replace("db.", f"{self.database}."))

    def begin(self) -> None:
        self.query("CREATE TABLE db.a (id INT PRIMARY KEY, v INT)")
        self.query("CREATE TABLE db.quiet (id INT PRIMARY KEY, v INT)")
        self.query("CREATE TABLE db.bag (v INT)")
        for name in ("a", "quiet"):
            self.query(f"INSERT INTO db.{name} SELECT seq, seq FROM db.seq_1_to_500")
        self.query("INSERT INTO db.bag SELECT seq % 3 FROM db.seq_1_to_30")

    def change(self) -> None:
        self.turn += 1
        low = self.dice.randrange(500)
        self.query(f"UPDATE db.a SET v = v + 1 WHERE id BETWEEN {low} AND {low + 20}")
        self.query(f"DELETE FROM db.a WHERE id = {low}")
        self.query(f"REPLACE INTO db.a (id, v) VALUES ({1000 + self.turn}, {low})")
        self.query(f"INSERT INTO db.bag (v) VALUES ({low % 5})")
        if self.turn % 20 == 5:
            self.query(f"ALTER TABLE db.a ADD COLUMN c{self.turn} INT DEFAULT {self.turn}")
            self.query(f"CREATE TABLE db.new{self.turn} AS SELECT * FROM db.a LIMIT 7")
        time.sleep(0.05)


def second(road: Road, folder: Path, database: str) -> Road:
    """The same pipeline with another lake, on another machine."""
    folder.mkdir()
    found = Road(road.server, folder, include=f"{database}.*")
    found._begun = True
    return found


def test_a_backup_under_load_is_restored_and_goes_on(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    client = Client(mariadb, database)
    road.capture()
    client.begin()
    road.capture()
    road.apply(spark)
    copy = str(tmp_path / "copy")
    with at_work(client.change, road.capture, lambda: road.apply(spark)):
        for point in ("copy_before_file:9", "copy_before_log:12", "copy_after_control", "copy_before_paper"):
            lake_command(road, "backup", copy, point=point, code=-signal.SIGKILL)
        early = second(road, tmp_path / "early", database)
        assert "hasn't ended" in lake_command(early, "restore", copy, code=1)
        lake_command(road, "backup", copy)
        time.sleep(2)
        said = lake_command(road, "backup", copy)
    assert "value_log" in said
    assert "road_one" in said
    assert f"silver/{database}/quiet" not in said, "it was there"
    client.change()

    after = second(road, tmp_path / "after", database)
    lake_command(after, "restore", copy, point="restore_after_table:6", code=-signal.SIGKILL)
    assert "start capture" in lake_command(after, "restore", copy)
    client.change()
    after.capture()
    after.apply(spark)
    assert not cut_at(after.lake, "road").missing
    counts = after.assert_equal()
    assert counts["quiet"] == 500
    assert len(counts) > 3

    moved = tmp_path / "moved"
    lake_command(after, "move", str(moved), point="move_before_end", code=-signal.SIGKILL)
    assert f"path: {moved}" in lake_command(after, "move", str(moved))
    after.file.write_text(after.text.replace(str(after.folder / "lake"), str(moved)))
    after.pipeline, after.lake = config.load(after.file), type(after.lake)(str(moved))
    client.change()
    after.capture()
    after.apply(spark)
    assert after.assert_equal()["quiet"] == 500

    client.change()
    purge_logs(mariadb)
    late = second(road, tmp_path / "late", database)
    said = lake_command(late, "restore", copy)
    assert "tidegate accept road one" in said
