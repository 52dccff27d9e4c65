"""A silver table rebuilt from bronze alone is what silver was at that cut: Delta's own time travel is the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.kit.road import Road
from tests.support.bronze import pack
from tests.support.servers import ROOT, FreshDatabase
from tidegate import limits, tables
from tidegate.commit_ts import physical_ms
from tidegate.errors import LakeRefused, UsageError
from tidegate.lake import control
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


def rebuilt(road: Road, spark: SparkSession, table: str, at: str = "", to: str = "") -> tuple[int, str, str]:
    """Rebuild and compare; exit code, the last line, the new table's path."""
    lines: list[str] = []
    plan = Rebuild.plan(road.pipeline, road.lake, table, at, to)
    code = rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=lines.append)
    return code, lines[-1], road.lake.uri(plan.to)


def cli(road: Road, *arguments: str) -> tuple[int, list[str], list[str]]:
    """`tidegate rebuild` as a user runs it; exit code, what it says, error lines (spark-submit joins both streams)."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "tidegate"), "rebuild", str(road.file), *arguments],
        env=os.environ | {"TIDEGATE_HOME": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    errors = [line for line in (*lines, *done.stderr.splitlines()) if line.startswith("tidegate:")]
    return done.returncode, [line for line in lines if line not in errors], errors


def cuts(road: Road) -> list[int]:
    rows = control.read(road.lake, tables.CUTS)
    found: list[int] = sorted(rows.filter(pc.equal(rows["table"], ""))["cut_ts"].to_pylist())
    return found


@pytest.mark.timeout(900)
def test_rebuilt_at_the_newest_and_at_older_cuts_through_renames_and_ddl(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()

    def step(*statements: str) -> int:
        for statement in statements:
            mariadb.query(statement.replace("db.", f"{database}."))
        road.capture()
        road.apply(spark)
        return cuts(road)[-1]

    first = step(
        "CREATE TABLE db.was (id INT PRIMARY KEY, a VARCHAR(20))",
        "CREATE TABLE db.bag (a VARCHAR(20))",
        "INSERT INTO db.was SELECT seq, CONCAT('a', seq) FROM db.seq_1_to_50",
        "INSERT INTO db.bag SELECT CONCAT('b', seq % 3) FROM db.seq_1_to_12",
    )
    second = step(
        "UPDATE db.was SET a = 'changed' WHERE id % 5 = 0",
        "ALTER TABLE db.was ADD COLUMN n INT NOT NULL DEFAULT 7",
        "DELETE FROM db.was WHERE id > 40",
        "RENAME TABLE db.was TO db.now",
        "INSERT INTO db.now VALUES (100, 'new', 8)",
        "DELETE FROM db.bag LIMIT 5",
    )
    step("ALTER TABLE db.now DROP COLUMN a", "UPDATE db.now SET id = id + 1000 WHERE id < 10", "DELETE FROM db.bag")
    pack(road.lake)
    road.assert_equal()
    names = {name: f"{database}.{name}" for name in ("was", "now", "bag")}
    code, line, path = rebuilt(road, spark, names["now"])
    assert (code, line) == (0, "equal")
    assert spark.read.format("delta").load(path).count() == 41
    time = datetime.fromtimestamp(physical_ms(second) / 1000 + 0.002, UTC).isoformat()
    assert rebuilt(road, spark, names["now"], time, "now_then")[:2] == (0, "equal")
    assert rebuilt(road, spark, names["was"], str(first))[:2] == (0, "equal")
    assert rebuilt(road, spark, names["bag"], str(second), "bag_then")[:2] == (0, "equal")
    assert not (Path(road.lake.root) / "rebuild").exists()
    with pytest.raises(UsageError, match="is there already"):
        rebuilt(road, spark, names["bag"], str(second), "bag_then")
    strange = Path(road.lake.uri(tables.silver_path(database, "strange"))) / "theirs.parquet"
    strange.parent.mkdir()
    strange.write_bytes(b"PAR1")
    with pytest.raises(UsageError, match="is there already"):
        rebuilt(road, spark, names["bag"], str(second), "strange")
    assert strange.exists()
    with pytest.raises(UsageError, match="wasn't there yet"):
        rebuilt(road, spark, names["now"], str(first))
    _one_difference_is_found(road, spark, names["bag"], second)
    code, line, _ = rebuilt(road, spark, names["bag"], str(second - 1))
    assert (code, line) == (1, f"not compared: no kept cut says how silver was at {second - 1}: give --at a kept cut")
    silver = f"delta.`{road.lake.spark_uri(tables.silver_path(database, 'now'))}`"
    spark.sql(f"UPDATE {silver} SET n = 9 WHERE id = 100")  # behind tidegate's back
    newest = step("INSERT INTO db.now VALUES (101, 1)")
    with pytest.raises(UsageError, match=f"--at {newest + 1} lies after the newest cut, {newest}; run apply first"):
        rebuilt(road, spark, names["now"], str(newest + 1))
    _the_command_line_says_so(road, names["now"])


def _the_command_line_says_so(road: Road, name: str) -> None:
    """That it differs, and that there is no such table: that before a JVM starts."""
    code, lines, errors = cli(road, name, "--compare")
    assert (code, lines[-1], errors) == (1, "not equal: 1 rows only here, 1 rows only in silver", [])
    code, lines, errors = cli(road, f"{name}_not")
    assert (code, lines) == (2, [])
    assert errors == [f"tidegate: road: there is no table '{name}_not'; did you mean {name}?"]


def _one_difference_is_found(road: Road, spark: SparkSession, name: str, at: int) -> None:
    plan = Rebuild.plan(road.pipeline, road.lake, name, str(at), "bag_then")
    background = BackgroundSession(lambda: spark)
    assert plan.differences(background) == (0, 0)
    there = f"delta.`{road.lake.spark_uri(plan.to)}`"
    before = spark.sql(f"SELECT * FROM {there}").count()
    spark.sql(f"DELETE FROM {there} WHERE a = 'b1'")
    gone = before - spark.sql(f"SELECT * FROM {there}").count()
    assert gone > 0
    assert plan.differences(background) == (0, gone)
    with pytest.MonkeyPatch.context() as large:
        large.setattr(limits, "COMPARE_LOCAL_BYTES", 0)
        assert plan.differences(background) == (0, gone), "Spark says the same"


def test_a_table_that_held_rows_before_capture_cannot_be_rebuilt(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.old (id INT PRIMARY KEY)")
    mariadb.query(f"INSERT INTO {database}.old VALUES (1)")
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    mariadb.query(f"INSERT INTO {database}.old VALUES (2)")
    road.capture()
    road.apply(spark)
    newest = str(cuts(road)[-1])
    with pytest.raises(LakeRefused, match=r"can't be rebuilt from bronze at .*held rows before capture started"):
        rebuilt(road, spark, f"{database}.old", newest)
    mariadb.query(f"TRUNCATE TABLE {database}.old")
    mariadb.query(f"INSERT INTO {database}.old VALUES (3)")
    road.capture()
    road.apply(spark)
    assert rebuilt(road, spark, f"{database}.old")[:2] == (0, "equal")
