"""All tables at one cut: money that moves between shards is all there in every cut, for DuckDB, Polars and Spark.

Readers of the newest versions see a window by half: after each commit of apply both are looked at.
"""

from __future__ import annotations

import json
import random
import subprocess
import threading
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.s3 import S3
from tests.support.command import tidegate
from tests.support.servers import FreshDatabase
from tests.support.writing import writing
from tidegate import tables
from tidegate.delta.log import DeltaLog
from tidegate.errors import CutForgotten, QueryRefused
from tidegate.home import EXIT_ERROR, EXIT_TRANSIENT
from tidegate.lake import control
from tidegate.lake.cuts.published import known_cuts
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import to_row
from tidegate.local.server import Server
from tidegate.query.pinned import PinnedCut
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Standing
from tidegate.tables import State

pytestmark = [pytest.mark.server, pytest.mark.spark]

SHARDS = [f"shard_{number}" for number in range(4)]
ACCOUNTS, MONEY = 20, 1000
TOTAL = len(SHARDS) * ACCOUNTS * MONEY
SUM = " UNION ALL ".join(f"SELECT balance FROM {shard}" for shard in SHARDS)


def begun(server: Server, database: str, folder: Path) -> Road:
    accounts = ", ".join(f"({number}, {MONEY})" for number in range(ACCOUNTS))
    statements = [f"CREATE TABLE {shard} (id INT PRIMARY KEY, balance INT NOT NULL)" for shard in SHARDS]
    statements += [f"INSERT INTO {shard} VALUES {accounts}" for shard in SHARDS]
    return Road.begun(server, folder, database, "BEGIN", *statements[:4], "BEGIN", *statements[4:])


def move(cursor: Any, number: int) -> None:
    """A transaction over two shards."""
    given, taken = random.sample(SHARDS, 2)
    amount = random.randrange(1, 50)
    cursor.execute("BEGIN")
    cursor.execute(f"UPDATE {given} SET balance = balance - {amount} WHERE id = {random.randrange(ACCOUNTS)}")
    cursor.execute(f"UPDATE {taken} SET balance = balance + {amount} WHERE id = {random.randrange(ACCOUNTS)}")
    cursor.execute("COMMIT")


def in_cut(road: Road, at: int | None = None) -> int:
    with PinnedCut.at(road.lake, "road", at) as cut:
        return int(cut.sql(f"SELECT sum(balance) FROM ({SUM})").fetchall()[0][0])


def newest(road: Road, database: str) -> int:
    """As one reads without cuts: each table as it is now."""
    with PinnedCut.at(road.lake, "road") as cut:
        paths = [road.lake.uri(tables.silver_path(database, shard)) for shard in SHARDS]
        scans = " UNION ALL ".join(f"SELECT balance FROM delta_scan('{path}')" for path in paths)
        return int(cut.sql(f"SELECT sum(balance) FROM ({scans})").fetchall()[0][0])


@pytest.mark.timeout(900)
def test_the_sum_over_shards_is_the_same_in_every_cut_and_by_every_reader(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    s3: S3,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, database, tmp_path)
    road.capture()
    road.apply(spark)
    seen: list[tuple[int, int]] = []
    commit, one_by_one = DeltaLog.commit, threading.RLock()

    def looking(log: DeltaLog, *given: Any, **named: Any) -> Any:
        with one_by_one:
            made = commit(log, *given, **named)
            if "/silver/" in log.place:
                seen.append((in_cut(road), newest(road, database)))
            return made

    with writing(mariadb, database, move, pause_seconds=0.005):
        for _ in range(2):
            road.capture(seconds=2)
            with monkeypatch.context() as patch:
                patch.setattr(DeltaLog, "commit", looking)
                road.apply(spark)
    assert len(seen) >= 2 * len(SHARDS)
    assert {pinned for pinned, _ in seen} == {TOTAL}
    assert {plain for _, plain in seen} != {TOTAL}, "reading the newest versions was consistent by luck"

    road.capture()
    road.apply(spark)
    road.assert_equal()
    cuts = known_cuts(road.lake)
    assert len(cuts) >= 3
    for cut_ts in cuts[1:]:
        assert in_cut(road, cut_ts) == TOTAL
    with PinnedCut.at(road.lake, "road", cuts[-2]) as cut:
        frames = [cut.polars(f"{database}.{shard}").select("balance").collect() for shard in SHARDS]
        assert sum(frame["balance"].sum() for frame in frames) == TOTAL
        assert set(cut.spark_views(spark)) == {f"{database}.{shard}" for shard in SHARDS}
        union = " UNION ALL ".join(f"SELECT balance FROM `{database}.{shard}`" for shard in SHARDS)
        assert spark.sql(f"SELECT sum(balance) FROM ({union})").first()[0] == TOTAL
        views = cut.views_file().replace("INSTALL delta; LOAD delta;", "")
        with PinnedCut.at(road.lake, "road") as other:
            other.connection().execute(views)
            mine, theirs = (one.sql(f"FROM {database}.shard_0 ORDER BY id").fetchall() for one in (cut, other))
            assert mine == theirs
    check_on_s3(road, s3, cuts[-2])


def check_on_s3(road: Road, s3: S3, at: int) -> None:
    """The same lake in a store: DuckDB reads a cut of it with the lake's keys, which nobody gets to see."""
    stored = LakeFiles(s3.folder(), s3.options)
    for folder in ("silver", "control"):
        pafs.copy_files(road.lake.uri(folder), stored.local(folder), destination_filesystem=stored.filesystem)
    file = road.folder / "stored.yaml"
    file.write_text(road.text.replace(f"{{path: {road.lake.root}}}", f"{{path: '{stored.root}', conn_id: the_lake}}"))

    def asked(sql: str, **extra: str) -> subprocess.CompletedProcess[str]:
        connection = json.dumps({"conn_type": "generic", "extra": s3.options | extra})
        done = tidegate("query", str(file), sql, "--json", "--at", str(at), AIRFLOW_CONN_THE_LAKE=connection)
        assert "known-to-the-test-only" not in done.stdout + done.stderr
        return done

    assert json.loads(asked(f"SELECT sum(balance) AS money FROM ({SUM})").stdout)["money"] == TOTAL
    assert "known-to-the-test-only" not in asked("FROM duckdb_secrets()").stdout
    assert asked("FROM shard_none").returncode == EXIT_ERROR
    assert asked("SELECT 1", AWS_ACCESS_KEY_ID="").returncode == EXIT_ERROR
    with PinnedCut.at(stored, "road", at) as cut:
        script = cut.views_file()
        assert f"ENDPOINT '{s3.endpoint.removeprefix('http://')}'" in script
        assert "known-to-the-test-only" not in script
        secret, views = script.split("SCOPE", 1)[0].split("CREATE SECRET", 1)[1], script.splitlines()
    with PinnedCut.at(stored, "road") as other:
        other.connection().execute("DROP SECRET lake")
        keys = [f"'{s3.options[name]}'" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")]
        for key in keys:
            secret = secret.replace("'...'", key, 1)
        other.connection().execute(f"CREATE SECRET{secret} SCOPE '{stored.root}')")
        other.connection().execute("\n".join(line for line in views if not line.startswith(("INSTALL", "--"))))
        assert other.sql(f"SELECT sum(balance) FROM ({SUM})").fetchall() == [(TOTAL,)]


@pytest.mark.timeout(900)
def test_the_command_answers_from_one_cut_and_says_what_isnt_in_it(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, database, tmp_path)
    odd = "CREATE TABLE `Shard_0` (id INT PRIMARY KEY, `select` BLOB, `when it was` DATETIME(6))"
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(odd)
        cursor.execute("CREATE TABLE `odd.name` (id INT PRIMARY KEY, `select` BLOB, `when it was` DATETIME(6))")
        cursor.execute("INSERT INTO `odd.name` VALUES (1, X'FF00', '2026-11-22 08:00:00.5'), (2, NULL, NULL)")
        connection.commit()
        cursor.execute("DELETE FROM `odd.name` WHERE id = 2")
        connection.commit()
    road.capture()
    first = road.apply(spark).cut_ts
    file = str(road.file)

    done = tidegate("query", file, "SELECT count(*) AS n, sum(balance) AS b FROM shard_1", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"n": ACCOUNTS, "b": ACCOUNTS * MONEY}]
    assert f"cut {first} " in done.stderr
    assert f"{database}.Shard_0: DuckDB can't tell it from {database}.shard_0" in done.stderr
    done = tidegate("query", file, 'FROM "odd.name"', "--json")
    assert json.loads(done.stdout) == {
        "id": 1,
        "select": "/wA=",
        "when~20~it~20~was": "2026-11-22 08:00:00.500000",
        **{name: json.loads(done.stdout)[name] for name in ("_tg_commit_ts",)},
    }
    assert tidegate("query", file, "SELECT 42 AS answer").stdout.count("42") == 1


@pytest.mark.timeout(900)
def test_a_held_table_is_refused_by_name_and_lost_versions_are_told_with_the_oldest_cut_left(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, database, tmp_path)
    road.capture()
    first, file = road.apply(spark).cut_ts, str(road.file)
    held = Standing(State.HELD, "a person said so", Cause.FAULT, first)
    control.append(road.lake, tables.TABLE_STATES, [to_row(held, "road", f"{database}.shard_2", datetime.now(UTC))])
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        for _ in range(3):
            cursor.execute("UPDATE shard_1 SET balance = balance + 1")
            connection.commit()
    road.capture()
    road.apply(spark)
    done = tidegate("query", file, "SELECT * FROM shard_2")
    assert done.returncode == EXIT_ERROR
    last = done.stderr.splitlines()[-1]
    assert f"{database}.shard_2 isn't complete at this cut: held, complete up to" in last
    assert "a person said so" in last
    assert "Catalog Error" not in last
    assert tidegate("query", file, "SELECT count(*) AS n FROM shard_2", "--json", "--at", str(first)).stdout
    with PinnedCut.at(road.lake, "road") as cut, pytest.raises(QueryRefused, match=r"isn't complete .*said so"):
        cut.polars(f"{database}.shard_2")
    assert tidegate("query", file, "SELECT 1", "--at", "2100-01-01").returncode == EXIT_TRANSIENT

    # Versions whose files are gone: the cut says so, whoever asks, and names the oldest that is there.
    last = known_cuts(road.lake)[-1]
    old = PinnedCut.at(road.lake, "road", first)
    for table in old.cut.tables.values():
        needed = {file.local_path for file in road.lake.log(table.path).state().files}
        for name in road.lake.written_ms(table.path).keys() - needed:
            Path(road.lake.uri(table.path), name).unlink()
    with pytest.raises(CutForgotten, match=f"shard_1.* were vacuumed; the oldest cut that can be read is {last} "):
        old.check()
    with PinnedCut.at(road.lake, "road", first) as old:
        for ask in (old.sql, old.polars, partial(old.spark, spark)):
            with pytest.raises(CutForgotten, match="were vacuumed"):
                ask("SELECT * FROM shard_1" if ask == old.sql else f"{database}.shard_1")
    assert in_cut_of(road, last) == ACCOUNTS * (MONEY + 3)


def in_cut_of(road: Road, at: int) -> int:
    with PinnedCut.at(road.lake, "road", at) as cut:
        return int(cut.sql("SELECT sum(balance) FROM shard_1").fetchall()[0][0])
