"""Bronze is packed and cut off beside a live capture and apply, and killed at it: silver is the source all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tests.support.writing import writing
from tidegate import config
from tidegate.lake.bronze.log import APPEND_ONLY, BronzeFile, BronzeLog
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run

pytestmark = [pytest.mark.server, pytest.mark.spark]

# What maintain does to bronze, without its patience: young files are packed, and nothing is kept for its age.
UPKEEP = """
import sys
from datetime import date
from tidegate.lake.bronze.log import BronzeLog, properties
from tidegate.lake.bronze.retention import choose_gone, floors, remove, whole_transactions
from tidegate.lake.bronze.upkeep import Limits, choose_runs, compact_run
from tidegate.lake.files import LakeFiles

lake = LakeFiles(sys.argv[1])
log = BronzeLog.load(lake)
log.set_properties(properties(0))
files = log.files()
lowest = {name: one.commit_ts for name, one in floors(lake, files).items()}
for gone in choose_gone(files, lowest, date.max):
    if gone := whole_transactions(lake, gone, files[gone[0].source], lowest[gone[0].source]):
        remove(log, gone)
for run in choose_runs(log.files(), Limits(1 << 20, 1 << 40, 1 << 60)):
    compact_run(log, run)
"""
# Removal first: once they are packed with younger ones, segments of before the first cut no longer go alone.
POINTS = (
    "bronze_before_removal",
    "bronze_after_removal",
    "bronze_in_compaction",
    "bronze_before_compaction",
    "bronze_after_compaction",
)


def upkeep(road: Road, point: str = "") -> int:
    environment = os.environ | ({"TIDEGATE_FAILPOINT": point} if point else {})
    return subprocess.run([sys.executable, "-c", UPKEEP, road.lake.root], env=environment, check=False).returncode


def files_of(road: Road) -> list[BronzeFile]:
    """Every file of bronze; that it is dense is checked here."""
    log = BronzeLog.load(road.lake)
    return [] if log is None else log.files().get("one", [])


@contextmanager
def busy(road: Road, database: str) -> Iterator[None]:
    """A session that writes, and a capture that lands a file ten times a second, while the block runs."""

    def write(cursor: Any, number: int) -> None:
        cursor.execute("INSERT INTO t VALUES (%s, %s)", (number, "x" * 300))
        cursor.execute("UPDATE t SET b = %s WHERE a %% 7 = %s", (f"u{number}", number % 7))
        cursor.execute("DELETE FROM t WHERE a = %s", (number - 20,))

    with ThreadPoolExecutor(1) as pool:
        with writing(road.server, database, write):
            run = binlog_run(road.pipeline, "one", road.info, road.folder / "state")
            captured = pool.submit(run.run, 250, idle_seconds=2.0)
            yield
        captured.result()


@pytest.mark.timeout(900)
def test_upkeep_beside_capture_and_apply_killed_at_every_point_loses_nothing(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.file.write_text(road.text.replace("land_seconds: 0.1", "land_seconds: 0.1, segment_bytes: 4096"))
    road.pipeline = config.load(road.file)
    road.capture()
    mariadb.query(f"CREATE TABLE {database}.t (a INT PRIMARY KEY, b VARCHAR(300))")
    road.capture()
    road.apply(spark)
    with busy(road, database):
        for point in POINTS:
            files, patience = len(files_of(road)), time.monotonic() + 60
            while len(files_of(road)) < files + 10 and time.monotonic() < patience:
                time.sleep(0.1)
            assert upkeep(road, point) == -signal.SIGKILL, point
            road.apply(spark)
        assert upkeep(road) == 0
    road.capture()
    road.apply(spark)
    assert road.assert_equal()["t"] > 10
    assert upkeep(road) == 0
    files = files_of(road)
    assert files[0].min_seq > 1, "what the first cut has is gone"
    assert files[-1].max_seq > 50
    assert len(files) < 10
    log = BronzeLog.load(road.lake)
    assert log is not None
    assert log.properties()[APPEND_ONLY] == "true"
    mariadb.query(f"INSERT INTO {database}.t VALUES (-1, 'after')")
    road.capture()
    road.apply(spark)
    road.assert_equal()
