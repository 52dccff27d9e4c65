"""SIGKILL of the Spark job at every named point; what comes after finishes the window, once.

Each kill leaves the lake as it is for the next one, so later points are reached from the middle of things.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.support.road import Road
from tests.support.servers import ROOT, FreshDatabase
from tidegate import tables
from tidegate.demo.server import Server
from tidegate.lake import control

pytestmark = [pytest.mark.server, pytest.mark.spark]

POINTS = (
    "apply_before_schema_history",
    "apply_after_schema_history",
    "apply_in_decode",
    "apply_after_stage",
    "apply_before_commit",
    "apply_after_commit:2",
    "apply_in_merge:2",
    "apply_in_move",  # one table of a swap is written
    "apply_in_move:2",
    "apply_after_merge",
    "apply_before_publish",
    "apply_after_publish",
)


def busy(server: Server, database: str, number: int) -> None:
    """Changes of every kind: keyed, without a key, key changes, and DDL in the middle."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        base = number * 100
        cursor.execute("BEGIN")
        cursor.executemany("INSERT INTO k (id, a) VALUES (%s, %s)", [(base + i, f"v{i}") for i in range(30)])
        cursor.executemany("INSERT INTO bag (a) VALUES (%s)", [(f"same {i % 3}",) for i in range(12)])
        cursor.execute("UPDATE k SET id = id + 50 WHERE id < %s AND id %% 7 = 0", (base + 30,))
        cursor.execute("COMMIT")
        cursor.execute("DELETE FROM bag LIMIT 5")
        cursor.execute(f"ALTER TABLE k ADD COLUMN c{number} INT NOT NULL DEFAULT {number}")
        cursor.execute(f"ALTER TABLE bag ADD COLUMN c{number} VARCHAR(9) DEFAULT 'n'")
        cursor.execute(f"UPDATE k SET c{number} = 5 WHERE id %% 5 = 0", ())
        cursor.execute(f"CREATE TABLE new_{number} (id BIGINT UNSIGNED PRIMARY KEY, at DATETIME(6))")
        cursor.execute(f"INSERT INTO new_{number} VALUES (18446744073709551615, '2026-01-02 03:04:05.678901')")
        cursor.execute("DELETE FROM bag LIMIT 2")


def swapped(server: Server, database: str, number: int) -> None:
    """Two tables without a column in common change names, with changes before and after."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        base = number * 100
        numbers, words = ("one", "two") if number % 2 == 0 else ("two", "one")
        cursor.execute("SET autocommit = 1")
        cursor.execute(f"INSERT INTO {numbers} VALUES ({base})")
        cursor.execute(f"INSERT INTO {words} VALUES ('w{base}')")
        cursor.execute("RENAME TABLE one TO x, two TO one, x TO two")
        cursor.execute(f"INSERT INTO {words} VALUES ({base + 1})")
        cursor.execute(f"UPDATE {numbers} SET word = 'new{base}' WHERE word = 'w{base}'")


def killed_apply(road: Road, point: str) -> None:
    """Run the job as a user would; it must die at the point, not end by itself."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "tidegate"), "apply", str(road.file)],
        env=os.environ | {"TIDEGATE_FAILPOINT": point, "TIDEGATE_HOME": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode != 0, f"{point} was not reached:\n{done.stdout[-2000:]}"
    assert "applied" not in done.stdout.splitlines()[-1:], done.stdout


@pytest.mark.timeout(1800)  # one Spark application per point
def test_killed_at_every_point_and_equal_in_the_end(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture(idle=0.5)
    mariadb.query(f"CREATE TABLE {database}.k (id INT PRIMARY KEY, a VARCHAR(20))")
    mariadb.query(f"CREATE TABLE {database}.bag (a VARCHAR(20))")
    mariadb.query(f"CREATE TABLE {database}.one (id INT PRIMARY KEY)")
    mariadb.query(f"CREATE TABLE {database}.two (word VARCHAR(20) PRIMARY KEY)")
    swaps = 0
    for number, point in enumerate(POINTS):
        busy(mariadb, database, number)
        if "move" in point:
            swapped(mariadb, database, swaps)
            swaps += 1
        road.capture(idle=0.5)
        killed_apply(road, point)
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state == "held"]
    assert len(road.assert_equal()) == 4 + len(POINTS)
    cuts = control.read(road.lake, tables.CUTS)
    published = cuts.filter(pc.equal(cuts["table"], ""))["cut_ts"].to_pylist()
    assert len(published) == len(set(published)), "a cut is published once"
