"""Apply sleeps at a point of its window, another one takes over and goes on, and the first one wakes up: too late.

A lease can't keep a holder that sleeps from acting when it wakes. Here there is none at all: what a former holder
commits must be refused by what the commit itself says. Small windows need no Spark, the sleeper's and the other's; one
that swaps two tables does, and its sleeper has a JVM of its own (tests/support/driver.py): what it has asked
of one keeps nobody else waiting while it sleeps.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.handles import CLAIMED
from tests.kit.road import Road
from tests.resume.test_apply_kills import busy, swapped
from tests.support.driver import started
from tests.support.seeds import LONG, many
from tests.support.servers import FreshDatabase
from tidegate.home import EXIT_TRANSIENT
from tidegate.lake import control
from tidegate.local.server import Server

pytestmark = pytest.mark.server

# Before a commit of a window, those of the application's start left out, or where there is none; all before its cut.
CLAIMS = len(CLAIMED)
POINTS = (
    f"delta_before_commit:{CLAIMS + 1}",
    f"delta_before_commit:{CLAIMS + 2}",
    "reshape_before_commit",
    f"delta_before_commit:{CLAIMS + 4}",
    "apply_in_decode",
    f"delta_before_commit:{CLAIMS + 6}",
    "apply_after_commit",
    "apply_before_publish",
)
TABLES = (
    "k (id INT PRIMARY KEY, a VARCHAR(20))",
    "bag (a VARCHAR(20))",
    "one (id INT PRIMARY KEY)",
    "two (word VARCHAR(20) PRIMARY KEY)",
)
SECONDS_MAX = 300  # of a busy machine, that a JVM starts on


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


def changed(server: Server, database: str, number: int) -> None:
    """Changes of every kind that Spark isn't needed for."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        base = number * 100
        cursor.execute("BEGIN")
        cursor.executemany("INSERT INTO k (id, a) VALUES (%s, %s)", [(base + i, f"v{i}") for i in range(30)])
        cursor.executemany("INSERT INTO bag (a) VALUES (%s)", [(f"same {i % 3}",) for i in range(12)])
        cursor.execute("UPDATE k SET id = id + 50 WHERE id < %s AND id %% 7 = 0", (base + 30,))
        cursor.execute("COMMIT")
        cursor.execute("DELETE FROM bag LIMIT 5")
        cursor.execute(f"ALTER TABLE k ADD COLUMN c{number} INT NOT NULL DEFAULT 3")
        cursor.execute(f"UPDATE k SET c{number} = 5 WHERE id %% 5 = 0", ())
        cursor.execute(f"CREATE TABLE new_{number} (id BIGINT UNSIGNED PRIMARY KEY, at DATETIME(6))")
        cursor.execute(f"INSERT INTO new_{number} VALUES (18446744073709551615, '2026-01-02 03:04:05.678901')")
        connection.commit()


def overtaken(road: Road, database: str, point: str, spark: SparkSession | None) -> None:
    """Of what is captured a sleeper does a part; another one does the rest and more, and the sleeper wakes up."""
    log = road.folder / "sleeper.log"
    sleeper = started(None, road.file, f"{point}/sleep", log=log)
    try:
        assert asleep(sleeper), f"{point} was not reached: {log.read_text()[-2000:]}"
        road.server.query(f"UPDATE {database}.k SET a = 'overtaken'")
        road.capture()
        road.apply(spark)
        before = said(road)
        os.kill(sleeper.pid, signal.SIGCONT)
        sleeper.join(SECONDS_MAX)
    finally:
        sleeper.kill()
    assert said(road) == before, point
    assert sleeper.exitcode == EXIT_TRANSIENT, (point, log.read_text()[-2000:])


def begun(server: Server, database: str, folder: Path) -> Road:
    """All its tables are in silver, so that each window of a test has the same commits."""
    road = Road.begun(server, folder, database, *(f"CREATE TABLE {table}" for table in TABLES))
    road.capture()
    road.apply()
    return road


def settled(road: Road, spark: SparkSession | None, count: int) -> None:
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state == "held"]
    assert len(road.assert_equal()) == count


@pytest.mark.timeout(1800)
def test_who_sleeps_anywhere_in_its_window_and_is_overtaken_publishes_nothing_when_it_wakes(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, database, tmp_path)
    points = POINTS[:: many(2, 1)]
    for number, point in enumerate(points):
        changed(mariadb, database, number)
        road.capture()
        overtaken(road, database, point, None)
    settled(road, None, len(TABLES) + len(points))


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="its sleeper starts a JVM")
@pytest.mark.timeout(1800)
def test_who_sleeps_while_two_tables_change_names_and_is_overtaken_publishes_nothing_when_it_wakes(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, database, tmp_path)
    busy(mariadb, database, 0)
    swapped(mariadb, database, 0)
    road.capture()
    overtaken(road, database, "apply_in_move", spark)
    settled(road, spark, len(TABLES) + 1)
