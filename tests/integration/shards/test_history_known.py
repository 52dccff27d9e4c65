"""From when on the history of a table of shards is known: from where it is of all its shards."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.query.test_history_forgotten import TABLE, more
from tests.kit.road import Road
from tests.support.known_history import check, forget_cuts, since, taken
from tests.support.servers import FreshDatabase
from tests.support.shard_pasts import ShardPast
from tidegate.lake.standing.held import last_states
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.parametrize("apart", [True, False])
def test_a_shard_that_changed_unheard_ends_what_was_known_of_all(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, apart: bool
) -> None:
    """apart: that it lacks rows is recorded before it is emptied."""
    database = fresh_database(mariadb)
    extra = f", history: ['{database}.*'], routes: [{{match: '{database}.part_.*', to: {database}.parts}}]"
    named = "}\nddl: {statement_effects: named"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=extra, apply=named)
    road.capture()
    past = ShardPast(mariadb, database, ["part_1", "part_2"], source="one", logical=f"{database}.parts")
    past.begin()
    for name in past.names:
        past.done(f"CREATE TABLE {name} {TABLE}")
        past.done(f"INSERT INTO {name} VALUES (1, 0), (2, 0)")
    taken(road, spark)
    more(road, past, spark, "part_1", 1)
    begin = since(road, past.logical)
    assert past.moments(road)[1] < begin < past.moments(road)[2], (
        "the last CREATE of a shard, with no rows of any in silver"
    )
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute("INSERT INTO part_2 VALUES (50, 50)")
        connection.commit()
    past.done("UPDATE part_1 SET n = 9")
    if apart:
        road.capture()
        road.apply(spark)
        assert last_states(road.lake)[past.logical].state == "snapshot"
        assert since(road, past.logical) == 0
    past.done("TRUNCATE TABLE part_2")
    past.done("INSERT INTO part_2 VALUES (3, 0)")
    if not apart:
        road.capture()
        assert road.apply(spark).states[past.logical].state == "held", "the statement is in this window"
        assert since(road, past.logical) == 0
        return
    taken(road, spark)
    emptied = past.moments(road)[len(past.states) - 2]
    more(road, past, spark, "part_2")
    assert since(road, past.logical) > emptied > begin
    forget_cuts(road)
    assert all(check(road, past, name, spark) >= 1 for name in past.names)
