"""Silver that isn't what control/ says of it: nothing is completed in silence.

A lake copied without silver, a folder that is lost or put back from an older copy, a rebuilt table in the live one's
place, RESTORE, a table that was excluded and removed, a folder that somebody else filled: behind the next apply each
table has the server's own rows, or is named as one that lacks rows.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer.testing
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.kit.road import Road
from tests.kit.snapshots import Reader
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.cli.main import app as command_line
from tidegate.lake.cuts.published import cut_at
from tidegate.lake.standing.held import last_states, release
from tidegate.local.server import Server
from tidegate.snapshot.work import SnapshotWork
from tidegate.standing.causes import Cause
from tidegate.tables import State

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.small_files("apart")]


class Asked(Road):
    """A road on which silver's folders go their own ways."""

    database: str

    def step(self, spark: SparkSession, *statements: str) -> None:
        for statement in statements:
            self.server.query(statement.replace("db.", f"{self.database}."))
        self.capture()
        self.apply(spark)

    def path(self, table: str) -> Path:
        return Path(self.lake.uri(tables.silver_path(self.database, table)))

    def lacks(self) -> dict[str, str]:
        """Tables that the newest cut names as lacking, with what it says."""
        found = {name.partition(".")[2]: said for name, said in cut_at(self.lake, "road").missing.items()}
        states = last_states(self.lake)
        for name in found:
            standing = states[f"{self.database}.{name}"]
            assert (standing.state, standing.lacks_rows) == (State.HELD, True), standing
            assert standing.cause is Cause.NEEDS_ROWS
        return found

    def selects(self, text: str) -> None:
        self.file.write_text(self.text.replace("']}\n", f"']{text}}}\n", 1))
        self.pipeline = config.load(self.file)


def begun(server: Server, fresh: FreshDatabase, folder: Path) -> Asked:
    database = fresh(server)
    road = Asked(server, folder, include=f"{database}.*")
    road.database = database
    road.capture()
    return road


def checked(road: Asked, code: int) -> dict[str, dict[str, Any]]:
    """`tidegate lake check`: by table's name."""
    done = typer.testing.CliRunner().invoke(command_line, ["lake", "check", str(road.file), "--json"])
    assert done.exit_code == code, (done.output, done.exception)
    return {one["table"].partition(".")[2]: one for one in json.loads(done.stdout)["tables"]}


def keyed(name: str, rows: int) -> tuple[str, str]:
    return (
        f"CREATE TABLE db.{name} (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO db.{name} SELECT seq, seq FROM db.seq_1_to_{rows}",
    )


@pytest.mark.timeout(600)
def test_a_lake_put_back_without_silver_is_whole_again(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    road = begun(mariadb, fresh_database, tmp_path)
    made = ("CREATE TABLE db.bag (v INT)", "INSERT INTO db.bag SELECT seq % 3 FROM db.seq_1_to_10")
    road.step(spark, *keyed("a", 1000), *keyed("quiet", 1000), *made)
    copy, lake = tmp_path / "copy", Path(road.lake.root)
    for name in ("bronze", "control"):
        shutil.copytree(lake / name, copy / name)
    shutil.rmtree(lake)
    shutil.copytree(copy, lake)
    road.step(spark, "UPDATE db.a SET v = -1 WHERE id = 7", "INSERT INTO db.bag VALUES (5)")
    assert not road.lacks()
    assert road.assert_equal() == {"a": 1000, "bag": 11, "quiet": 1000}


@pytest.mark.timeout(600)
def test_folders_that_are_lost_older_rebuilt_or_restored(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    road = begun(mariadb, fresh_database, tmp_path)
    names = ("lost", "older", "rebuilt", "restored", "damaged", "cut_short", "still")
    road.step(spark, *(statement for name in names for statement in keyed(name, 20)))
    shutil.copytree(road.path("older"), tmp_path / "older")
    plan = Rebuild.plan(road.pipeline, road.lake, f"{road.database}.rebuilt", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append) == 0
    for value in (100, 200, 300):  # the live table's log gets longer than the rebuilt one's, or not
        road.step(spark, *(f"UPDATE db.{name} SET v = {value} + id WHERE id < 5" for name in names))
    road.assert_equal()

    shutil.rmtree(road.path("lost"))
    shutil.rmtree(road.path("older"))
    shutil.copytree(tmp_path / "older", road.path("older"))
    shutil.rmtree(road.path("rebuilt"))
    shutil.move(road.lake.uri(plan.to), road.path("rebuilt"))
    spark.sql(f"RESTORE TABLE delta.`{road.path('restored')}` TO VERSION AS OF 1")
    newest = max(road.path("cut_short").glob("_delta_log/*.json"))
    newest.unlink()
    said = checked(road, 1)
    road.step(spark, *(f"UPDATE db.{name} SET v = -1 WHERE id = 15" for name in names if name != "still"))
    assert road.lacks().keys() == {"restored"}
    assert {name: one["unlike"] for name, one in said.items() if one["unlike"]} == {
        "lost": "gone", "older": "older", "cut_short": "older", "rebuilt": "replaced", "restored": "restored",
    }  # fmt: skip
    waits = [name for name, one in said.items() if one["unlike"] and one["goes_on_from"] is None]
    assert waits == ["restored"], "what the command says apply does"
    assert all(one["bronze"] for one in said.values())
    assert [one["unlike"] for one in checked(road, 0).values()] == [None] * len(names)
    counts = road.assert_equal()
    assert counts == dict.fromkeys([name for name in names if name != "restored"], 20)

    # What is emptied at the source begins anew, and so does what is known of its log.
    road.step(spark, "TRUNCATE TABLE db.restored", "INSERT INTO db.restored VALUES (1, 1)")
    road.step(spark, "INSERT INTO db.restored VALUES (2, 2)")
    assert not road.lacks()
    assert road.assert_equal()["restored"] == 2

    _a_damaged_vector(road, spark)


def _a_damaged_vector(road: Asked, spark: SparkSession) -> None:
    """Who restores a table to get rid of a damaged file has restored it: it is seen."""
    vector = max(road.path("damaged").rglob("*.bin"), key=lambda path: path.stat().st_mtime)
    data = bytearray(vector.read_bytes())
    data[-6] ^= 0xFF
    vector.write_bytes(bytes(data))
    road.step(spark, "DELETE FROM db.damaged WHERE id = 3")
    name = f"{road.database}.damaged"
    standing = last_states(road.lake)[name]
    assert standing.lacks_rows
    assert "restore the table" not in standing.reason
    spark.sql(f"RESTORE TABLE delta.`{road.path('damaged')}` TO VERSION AS OF 1")
    if standing.releasable:
        release(road.lake, standing)
    road.step(spark, "INSERT INTO db.damaged VALUES (50, 50)")
    assert road.lacks().keys() == {"damaged"}


@pytest.mark.timeout(600)
def test_excluded_and_removed_and_a_folder_that_is_somebody_elses(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    road = begun(mariadb, fresh_database, tmp_path)
    road.step(spark, *keyed("big", 5), *keyed("other", 5))
    road.selects(f", exclude: ['{road.database}.big']")
    road.step(spark, "UPDATE db.big SET v = 9 WHERE id = 1")
    shutil.rmtree(road.path("big"))
    road.selects("")
    road.step(spark, "INSERT INTO db.big VALUES (6, 6)")
    assert not road.lacks()
    assert road.assert_equal() == {"big": 6, "other": 5}

    shutil.rmtree(road.path("other"))
    write_deltalake(str(road.path("other")), pa.table({"id": [7], "v": [7]}))
    said = checked(road, 1)["other"]
    assert (said["unlike"], said["goes_on_from"]) == ("foreign", None)
    assert "move that table away" in said["what"]
    road.step(spark, "UPDATE db.other SET v = 9 WHERE id = 1")
    standing = last_states(road.lake)[f"{road.database}.other"]
    assert (standing.state, standing.lacks_rows) == (State.HELD, False), "no snapshot takes its rows away"
    shutil.rmtree(road.path("other"))
    release(road.lake, standing)
    road.step(spark)
    assert road.assert_equal() == {"big": 6, "other": 5}

    spark.sql(f"CREATE TABLE delta.`{road.path('theirs')}` USING delta AS SELECT 7 AS id, 7 AS v")
    road.step(spark, *keyed("theirs", 3))
    road.step(spark, "INSERT INTO db.theirs VALUES (4, 4)")
    name = f"{road.database}.theirs"
    insert = "INSERT INTO db.theirs VALUES ({0}, {0})"
    for statement in (insert.format(5), "TRUNCATE db.theirs", insert.format(6)):
        standing = last_states(road.lake)[name]
        assert (standing.state, standing.lacks_rows) == (State.HELD, False), standing
        assert "silver has a table of this name already" in standing.reason
        assert "move that table away" in standing.reason
        assert spark.read.format("delta").load(str(road.path("theirs"))).count() == 1, "it is somebody else's"
        road.step(spark, statement)
    road.path("theirs").rename(tmp_path / "aside")
    done = typer.testing.CliRunner().invoke(command_line, ["release", str(road.file), name])
    assert done.exit_code == 0, done.output
    road.step(spark, "INSERT INTO db.theirs VALUES (7, 7)")
    assert road.assert_equal() == {"big": 6, "other": 5, "theirs": 2}


def test_existing_rows_are_not_read_into_somebody_elses_table(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {tables.WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    mariadb.query("CREATE TABLE old (id INT PRIMARY KEY, v INT)", database=database)
    mariadb.query("INSERT INTO old VALUES (1, 1), (2, 2)", database=database)
    road, name = Road(mariadb, tmp_path, include=f"{database}.*"), f"{database}.old"
    theirs = road.lake.uri(tables.silver_path(database, "old"))
    write_deltalake(theirs, pa.table({"id": [7], "v": [7]}))
    road.capture()
    road.apply(spark)
    reader = Reader(SnapshotWork(road.pipeline, road.lake, lambda _: road.info, road.lines.append))
    for step in range(20):
        reader.is_over(0.3)
        road.capture()
        standing = road.apply(spark).states[name]
        if step < 2:
            assert DeltaTable(theirs).to_pyarrow_table().to_pylist() == [{"id": 7, "v": 7}], standing
        elif standing.cause is Cause.FAULT:
            assert "move that table away" in standing.reason
            shutil.rmtree(theirs)
            release(road.lake, standing)
        elif reader.is_over() and standing.state is State.ACTIVE:
            break
    assert road.assert_equal() == {"old": 2}


def test_a_lost_folder_of_a_released_table_goes_on_from_no_truncate_above_its_mark(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The log since the mark alone would fill it with some rows up to there, and a DDL may hold it before."""
    road = begun(mariadb, fresh_database, tmp_path)
    road.file.write_text(road.text + "ddl: {drop_column: ask}\n")
    road.pipeline = config.load(road.file)
    name = f"{road.database}.t"
    road.step(spark, "CREATE TABLE db.t (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO db.t VALUES (1, 1, 1)")
    road.step(
        spark,
        "ALTER TABLE db.t DROP COLUMN a",
        "INSERT INTO db.t VALUES (2, 2)",
        "ALTER TABLE db.t DROP COLUMN b",
        "TRUNCATE TABLE db.t",
        "INSERT INTO db.t VALUES (3)",
    )
    waits = last_states(road.lake)[name]
    assert waits.cause is Cause.DDL_ASKS
    release(road.lake, waits)
    shutil.rmtree(road.path("t"))
    road.apply(spark)
    standing = last_states(road.lake)[name]
    assert standing.cause is Cause.DDL_ASKS, standing  # of b
    assert not road.path("t").exists()
    assert standing.applied_ts < waits.applied_ts  # where silver had rows
