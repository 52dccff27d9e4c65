"""Delta's RESTORE of a table with history or soft delete: its past is made anew, or a person gives it up.

In:  a real server; silver taken back to an older version by Spark, or gone.
Out: no snapshot begins by itself: it would read the rows alone. rebuild and swap bring back every version and every
     deleted row; a TRUNCATE at the source ends no wait.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild, swap
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_renames import held, released, run
from tests.kit.road import Road
from tests.kit.snapshots import Reader, Reading, patiently
from tests.support.readers import READERS
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.lake.standing.held import last_states
from tidegate.local.server import Server
from tidegate.snapshot.progress.automatic import waiting
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.requests import told
from tidegate.snapshot.work import SnapshotWork
from tidegate.standing.shown import line_of
from tidegate.standing.snapshots import PAST_LOST

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

NAMES = ("h", "s", "g")


def rows(road: Road, database: str, table: str) -> list[str]:
    uri = road.lake.uri(tables.silver_path(database, table))
    return sorted(map(str, READERS["DuckDB"](uri).to_pylist()))


def test_a_past_comes_back_by_a_rebuild_alone(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON tidegate.* TO '{mariadb.user}'@'%'")
    keys = f", history: ['{database}.h', '{database}.g'], soft_delete: ['{database}.s']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=keys)
    road.capture()

    def step(statement: str) -> dict[str, str]:
        run(mariadb, database, "\n".join(statement.format(name) for name in NAMES))
        road.capture()
        return held(road.apply(spark))

    step("CREATE TABLE {0} (id INT PRIMARY KEY, v INT)\nINSERT INTO {0} VALUES (1, 1), (2, 2)")
    for turn in (3, 4):
        step(f"UPDATE {{0}} SET v = v + 10 WHERE id = 1\nINSERT INTO {{0}} VALUES ({turn}, 3)")
        step(f"DELETE FROM {{0}} WHERE id = {turn}")
    known = {name: rows(road, database, name) for name in NAMES}
    for name in NAMES:
        uri = road.lake.spark_uri(tables.silver_path(database, name))
        spark.sql(f"RESTORE TABLE delta.`{uri}` TO VERSION AS OF 1")
        assert rows(road, database, name) != known[name]

    reasons = step("UPDATE {0} SET v = 9 WHERE id = 2")
    assert reasons.keys() == {f"{database}.{name}" for name in NAMES}
    states = last_states(road.lake)
    for name in NAMES:
        assert "rebuild" in line_of(states[f"{database}.{name}"])
        assert not states[f"{database}.{name}"].releasable
    assert waiting(road.pipeline, road.lake) == {}, "a snapshot has no past"

    background = BackgroundSession(lambda: spark)
    for name in ("h", "s"):
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{name}", "", "")
        assert rebuild(plan, background, compare=False, report=road.lines.append) == 0
        swap(plan, background, report=road.lines.append)
    assert set(step("TRUNCATE TABLE {0}")) == {f"{database}.g"}, "its past isn't there yet"
    for name, live in (("h", "'_tg_is_current': True"), ("s", "'_tg_deleted': False")):
        ended = [row for row in known[name] if live not in row]
        assert len(ended) >= 2
        assert set(ended) < set(rows(road, database, name))

    Reading(road, spark).run(f"{database}.g")
    assert not step("INSERT INTO {0} VALUES (7, 7)"), "a person gave it up"
    assert road.assert_equal() == dict.fromkeys(NAMES, 1)


def test_the_past_of_a_table_whose_silver_is_gone_comes_back_by_a_rebuild(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """A snapshot read its rows once, so that no log alone makes it anew."""
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON tidegate.* TO '{mariadb.user}'@'%'")
    script = "CREATE TABLE {0} (id INT PRIMARY KEY, v INT)\nINSERT INTO {0} VALUES (1, 1), (2, 2)"
    run(mariadb, database, "\n".join(script.format(name) for name in NAMES))
    keys = f", history: ['{database}.h', '{database}.g'], soft_delete: ['{database}.s']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=keys)
    road.capture()
    road.apply(spark)
    Reading(road, spark).run()

    def step(statements: str) -> dict[str, str]:
        run(mariadb, database, "\n".join(statements.format(name) for name in NAMES))
        road.capture()
        return held(road.apply(spark))

    assert not step("UPDATE {0} SET v = 11 WHERE id = 1\nDELETE FROM {0} WHERE id = 2")
    known = {name: rows(road, database, name) for name in NAMES}
    for name in NAMES:
        shutil.rmtree(Path(road.lake.root) / tables.silver_path(database, name))

    reasons = step("INSERT INTO {0} VALUES (3, 3)")
    assert reasons.keys() == {f"{database}.{name}" for name in NAMES}
    assert waiting(road.pipeline, road.lake) == {}, "a snapshot has no past"
    background = BackgroundSession(lambda: spark)
    for name in ("h", "s"):
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{name}", "", "")
        assert rebuild(plan, background, compare=False, report=road.lines.append) == 0
        swap(plan, background, report=road.lines.append)
    assert set(step("UPDATE {0} SET v = 4 WHERE id = 3")) == {f"{database}.g"}
    for name, live in (("h", "'_tg_is_current': True"), ("s", "'_tg_deleted': False")):
        ended = [row for row in known[name] if live not in row]
        assert ended
        assert set(ended) < set(rows(road, database, name))
    Reading(road, spark).run(f"{database}.g")
    assert not step("INSERT INTO {0} VALUES (7, 7)"), "a person gave it up"
    assert road.assert_equal() == dict.fromkeys(NAMES, 3)


def test_a_damaged_file_of_a_past_asks_for_no_snapshot(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """A snapshot of such a table can't end: it would have to read that file."""
    database = fresh_database(mariadb)
    keys = f", history: ['{database}.h', '{database}.g'], soft_delete: ['{database}.s']"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=keys, apply=", writer: positional")
    road.capture()

    def step(statements: str) -> dict[str, str]:
        run(mariadb, database, "\n".join(statements.format(name) for name in NAMES))
        road.capture()
        return held(road.apply(spark))

    script = "CREATE TABLE {0} (id INT PRIMARY KEY, v INT)\nINSERT INTO {0} VALUES (1, 1), (2, 2)"
    assert not step(f"{script}\nDELETE FROM {{0}} WHERE id = 2")
    assert not step("UPDATE {0} SET v = 5 WHERE id = 1\nINSERT INTO {0} VALUES (3, 3)\nDELETE FROM {0} WHERE id = 3")
    known = {name: rows(road, database, name) for name in NAMES}
    whole: dict[Path, bytes] = {}
    for name in NAMES:
        for file in (Path(road.lake.root) / tables.silver_path(database, name)).glob("*.parquet"):
            whole[file] = file.read_bytes()
            file.write_bytes(b"damaged")

    assert step("UPDATE {0} SET v = 6 WHERE id = 1").keys() == {f"{database}.{name}" for name in NAMES}
    states = last_states(road.lake)
    for name in NAMES:
        line = line_of(states[f"{database}.{name}"])
        assert "rebuild" in line
        assert "put that file back" in line
        assert states[f"{database}.{name}"].releasable
    assert waiting(road.pipeline, road.lake) == {}
    background = BackgroundSession(lambda: spark)
    for name in ("h", "s"):
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{name}", "", "")
        assert rebuild(plan, background, compare=False, report=road.lines.append) == 0
        swap(plan, background, report=road.lines.append)
    for file, data in whole.items():
        if file.parent.name == "g":
            file.write_bytes(data)
    released(road, f"{database}.g")
    assert not step("INSERT INTO {0} VALUES (7, 7)")
    assert road.assert_equal() == dict.fromkeys(NAMES, 2)
    for name, live in (("h", "'_tg_is_current': True"), ("g", "'_tg_is_current': True"), ("s", "'_tg_deleted': False")):
        ended = [row for row in known[name] if live not in row]
        assert ended
        assert set(ended) < set(rows(road, database, name))


def test_a_snapshot_that_was_asked_for_before_takes_no_past(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """A person asked for it as nothing was lost yet: that word isn't about the past."""
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON tidegate.* TO '{mariadb.user}'@'%'")
    name = f"{database}.h"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", history: ['{name}']")
    road.capture()

    def step(statements: str) -> dict[str, str]:
        run(mariadb, database, statements)
        road.capture(heartbeat=True)
        return held(road.apply(spark))

    assert not step("CREATE TABLE h (id INT PRIMARY KEY, v INT)\nINSERT INTO h VALUES (1, 1), (2, 2)")
    assert not step("UPDATE h SET v = 3 WHERE id = 1\nDELETE FROM h WHERE id = 2")
    known = rows(road, database, "h")
    work = SnapshotWork(road.pipeline, road.lake, lambda _: road.info, road.lines.append)
    reader = Reader(work, name)
    for _ in patiently():
        if any(table.waiting for table in told(road.lake, "road")):
            break
        time.sleep(0.1)
    road.capture(heartbeat=True)
    uri = road.lake.spark_uri(tables.silver_path(database, "h"))
    spark.sql(f"RESTORE TABLE delta.`{uri}` TO VERSION AS OF 1")
    for _ in patiently():
        assert step("REPLACE INTO h VALUES (7, 5)").keys() == {name}
        if reader.is_over(0.3):
            break
    (past,) = told(road.lake, "road")
    assert (past.state, past.reason) == (SnapshotState.FAILED, PAST_LOST)
    assert waiting(road.pipeline, road.lake) == {}

    background = BackgroundSession(lambda: spark)
    plan = Rebuild.plan(road.pipeline, road.lake, name, "", "")
    assert rebuild(plan, background, compare=False, report=road.lines.append) == 0
    swap(plan, background, report=road.lines.append)
    assert not step("DELETE FROM h WHERE id = 7")
    ended = [row for row in known if "'_tg_is_current': True" not in row]
    assert len(ended) == 2
    assert set(ended) < set(rows(road, database, "h"))
    assert road.assert_equal() == {"h": 1}


def test_a_past_that_was_lost_waits_also_where_its_table_is_left_out_and_named_again(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """No snapshot begins by itself then, either: bronze has the past, and nobody gave it up."""
    database = fresh_database(mariadb)
    name = f"{database}.h"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", history: ['{name}'], exclude: []")
    road.capture()

    def step(statements: str, text: str) -> dict[str, str]:
        road.file.write_text(text)
        road.pipeline = config.load(road.file)
        run(mariadb, database, statements)
        road.capture()
        return held(road.apply(spark))

    assert not step("CREATE TABLE h (id INT PRIMARY KEY, v INT)\nINSERT INTO h VALUES (1, 1), (2, 2)", road.text)
    assert not step("UPDATE h SET v = 3 WHERE id = 1\nDELETE FROM h WHERE id = 2", road.text)
    known = rows(road, database, "h")
    uri = road.lake.spark_uri(tables.silver_path(database, "h"))
    spark.sql(f"RESTORE TABLE delta.`{uri}` TO VERSION AS OF 1")
    assert step("CREATE TABLE o (id INT PRIMARY KEY)", road.text).keys() == {name}
    assert not step("INSERT INTO o VALUES (1)", road.text.replace("exclude: []", f"exclude: ['{name}']"))
    reasons = step("INSERT INTO h VALUES (9, 9)", road.text)
    assert "its past was lost" in reasons[name]
    assert "rebuild" in line_of(last_states(road.lake)[name])
    assert waiting(road.pipeline, road.lake) == {}, "a snapshot has no past"

    background = BackgroundSession(lambda: spark)
    plan = Rebuild.plan(road.pipeline, road.lake, name, "", "")
    assert rebuild(plan, background, compare=False, report=road.lines.append) == 0
    swap(plan, background, report=road.lines.append)
    assert not step("DELETE FROM h WHERE id = 9", road.text)
    assert set(known) < set(rows(road, database, "h"))
    assert road.assert_equal() == {"h": 1, "o": 1}
