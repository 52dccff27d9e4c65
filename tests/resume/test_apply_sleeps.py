"""Apply sleeps at a point of its window, another one takes over and goes on, and the first one wakes up: too late.

A lease can't keep a holder that sleeps from acting when it wakes. Here there is none at all: what a former holder
commits must be refused by what the commit itself says. The sleeper is a driver with a JVM of its own
(tests/support/driver.py): what it has asked of one keeps nobody else waiting while it sleeps.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import CLAIMED
from tests.kit.road import Road
from tests.resume.test_apply_kills import busy, swapped
from tests.support.driver import started
from tests.support.seeds import LONG, many
from tests.support.servers import FreshDatabase
from tidegate.home import EXIT_TRANSIENT
from tidegate.lake import control
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

# Before a commit of a window, those of the application's start left out; then where there is none.
CLAIMS = len(CLAIMED)
POINTS = (
    *(f"delta_before_commit:{CLAIMS + number}" for number in (1, 10)),
    "apply_in_move",
    "apply_before_publish",
    "apply_in_decode",
    *(f"delta_before_commit:{CLAIMS + number}" for number in (2, 4, 7)),
)[: many(4, 8)]
TABLES = (
    "k (id INT PRIMARY KEY, a VARCHAR(20))",
    "bag (a VARCHAR(20))",
    "one (id INT PRIMARY KEY)",
    "two (word VARCHAR(20) PRIMARY KEY)",
)
SECONDS_MAX = 300  # it starts a JVM, which a busy machine takes its time for


def asleep(driver: Any) -> bool:
    """Wait until it sleeps; False when it ended before."""
    end = time.monotonic() + SECONDS_MAX
    while driver.exitcode is None:
        if Path(f"/proc/{driver.pid}/stat").read_text().rpartition(") ")[2][0] == "T":
            return True
        assert time.monotonic() < end, "it neither sleeps nor ends"
        time.sleep(0.02)
    return False


def said(road: Road) -> dict[str, Any]:
    """What apply alone says; a cut's row of a table has its version, so silver is in it."""
    return {table.path: control.read(road.lake, table) for table in CLAIMED}


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="each sleeper starts a JVM")
@pytest.mark.timeout(3600)
def test_who_sleeps_anywhere_in_its_window_and_is_overtaken_publishes_nothing_when_it_wakes(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    for table in TABLES:
        mariadb.query(f"CREATE TABLE {database}.{table}")
    slept: list[str] = []
    for number, point in enumerate(POINTS):
        busy(mariadb, database, number)
        swapped(mariadb, database, number)
        road.capture()
        sleeper = started(None, road.file, f"{point}/sleep", log=tmp_path / "sleeper.log")
        try:
            if asleep(sleeper):
                slept.append(point)
            mariadb.query(f"UPDATE {database}.k SET a = 'overtaken' WHERE id < 1000")
            road.capture()
            road.apply(spark)
            before = said(road)
            if sleeper.exitcode is None:
                os.kill(sleeper.pid, signal.SIGCONT)
            sleeper.join(SECONDS_MAX)
        finally:
            sleeper.kill()
        assert said(road) == before, point
        if point in slept:
            assert sleeper.exitcode == EXIT_TRANSIENT, (point, (tmp_path / "sleeper.log").read_text()[-2000:])
    assert slept == list(POINTS)
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state == "held"]
    assert len(road.assert_equal()) == len(TABLES) + len(POINTS)
