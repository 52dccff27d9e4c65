"""History of a table that a snapshot reads while it is written to: exact from the end of the reading on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.past import Past
from tests.support.plain_snapshot import PlainReader
from tests.support.readers import READERS
from tests.support.seeds import seed
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROWS = 60


def work(rng: random.Random) -> list[str]:
    """A transaction all over the table."""
    key, other = rng.randrange(ROWS), rng.randrange(2 * ROWS)
    return rng.sample(
        [
            f"UPDATE t SET n = n + 1 WHERE id BETWEEN {key} AND {key + 5}",
            f"DELETE FROM t WHERE id = {key}",
            f"UPDATE IGNORE t SET id = {other} WHERE id = {key}",
            f"REPLACE INTO t VALUES ({other}, 'new {other}', 0)",
        ],
        k=rng.choice([1, 2]),
    )


def seen_twice(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Versions that a snapshot began where the one before had the same values."""
    ended = {(row["id"], row[tables.VALID_TO]): (row["a"], row["n"]) for row in rows if row[tables.VALID_TO]}
    return [
        row
        for row in rows
        if not row[tables.FROM_KNOWN] and ended.get((row["id"], row[tables.VALID_FROM])) == (row["a"], row["n"])
    ]


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_the_history_of_a_table_that_is_read_while_it_changes(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    """Read twice: the first time silver has nothing of it, the second time all, and equal rows stay as they are."""
    database, rng = fresh_database(mariadb), random.Random(seed())
    mariadb.query(f"CREATE TABLE {database}.t (id BIGINT PRIMARY KEY, a VARCHAR(40), n INT NOT NULL)")
    values = ", ".join(f"({at}, 'old {at}', 0)" for at in range(ROWS))
    mariadb.query(f"INSERT INTO {database}.t VALUES {values}")
    keys = f", history: ['{database}.*']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=keys, apply=f", writer: {writer}")
    road.capture()
    past = Past(mariadb, database, ["t"])
    past.begin()
    road.capture()
    road.apply(spark)
    exact_from = [0]
    for _ in range(2):
        reader = PlainReader(road, database, "t")
        while not reader.told.is_read:
            reader.low()
            while reader.rows_of_wave < ROWS // 3 and reader.read(ROWS // 6):
                past.done(*work(rng))
                if rng.random() < 0.3:  # a window ends in mid-wave
                    road.capture()
                    road.apply(spark)
            reader.high()
            past.done(*work(rng))
            if rng.random() < 0.5:  # else a window has several waves, and what changed between them
                road.capture()
                road.apply(spark)
        reader.end()
        road.capture()
        app = road.apply(spark)
        assert app.states[f"{database}.t"].state == "active", app.states[f"{database}.t"].reason
        exact_from.append(len(past.states))
        for _ in range(5):
            past.done(*work(rng))
        road.capture()
        road.apply(spark)
        reader.close()
        road.assert_equal()
    # From the end of the first reading on every moment is exact, those of the second reading, too.
    past.check(road, since=exact_from[1])
    rows = READERS["DuckDB"](road.lake.uri(tables.silver_path(database, "t"))).to_pylist()
    assert not seen_twice(rows), "a row that was read as it was began a version"
    assert any(not row[tables.FROM_KNOWN] for row in rows)
    assert any(not row[tables.FROM_KNOWN] and row[tables.COMMIT_TS] > row[tables.VALID_FROM] for row in rows), (
        "no row was read again as it was"
    )


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_a_row_that_is_read_as_its_change_left_it_has_one_version(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    """Both are in the window that fills the table: the change comes between two waves, and the second one reads it."""
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.t (id BIGINT PRIMARY KEY, a VARCHAR(40), n INT NOT NULL)")
    mariadb.query(f"INSERT INTO {database}.t VALUES {', '.join(f'({at}, NULL, 0)' for at in range(20))}")
    keys = f", history: ['{database}.*']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=keys, apply=f", writer: {writer}")
    road.capture()
    reader = PlainReader(road, database, "t")
    for statement in (
        "UPDATE t SET n = 1 WHERE id IN (12, 15)",
        "UPDATE t SET n = 2 WHERE id = 3",
        "DELETE FROM t WHERE id = 15",
    ):
        reader.low()
        reader.read(10)
        reader.high()
        mariadb.query(statement, database=database)
    road.capture()
    road.apply(spark)
    reader.end()
    road.capture()
    app = road.apply(spark)
    assert app.states[f"{database}.t"].state == "active", app.states[f"{database}.t"].reason
    reader.close()
    road.assert_equal()
    rows = READERS["DuckDB"](road.lake.uri(tables.silver_path(database, "t"))).to_pylist()
    known = {row["id"]: row for row in rows if row[tables.FROM_KNOWN]}
    assert sorted(row["id"] for row in rows) == sorted([*range(20), 3]), "row 3 alone has two versions"
    assert (known.keys(), known[15][tables.IS_CURRENT]) == ({3, 12, 15}, False)
    assert known[12][tables.COMMIT_TS] > known[12][tables.VALID_FROM], "it was seen last by the reader"
