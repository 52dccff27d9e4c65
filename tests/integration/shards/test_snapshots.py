"""Shards with a past: each is read by itself, the others of its table go on meanwhile and keep their rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.integration.shards.test_shards import Shards
from tests.kit.road import Road
from tests.kit.snapshots import Reader, Reading, rows, states
from tests.support.readers import by_duckdb
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.lake.cuts import published
from tidegate.local.server import Server
from tidegate.snapshot.progress import automatic
from tidegate.snapshot.progress.requests import told
from tidegate.snapshot.work import SnapshotWork
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROUTES = "{{match: '{d}.t_[0-9]', to: {d}.t}}, {{match: '{d}.k_[0-9]', to: {d}.k}}"


def made(server: Server, database: str, name: str, *, key: str = "PRIMARY KEY", filled: bool = True) -> None:
    server.query(f"CREATE TABLE {database}.{name} (id INT {key}, a VARCHAR(20))")
    if filled:
        server.query(f"INSERT INTO {database}.{name} VALUES {rows(1, 40)}")


def now(app: Application) -> dict[str, str]:
    return {name: state for name, state in states(app).items() if name in ("t", "k")}


def asked(road: Road) -> list[str]:
    return sorted(one.table for one in told(road.lake, "road"))


def stepped(road: Road, spark: SparkSession) -> Application:
    road.capture()
    return road.apply(spark)


def assert_rebuilt(road: Road, spark: SparkSession, table: str) -> None:
    lines: list[str] = []
    plan = Rebuild.plan(road.pipeline, road.lake, table, "", "")
    code = rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=lines.append)
    assert (code, lines[-1]) == (0, "equal"), lines


@pytest.mark.timeout(1800)
def test_shards_with_a_past_are_read_one_by_one_and_the_others_go_on(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(automatic, "SNAPSHOT_AGAIN_SECONDS", 0)  # a shard is read more than once within a minute
    database = fresh_database(mariadb)
    for name in ("t_1", "t_2", "t_4"):
        made(mariadb, database, name)
    made(mariadb, database, "t_3", filled=False)
    for name in ("k_1", "k_2"):
        made(mariadb, database, name, key="")
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    out = f", exclude: ['{database}.t_[4-6]', '{database}.k_3']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", routes: [{ROUTES.format(d=database)}]{out}")
    reading = Reading(road, spark)
    road.capture()
    mariadb.query(f"INSERT INTO {database}.t_3 VALUES (7, 'logged')")
    mariadb.query(f"UPDATE {database}.t_1 SET a = 'logged' WHERE id = 7")
    app = stepped(road, spark)
    assert now(app) == {"t": "snapshot", "k": "snapshot"}, "no shard holds the others"
    assert "t_1 of one" in app.states[f"{database}.t"].reason
    assert f"{database}.t" in published.cut_at(road.lake, "road").missing
    log = road.lake.log(tables.silver_path(database, "t"))
    assert log.state().created, "a shard without a past goes on"
    app = reading.run()
    assert now(app) == {"t": "active", "k": "active"}
    assert asked(road) == ["k_1", "k_2", "t_1", "t_2"]
    assert road.assert_equal() == {"t_1": 40, "t_2": 40, "t_3": 1, "k_1": 40, "k_2": 40}

    # One that nobody has heard of, one that was filled while it wasn't kept, one without a key, one by a rename.
    made(mariadb, database, "t_5")
    made(mariadb, database, "k_3", key="")
    made(mariadb, database, "elsewhere")
    mariadb.query(f"ALTER TABLE {database}.t_5 ADD COLUMN more INT DEFAULT 5")
    stepped(road, spark)
    road.file.write_text(road.text.replace(out, f", exclude: ['{database}.elsewhere']"))
    road.pipeline = config.load(road.file)
    mariadb.query(f"UPDATE {database}.t_4 SET a = 'new' WHERE id = 3")
    mariadb.query(f"UPDATE {database}.t_1 SET a = 'meanwhile' WHERE id = 4")
    mariadb.query(f"INSERT INTO {database}.k_1 VALUES (3, 'meanwhile'), (3, 'meanwhile')")
    mariadb.query(f"RENAME TABLE {database}.elsewhere TO {database}.t_6")
    app = stepped(road, spark)
    assert now(app) == {"t": "snapshot", "k": "snapshot"}, [state.reason for state in app.states.values()]
    found = by_duckdb(road.lake.uri(tables.silver_path(database, "t"))).to_pylist()
    there = {(row[tables.SHARD_TABLE], row["id"]): row["a"] for row in found}
    assert there["t_1", 4] == "meanwhile"
    assert {shard for shard, _ in there} == {"t_1", "t_2", "t_3"}
    app = reading.run()
    assert now(app) == {"t": "active", "k": "active"}
    assert asked(road) == ["k_1", "k_2", "k_3", "t_1", "t_2", "t_4", "t_5", "t_6"], "each was read once"
    whole = {"t_1": 40, "t_2": 40, "t_3": 1, "t_4": 40, "t_5": 40, "t_6": 40, "k_1": 42, "k_2": 40, "k_3": 40}
    assert road.assert_equal() == whole
    for name in "tk":
        assert_rebuilt(road, spark, f"{database}.{name}")

    _changed_unheard(reading, database, whole)


def _changed_unheard(reading: Reading, database: str, whole: dict[str, int]) -> None:
    road, spark, mariadb = reading.road, reading.spark, reading.road.server
    # What changed without row events is read again, alone; a TRUNCATE mends another one before anybody has read it.
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        for name in ("t_1", "t_2"):
            cursor.execute(f"INSERT INTO {name} VALUES {rows(41, 50)}")
        connection.commit()
    mariadb.query(f"INSERT INTO {database}.t_3 VALUES (8, 'logged')")
    app = stepped(road, spark)
    assert now(app)["t"] == "snapshot"
    mariadb.query(f"TRUNCATE TABLE {database}.t_2")
    mariadb.query(f"INSERT INTO {database}.t_2 VALUES (1, 'again')")
    app = reading.run()
    assert states(app)["t"] == "active"
    assert road.assert_equal() == whole | {"t_1": 50, "t_2": 1, "t_3": 2}

    # In place: nothing of the others is read, and what silver alone has goes.
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("DELETE FROM t_4 WHERE id = 1")
        connection.commit()
    work = SnapshotWork(road.pipeline, road.lake, lambda _: road.info, reading.lines.append)
    assert {table for _, _, table in work.request([f"{database}.t"])} == {f"t_{number}" for number in range(1, 7)}
    app = reading.run()
    assert states(app)["t"] == "active"
    assert road.assert_equal()["t_4"] == 39


@pytest.mark.timeout(1800)
def test_shards_of_two_servers_with_rows_from_before_are_read_at_the_same_time(
    mariadb: Server, mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    road = Shards({"one": mariadb, "two": mysql9}, tmp_path, 2)
    for server in (mariadb, mysql9):
        server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
    try:
        road.create()
        road.fill(1000, 50)
        for shard in road.shards:  # one key in each
            road.on(shard, "INSERT INTO {t} (id, note) VALUES (7, 'before')")
        road.capture_all()
        app = road.apply(spark)
        assert app.states[road.logical].state == "snapshot"
        reader = Reader(SnapshotWork(road.pipeline, road.lake, road.info_at, road.lines.append))
        for step in range(30):
            for at, shard in enumerate(road.shards):
                road.on(
                    shard,
                    f"UPDATE {{t}} SET note = 'step {step}' WHERE id % 3 = {step % 3}",
                    f"DELETE FROM {{t}} WHERE id = {1000 + at * 50 + step}",
                )
            road.capture_all()
            app = road.apply(spark)
            if reader.is_over():
                break
        road.capture_all()
        app = road.apply(spark)
        assert states(app)[road.logical.split(".")[1]] == "active", told(road.lake, "road")
        assert road.in_silver() == road.at_sources()
    finally:
        road.drop()
