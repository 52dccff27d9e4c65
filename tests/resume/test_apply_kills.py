"""SIGKILL of the Spark driver at every named point; what comes after finishes the window, once.

Each kill leaves the lake as it is for the next one, so later points are reached from the middle of things. In the gate
no rows change tables. Each night they do, too, and one kill is of `tidegate apply` as a user runs it, with a JVM of
its own; the others are as in tests/support/driver.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.servers import ROOT, FreshDatabase
from tidegate import tables
from tidegate.lake import control
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

# Whether the source changes more before the kill; else the same window is tried again and killed further on.
POINTS = {
    "apply_before_schema_history": True,
    "apply_after_schema_history": False,
    "apply_in_decode": True,  # of the window's DDL a part is known already
    "apply_after_stage": False,
    "apply_before_commit": False,
    "apply_after_commit:2": True,
    "apply_in_merge:2": True,
    "private_before_commit": True,  # of a table without a key that loses a column
    "reshape_after_file": True,  # of a column whose rows get a value
    "reshape_before_commit": False,
    "reshape_before_commit:2": False,  # of another table, or of the same one's next statement
    "apply_in_move": True,  # one table of a swap is written
    "apply_in_move:2": True,
    "apply_after_merge": True,
    "apply_before_publish": False,
    "apply_after_publish": True,
}
MOVES = frozenset({"private_before_commit", "apply_in_move", "apply_in_move:2"})
WHOLE_PROCESS = "apply_after_commit:2"  # one table is ahead of the others
# Each driver gets one step further in the same window: what was moved before isn't moved again.
MOVE_POINTS = (
    "apply_in_move",  # one of the two that exchange
    "apply_in_move",  # the other one
    "apply_in_move",  # a partition has become a table
    "apply_in_move",  # and that one a partition again
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
        cursor.execute(f"ALTER TABLE k MODIFY COLUMN c{number} BIGINT NOT NULL DEFAULT {number}")
        cursor.execute(f"ALTER TABLE bag ADD COLUMN gone DATE, RENAME COLUMN c{number} TO cc{number}")
        cursor.execute("ALTER TABLE bag DROP COLUMN gone")
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


def moved(server: Server, database: str, number: int) -> None:
    """A partition changes places with a table, one becomes a table and a partition again, one is dropped."""
    base = number * 10
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET autocommit = 1")
        cursor.execute(f"INSERT INTO parts VALUES ({base}, 0, 1), ({base + 1}, 0, 1), ({base}, 1, 1), ({base}, 2, 1)")
        cursor.execute(f"INSERT INTO other VALUES ({base + 5}, 0, 2)")
        cursor.execute("ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE other")
        cursor.execute("UPDATE parts SET v = v + 1 WHERE k = 0")
        cursor.execute(f"DELETE FROM other WHERE id = {base}")
        cursor.execute(f"ALTER TABLE parts CONVERT PARTITION p1 TO TABLE apart_{number}")
        cursor.execute(f"INSERT INTO apart_{number} VALUES ({base + 7}, 1, 3)")
        cursor.execute(f"ALTER TABLE parts CONVERT TABLE apart_{number} TO PARTITION p1 VALUES IN (1)")
        cursor.execute("ALTER TABLE parts DROP PARTITION p2")
        cursor.execute("ALTER TABLE parts ADD PARTITION (PARTITION p2 VALUES IN (2))")
        cursor.execute(f"INSERT INTO parts VALUES ({base + 8}, 2, 4)")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("left_out", [pytest.param(MOVES, id="no moves"), pytest.param(frozenset(), id="all")])
def test_killed_at_every_point_and_equal_in_the_end(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, left_out: frozenset[str]
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        "CREATE TABLE k (id INT PRIMARY KEY, a VARCHAR(20))",
        "CREATE TABLE bag (a VARCHAR(20))",
        "CREATE TABLE one (id INT PRIMARY KEY)",
        "CREATE TABLE two (word VARCHAR(20) PRIMARY KEY)",
    )
    rounds = swaps = 0
    for point, changes in POINTS.items():
        if point in left_out:
            continue
        if changes:
            busy(mariadb, database, rounds)
            rounds += 1
        if "move" in point:
            swapped(mariadb, database, swaps)
            swaps += 1
        if changes:
            road.capture()
        if point == WHOLE_PROCESS and not left_out:
            killed_apply(road, point)
        else:
            killed(spark, road.file, point)
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state == "held"]
    assert len(road.assert_equal()) == 4 + rounds
    cuts = control.read(road.lake, tables.CUTS)
    published = cuts.filter(pc.equal(cuts["table"], ""))["cut_ts"].to_pylist()
    assert len(published) == len(set(published)), "a cut is published once"


def test_killed_while_partitions_move_and_equal_in_the_end(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    columns = "(id INT, k INT, v INT, PRIMARY KEY (id, k))"
    parts = ", ".join(f"PARTITION p{number} VALUES IN ({number})" for number in range(3))
    mariadb.query(f"CREATE TABLE {database}.parts {columns} PARTITION BY LIST (k) ({parts})")
    mariadb.query(f"CREATE TABLE {database}.other {columns}")
    moved(mariadb, database, 0)
    road.capture()
    for point in MOVE_POINTS:
        killed(spark, road.file, point)
    moved(mariadb, database, 1)
    road.capture()
    killed(spark, road.file, "apply_in_move:2")
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state == "held"]
    assert set(road.assert_equal()) == {"parts", "other"}
