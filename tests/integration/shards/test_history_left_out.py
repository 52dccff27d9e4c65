"""The history of shards that were left out: what a table has of them below the place where it lacks their rows."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.shards.test_history_read import DEFINED, Turns, _rebuild, filled
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.seeds import seed
from tests.support.servers import FreshDatabase
from tests.support.shard_pasts import ShardPast
from tidegate import tables
from tidegate.lake.standing.held import release
from tidegate.local.server import Server
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(1500)]


def begun(mariadb: Server, database: str, folder: Path, spark: SparkSession, ddl: str = "{}") -> tuple[Turns, str]:
    """t_1 is new, and kept. t_4 has rows from before, and is left out by the key that is returned."""
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    for statement in filled("t_4"):
        mariadb.query(statement, database=database)
    keys = f", history: ['{database}.*'], routes: [{{match: '{database}.t_[0-9]', to: {database}.t}}]"
    out = f", exclude: ['{database}.t_4']"
    road = Road(mariadb, folder, include=f"{database}.*", extra=f"{keys}{out}", apply=", writer: positional")
    road.text += f"ddl: {ddl}\n"
    past = ShardPast(mariadb, database, ["t_1", "t_4"], source="one", logical=f"{database}.t")
    turns = Turns(road, past, spark, random.Random(seed()))
    turns.follow(road.text)
    road.capture()
    past.begin()
    past.done(f"CREATE TABLE t_1 ({DEFINED})")
    for _ in range(4):
        turns.change()
    turns.apply()
    return turns, out


def test_a_table_with_a_shard_that_nobody_had_heard_of_is_rebuilt(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """What its log said before silver had any of its rows is no history of it."""
    database = fresh_database(mariadb)
    turns, out = begun(mariadb, database, tmp_path, spark)
    road, past = turns.road, turns.past
    road.text = road.text.replace(out, "")
    turns.follow(road.text)
    for _ in range(3):
        turns.change()
    app = turns.apply()
    assert app.states[past.logical].state == "snapshot", app.states
    past.unknown["t_4"] = set(range(len(past.states)))
    assert Reading(road, spark).run().states[past.logical].state == "active"
    past.check(road)
    begins = min(row[tables.VALID_FROM] for row in past.versions_of(road, "t_4") or ())
    _rebuild(road, spark, past.logical, "positional")
    past.logical = f"{database}.by_positional"
    past.check(road)
    assert min(row[tables.VALID_FROM] for row in past.versions_of(road, "t_4") or ()) == begins


def test_a_table_that_catches_up_leaves_an_unknown_shard_out_and_goes_on(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    turns, out = begun(mariadb, database, tmp_path, spark, "{add_column: ask}")
    road, past = turns.road, turns.past
    past.done("ALTER TABLE t_1 ADD COLUMN extra INT")
    assert turns.apply().states[past.logical].state == "held"
    road.text = road.text.replace(out, "")
    turns.follow(road.text)
    for _ in range(3):
        turns.change()
    app = turns.apply()
    assert app.states[past.logical].state == "held"
    release(road.lake, app.states[past.logical])
    app = turns.apply()
    assert app.states[past.logical].state == "snapshot", app.states[past.logical]
    past.unknown["t_4"] = set(range(len(past.states)))
    past.check(road)
    assert {row["id"] for row in past.versions_of(road, "t_4") or ()} == set()
    assert Reading(road, spark).run().states[past.logical].state == "active"
    past.check(road)
    road.assert_equal()
