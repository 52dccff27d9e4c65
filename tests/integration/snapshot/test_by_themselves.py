"""On a database that is full each table is snapshotted without a person, and so is what comes to wait later."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.integration.snapshot.test_command import begun, ended
from tests.kit.road import Road
from tests.kit.snapshots import Reading, patiently, rows, states
from tests.support.readers import rows_of
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.home import EXIT_INTERRUPTED
from tidegate.local.server import Server
from tidegate.snapshot.progress import unheard
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.requests import told
from tidegate.snapshot.work import SnapshotWork
from tidegate.standing.causes import Cause
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_full_database_and_what_joins_it_need_nobody(
    any_server: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = "merge" if any_server.flavour == "mariadb" else "positional"  # it is told nothing of the server
    monkeypatch.setattr(unheard, "SNAPSHOT_UNHEARD_SECONDS", 0.0)
    database = fresh_database(any_server)
    for name in ("a", "b", "later", "Odd name`s", "elsewhere", "quiet"):
        quoted = name.replace("`", "``")
        any_server.query(f"CREATE TABLE {database}.`{quoted}` (id INT PRIMARY KEY, a VARCHAR(20))")
        any_server.query(f"INSERT INTO {database}.`{quoted}` VALUES {rows(1, 300)}")
    any_server.query(f"CREATE TABLE {database}.hollow (id INT PRIMARY KEY, a VARCHAR(20))")
    any_server.query(f"CREATE TABLE {database}.bare (id INT, a VARCHAR(20))")
    any_server.query(f"INSERT INTO {database}.bare VALUES {rows(1, 9)}")
    any_server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{any_server.user}'@'%'")
    more = f", exclude: ['{database}.later', '{database}.elsewhere', '{database}.bare', '{database}.quiet']"
    road = Road(any_server, tmp_path, include=f"{database}.*", extra=more, apply=f", writer: {writer}")
    reading = Reading(road, spark)
    road.capture()
    app = reading.run()  # apply has never run: the log's own baseline says what waits
    found = states(app)
    assert {found[name] for name in ("a", "b", "Odd name`s")} == {"active"}, found
    assert road.assert_equal() == {"a": 300, "b": 300, "Odd name`s": 300, "hollow": 0}

    # The pattern is widened, and a table gets the name of a kept one.
    kept = road.text.replace(f"'{database}.later', ", "").replace(f", '{database}.quiet'", "")
    road.file.write_text(kept)
    road.pipeline = config.load(road.file)
    any_server.query(f"INSERT INTO {database}.later VALUES (1000, 'new')")
    any_server.query(f"RENAME TABLE {database}.elsewhere TO {database}.taken")
    road.capture()
    found = states(road.apply(spark))
    assert (found["later"], found["taken"]) == ("held", "held")
    app = reading.run()
    assert (states(app)["later"], states(app)["taken"]) == ("active", "active")
    counts = road.assert_equal()
    assert (counts["later"], counts["quiet"]) == (301, 300), "also the one that nothing was written to"

    # What a session wrote as statements, in the place of rows.
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute(f"INSERT INTO hollow VALUES {rows(1, 20)}")
        connection.commit()
    road.capture()
    assert states(road.apply(spark))["hollow"] == "held"
    app = reading.run()
    assert states(app)["hollow"] == "active"
    assert road.assert_equal()["hollow"] == 20


def test_a_table_that_can_not_be_read_is_left_to_a_person_after_a_try_and_manual_leaves_all(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    for name in ("a", "wide"):
        mariadb.query(f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY, a VARCHAR(20))")
        mariadb.query(f"INSERT INTO {database}.{name} VALUES {rows(1, 30)}")
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.file.write_text(road.text + "snapshot: {mode: manual}\n")
    road.pipeline = config.load(road.file)
    road.capture()
    reading = Reading(road, spark)
    app = reading.run()
    assert {app.states[f"{database}.{name}"].cause for name in ("a", "wide")} == {Cause.NEEDS_ROWS}
    assert told(road.lake, "road") == []

    mariadb.query(f"DROP TABLE {database}.wide")  # capture hasn't seen it
    road.file.write_text(road.text)
    road.pipeline = config.load(road.file)
    work = SnapshotWork(road.pipeline, road.lake, lambda _: road.info, reading.lines.append)
    assert {table for _, _, table in work.ask()} == {"a", "wide"}
    app = reading.run()
    assert states(app) == {"a": "active", "wide": "dropped"}
    (failed,) = [one for one in told(road.lake, "road") if one.table == "wide"]
    assert failed.state in (SnapshotState.FAILED, SnapshotState.CANCELLED)
    assert reading.run(), "it is dropped, so nothing waits"
    assert len(told(road.lake, "road")) == 2


def test_a_whole_table_that_is_read_again_is_a_state_between_in_each_of_its_versions(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    writer = "positional" if any_server.flavour == "mariadb" else "merge"
    database = fresh_database(any_server)
    any_server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{any_server.user}'@'%'")
    road = Road(any_server, tmp_path, include=f"{database}.*", apply=f", writer: {writer}")
    road.file.write_text(road.text + "snapshot: {chunk_rows: 100, parallel: 2}\n")
    road.pipeline = config.load(road.file)
    road.capture()
    any_server.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a VARCHAR(20))")
    any_server.query(f"INSERT INTO {database}.t VALUES {rows(1, 900)}")
    road.capture()
    road.apply(spark)
    path = tables.silver_path(database, "t")
    log = road.lake.log(path)

    def at(version: int) -> dict[int, str]:
        return dict(rows_of(road.lake.uri(path), "id, a", version=version))

    first = log.state().version
    old = at(first)
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")  # silver goes wrong: it never hears of these
        cursor.execute("DELETE FROM t WHERE id % 10 = 1")
        cursor.execute("UPDATE t SET a = 'unheard' WHERE id % 10 = 2")
        cursor.execute(f"INSERT INTO t VALUES {rows(2001, 2100)}")
        connection.commit()
    any_server.query(f"UPDATE {database}.t SET a = 'heard' WHERE id % 10 = 3")
    app = Reading(road, spark).run(f"{database}.t")
    assert states(app).get("t", "active") == "active"
    road.capture()
    road.apply(spark)
    assert road.assert_equal() == {"t": 910}
    last = log.state().version
    now = at(last)
    assert last > first + 1
    for version in range(first, last + 1):
        found = at(version)
        assert old.keys() & now.keys() <= found.keys() <= old.keys() | now.keys(), version
        assert all(text in (old.get(key), now.get(key)) for key, text in found.items()), version
    (done,) = told(road.lake, "road")
    assert done.state is SnapshotState.DONE
    assert (done.rows, done.estimate > 0, done.rate > 0) == (910, True, True)


def test_the_command_keeps_reading_what_waits_and_begins_again_when_told(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    for name in ("a", "late"):
        mariadb.query(f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY, a VARCHAR(20))")
        mariadb.query(f"INSERT INTO {database}.{name} VALUES {rows(1, 30)}")
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", exclude: ['{database}.late']")
    road.capture()

    def until(over: Callable[[], bool]) -> Application:
        for _ in patiently():
            road.capture()
            app = road.apply(spark)
            if over():
                return app
        raise AssertionError(told(road.lake, "road"))

    def done() -> dict[str, str]:
        return {one.table: str(one.state) for one in told(road.lake, "road")}

    process = begun(road, "run", "--follow")
    until(lambda: done() == {"a": "done"} or process.poll() is not None)
    mariadb.query(f"DROP TABLE IF EXISTS {database}.b")
    mariadb.query(f"RENAME TABLE {database}.late TO {database}.b")  # from an unkept name
    app = until(lambda: done() == {"a": "done", "b": "done"} or process.poll() is not None)
    assert states(app) == {"a": "active", "b": "active"}
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == EXIT_INTERRUPTED

    process = begun(road, "restart", f"{database}.a")
    until(lambda: process.poll() is not None)
    code, out, _ = ended(process)
    assert (code, out.split(",")[0]) == (0, "1 table is read")
    until(lambda: done() == {"a": "done", "b": "done"})
    assert len(told(road.lake, "road")) == 3
    assert road.assert_equal() == {"a": 30, "b": 30}
