"""Chunks that a reader landed become rows of silver: a table that had rows before capture is whole, exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.kit.road import Road
from tests.support.plain_snapshot import PlainReader
from tests.support.readers import by_duckdb
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.standing.causes import Cause

pytestmark = [pytest.mark.server, pytest.mark.spark]


def state(app: Application, database: str, table: str) -> str:
    """Of the silver table; active when nothing was ever said."""
    found = app.states.get(f"{database}.{table}")
    return found.state if found else "active"


def stocked(server: Server, database: str, rows: int = 10) -> None:
    """A table that has rows before capture begins."""
    server.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a VARCHAR(20), n INT)")
    values = ", ".join(f"({i}, 'old {i}', NULL)" for i in range(1, rows + 1))
    server.query(f"INSERT INTO {database}.t VALUES {values}")


def road_of(server: Server, folder: Path, database: str, settings: str = "writer: positional", more: str = "") -> Road:
    return Road(server, folder, include=f"{database}.*", extra=more, apply=f", {settings}")


def stepped(road: Road, spark: SparkSession) -> Application:
    road.capture()
    return road.apply(spark)


def test_a_table_with_rows_from_before_is_whole_after_its_snapshot(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Each server and each writer once: what a writer is given says nothing of the server."""
    writer = "merge" if any_server.flavour == "mariadb" else "positional"
    database = fresh_database(any_server)
    stocked(any_server, database)
    road = road_of(any_server, tmp_path, database, f"writer: {writer}")
    app = stepped(road, spark)
    assert state(app, database, "t") == "held"
    reader = PlainReader(road, database, "t")
    reader.low()
    any_server.query(f"UPDATE {database}.t SET a = 'seen' WHERE id = 2")
    reader.read(3)
    any_server.query(f"UPDATE {database}.t SET a = 'too late' WHERE id = 3")
    any_server.query(f"DELETE FROM {database}.t WHERE id = 1")
    assert state(stepped(road, spark), database, "t") == "held", "a wave that is open changes nothing"
    reader.read(3)
    reader.high()
    any_server.query(f"UPDATE {database}.t SET id = 60 WHERE id = 6")
    assert state(stepped(road, spark), database, "t") == "snapshot"
    assert reader.told.waves == 1
    assert not reader.told.waiting
    any_server.query(f"INSERT INTO {database}.t VALUES (4000, 'new', 4)")
    reader.whole_wave(count=2, chunks=9)
    assert state(stepped(road, spark), database, "t") == "snapshot"
    assert not reader.told.left
    reader.end()
    any_server.query(f"DELETE FROM {database}.t WHERE id = 7")
    assert state(stepped(road, spark), database, "t") == "active"
    assert reader.told.state is SnapshotState.DONE
    assert road.assert_equal() == {"t": 9}
    reader.close()


def finished(road: Road, spark: SparkSession, reader: PlainReader) -> Application:
    """All that is left is read in waves, then the end mark."""
    while not reader.told.is_read:
        reader.whole_wave()
        stepped(road, spark)
    reader.end()
    return stepped(road, spark)


@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_a_row_whose_key_another_writer_takes_away_meanwhile_goes_with_the_end(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    """No range has it, and its commit_ts is the wave's: as that of a row of the source."""
    database = fresh_database(mariadb)
    road = road_of(mariadb, tmp_path, database, f"writer: {writer}")
    road.capture()
    stocked(mariadb, database)
    stepped(road, spark)
    reader = PlainReader(road, database, "t")
    reader.whole_wave(count=3, chunks=1)
    stepped(road, spark)
    silver = road.lake.uri(tables.silver_path(database, "t"))
    spark.sql(f"UPDATE delta.`{silver}` SET id = NULL WHERE id = 2").collect()
    finished(road, spark, reader)
    ids = sorted(by_duckdb(silver)["id"].to_pylist())
    assert ids == [1, *range(3, 11)], "verify names the row that is missing"
    reader.close()


@pytest.mark.parametrize("writer", ["merge", "positional"])
def test_a_whole_table_keeps_its_rows_and_loses_those_that_the_source_lacks(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(mariadb)
    road = road_of(mariadb, tmp_path, database, f"writer: {writer}", f", soft_delete: ['{database}.s']")
    road.capture()
    for name in "ts":
        mariadb.query(f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY, a VARCHAR(20))")
        mariadb.query(f"INSERT INTO {database}.{name} VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
    stepped(road, spark)
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")  # silver goes wrong: it never hears of these
        for name in "ts":
            cursor.execute(f"DELETE FROM {name} WHERE id = 1")
            cursor.execute(f"UPDATE {name} SET a = 'unheard' WHERE id = 2")
            cursor.execute(f"INSERT INTO {name} VALUES (9, 'unheard')")
        connection.commit()
    readers = [PlainReader(road, database, "t")]
    readers.append(PlainReader(road, database, "s", readers[0]))
    for reader in readers:
        reader.whole_wave(count=2)
    mariadb.query(f"UPDATE {database}.t SET id = 30 WHERE id = 3")
    app = stepped(road, spark)
    assert state(app, database, "t") == "active", "it takes part in each window as it did"
    for reader in readers:
        app = finished(road, spark, reader)
        assert reader.told.state is SnapshotState.DONE
    assert road.assert_equal() == {"t": 4, "s": 4}
    rows = by_duckdb(road.lake.uri(tables.silver_path(database, "s"))).to_pylist()
    assert {row["id"] for row in rows if row[tables.DELETED]} == {1}, "soft_delete keeps it, marked"
    log = road.lake.log(tables.silver_path(database, "t"))
    before = log.state().version
    stepped(road, spark)
    assert log.state().version == before, "an end is met once"
    for reader in readers:
        reader.close()


def cut_over(server: Server, database: str, table: str) -> None:
    """A column more, as gh-ost adds it: in a copy that takes the table's place."""
    copy, old = f"{database}._{table}_gho", f"{database}._{table}_del"
    server.query(f"CREATE TABLE {copy} LIKE {database}.{table}")
    server.query(f"ALTER TABLE {copy} ADD COLUMN c INT NOT NULL DEFAULT 5")
    server.query(f"INSERT INTO {copy} (id, b, a) SELECT id, b, a FROM {database}.{table}")
    server.query(f"RENAME TABLE {database}.{table} TO {old}, {copy} TO {database}.{table}")
    server.query(f"INSERT INTO {database}.{table} VALUES (9, 9, 'y', 9)")
    server.query(f"DROP TABLE {old}")


@pytest.mark.parametrize("any_server", ["mariadb", pytest.param("mysql9", marks=pytest.mark.long)], indirect=True)
def test_ddl_meanwhile_refuses_the_wave_that_it_hits_and_ends_what_can_not_go_on(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    for name in ("t", "gone", "keyed", "bare", "emptied", "named", "ghost"):
        any_server.query(f"CREATE TABLE {database}.{name} (id INT NOT NULL, b INT NOT NULL, a VARCHAR(9))")
        if name != "bare":
            any_server.query(f"ALTER TABLE {database}.{name} ADD PRIMARY KEY (id)")
        any_server.query(f"INSERT INTO {database}.{name} VALUES (1, 1, 'x'), (2, 2, 'x'), (3, 3, 'x')")
    road = road_of(any_server, tmp_path, database)
    stepped(road, spark)
    readers = {"t": PlainReader(road, database, "t")}
    for name in ("gone", "keyed", "bare", "emptied", "named", "ghost"):
        readers[name] = PlainReader(road, database, name, readers["t"])
    for reader in readers.values():
        reader.whole_wave(count=1, chunks=1)
    app = stepped(road, spark)
    assert {name: state(app, database, name) for name in readers} == dict.fromkeys(readers, "snapshot") | {
        "bare": "held"
    }
    assert "no key" in readers["bare"].told.refused[0]

    readers["t"].low()
    readers["t"].read(1)
    any_server.query(f"ALTER TABLE {database}.t ADD COLUMN c INT NOT NULL DEFAULT 7")
    readers["t"].high()
    any_server.query(f"DROP TABLE {database}.gone")
    any_server.query(f"ALTER TABLE {database}.keyed DROP PRIMARY KEY, ADD PRIMARY KEY (b)")
    any_server.query(f"TRUNCATE TABLE {database}.emptied")
    any_server.query(f"INSERT INTO {database}.emptied VALUES (8, 8, 'y')")
    any_server.query(f"RENAME TABLE {database}.named TO {database}.taker")
    cut_over(any_server, database, "ghost")
    app = stepped(road, spark)
    assert "a DDL changed the table" in readers["t"].told.refused[0]
    assert readers["t"].told.left, "its rows are to be read again"
    assert (state(app, database, "gone"), readers["gone"].told.state) == ("dropped", SnapshotState.CANCELLED)
    assert readers["keyed"].told.state is SnapshotState.CANCELLED
    assert "another key" in readers["keyed"].told.reason
    assert state(app, database, "emptied") == "active", "all of it is in the log from there on"
    assert (state(app, database, "named"), readers["named"].told.state) == ("dropped", SnapshotState.CANCELLED)
    assert app.states[f"{database}.taker"].cause == Cause.NEEDS_ROWS
    assert readers["ghost"].told.state is SnapshotState.CANCELLED
    any_server.query(f"INSERT INTO {database}.t VALUES (40, 4, 'z', 9)")
    any_server.query(f"ALTER TABLE {database}.t DROP COLUMN b")
    assert state(stepped(road, spark), database, "ghost") == "held", "what its rows were read for has another name"
    readers["again"] = PlainReader(road, database, "ghost", readers["t"])
    finished(road, spark, readers["again"])
    finished(road, spark, readers["emptied"])
    app = finished(road, spark, readers["t"])
    assert (state(app, database, "t"), state(app, database, "keyed")) == ("active", "held")
    assert road.assert_equal() == {"t": 4, "emptied": 1, "ghost": 4}
    for reader in readers.values():
        reader.close()
