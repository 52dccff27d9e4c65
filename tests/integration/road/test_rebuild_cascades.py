"""A rebuild of a table whose rows foreign keys change below the log: its parents' changes are played, too.

In:  a real MariaDB; a grandparent, a parent and children, with rows from before the log and behind it.
Out: the rebuilt children have silver's rows, at the newest cut and at one before. Without the parents' log they are
     refused, and nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_erase_past import bronze_begins_now
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading, changing
from tests.support.servers import FreshDatabase
from tidegate.config import load
from tidegate.errors import LakeRefused
from tidegate.lake.bronze import retention
from tidegate.lake.bronze.log import BronzeLog
from tidegate.local.server import Server
from tidegate.snapshot.progress import orphans
from tidegate.tables import CHUNKS, WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]

CHANGES_MAX = 300  # however long the reader takes
CHANGES = """
    INSERT INTO a VALUES (10), (11)
    INSERT INTO b VALUES (20, 10), (21, 11), (22, 1)
    INSERT INTO c VALUES (30, 20, 'x'), (31, 21, 'y'), (32, 22, 'z')
    INSERT INTO n VALUES (1, 10), (2, 11), (3, NULL)
    UPDATE a SET id = 12 WHERE id = 11
    DELETE FROM a WHERE id IN (10, 2)
    UPDATE c SET t = 'later' WHERE id = 31
"""


def test_children_of_cascades_are_rebuilt_with_their_parents(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    run(mariadb, database, """
        CREATE TABLE a (id INT PRIMARY KEY)
        CREATE TABLE b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE ON UPDATE CASCADE)
        CREATE TABLE c (id INT PRIMARY KEY, b INT, t TEXT, FOREIGN KEY (b) REFERENCES b (id) ON DELETE CASCADE)
        INSERT INTO a VALUES (1), (2)
        INSERT INTO b VALUES (5, 1), (6, 2)
        INSERT INTO c VALUES (7, 5, 'old'), (8, 6, 'goes')
    """)  # fmt: skip  # noqa: E501
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    key = "FOREIGN KEY (a) REFERENCES a (id) ON DELETE SET NULL ON UPDATE CASCADE"
    run(mariadb, database, f"CREATE TABLE n (id INT PRIMARY KEY, a INT, {key})")
    road.capture()
    road.apply(spark)
    Reading(road, spark).run()
    run(mariadb, database, CHANGES)
    road.capture()
    assert not held(road.apply(spark))
    before = road.apply().cut_ts
    run(mariadb, database, "DELETE FROM a WHERE id = 12")
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"a": 1, "b": 2, "c": 2, "n": 3}
    for table in ("b", "c", "n"):
        for at in ("", str(before)):
            plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{table}", at, f"{table}_at_{at}")
            assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0
            assert road.lines[-1] == "equal", table
    assert sorted(path.name for path in (tmp_path / "lake/silver" / database).iterdir()) == sorted(
        ["a", "b", "c", "n", *(f"{table}_at_{at}" for table in "bcn" for at in ("", before))]
    )
    alone = {"include": (f"{database}.c",)}
    road.pipeline = road.pipeline.model_copy(update={"tables": road.pipeline.tables.model_copy(update=alone)})
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.c", "", "c_alone")
    with pytest.raises(LakeRefused, match=r"the pipeline file leaves its parent .*\.b out"):
        plan.run(BackgroundSession(lambda: spark), road.lines.append)
    assert not (tmp_path / "lake/silver" / database / "c_alone").exists()


def test_a_parent_between_comes_along_with_the_table_that_it_was_before(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Its rows came by a rename, and the foreign key names it since then: without them nothing goes below it."""
    database = fresh_database(mariadb)
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        "CREATE TABLE a (id INT PRIMARY KEY)",
        "CREATE TABLE before_b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE)",
        "INSERT INTO a VALUES (1), (2), (3)",
        "INSERT INTO before_b VALUES (5, 1), (6, 2), (7, 3)",
        "RENAME TABLE before_b TO b",
        "CREATE TABLE c (id INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES b (id) ON DELETE CASCADE)",
        "INSERT INTO c VALUES (10, 5), (11, 6), (12, 7)",
    )
    road.capture()
    assert not held(road.apply(spark))
    run(mariadb, database, "DELETE FROM a WHERE id = 2")
    road.capture()
    assert not held(road.apply(spark))
    for table in "bc":
        plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.{table}", "", "")
        assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0


def test_a_snapshot_is_enough_where_bronze_begins_later(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Of a table whose parent logs its changes. One with such a parent itself needs its own first rows."""
    database = fresh_database(mariadb)
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        "CREATE TABLE a (id INT PRIMARY KEY)",
        "CREATE TABLE b (id INT PRIMARY KEY, a INT, t TEXT, FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE)",
        "CREATE TABLE c (id INT PRIMARY KEY, b INT,"
        " FOREIGN KEY (b) REFERENCES b (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO a VALUES (1), (2), (3)",
        "INSERT INTO b SELECT seq, 1 + seq % 3, '' FROM seq_1_to_900",
        "INSERT INTO c VALUES (10, 5), (11, 6), (12, 7)",
    )
    road.capture()
    assert not held(road.apply(spark))
    bronze_begins_now(road, spark, database, "INSERT INTO a VALUES (10{day})")
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.b", "", "")
    with pytest.raises(LakeRefused, match="bronze has no log of one from before"):
        plan.run(BackgroundSession(lambda: spark), road.lines.append)
    road.file.write_text(road.text + "snapshot: {chunk_rows: 100, parallel: 2}\n")
    road.pipeline = load(road.file)
    with changing(mariadb, database, changes, 0.02):
        Reading(road, spark).run(f"{database}.b", f"{database}.c")
    run(mariadb, database, "DELETE FROM a WHERE id = 2")
    road.capture()
    assert not held(road.apply(spark))
    road.assert_equal()
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.b", "", "")
    assert rebuild(plan, BackgroundSession(lambda: spark), compare=True, report=road.lines.append) == 0
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.c", "", "")
    with pytest.raises(LakeRefused, match=r"bronze has no log of one from before.*repairs the live table"):
        plan.run(BackgroundSession(lambda: spark), road.lines.append)


def test_rows_read_from_one_view_are_there_again(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """A table between is read from one view, behind its low mark, and begins there. Without the
    rows nothing is rebuilt.
    """
    mariadb.query(f"CREATE DATABASE IF NOT EXISTS {WATERMARK_DATABASE}")
    rights = f"CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.*"
    mariadb.query(f"GRANT {rights} TO '{mariadb.user}'@'%'")
    database = fresh_database(mariadb)
    to_b = "FOREIGN KEY (b) REFERENCES b (id) ON DELETE CASCADE"
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        "CREATE TABLE a (id INT PRIMARY KEY)",
        "CREATE TABLE b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE)",
        f"CREATE TABLE c (id INT PRIMARY KEY, b INT, {to_b})",
        "INSERT INTO a VALUES (1), (2), (3)",
        "INSERT INTO b SELECT seq, 1 + seq % 3 FROM seq_1_to_90",
    )
    for number in (10, 11):
        road.capture()
        assert not held(road.apply(spark))
        run(mariadb, database, f"INSERT INTO a VALUES ({number})")
    log = BronzeLog.load(road.lake)
    assert log is not None
    retention.remove(log, log.files()["one"][:-1])
    Reading(road, spark).run(f"{database}.b", f"{database}.c")
    run(mariadb, database, "INSERT INTO b VALUES (100, 1)")
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal()["b"] == 91
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.b", "", "")
    background, lines = BackgroundSession(lambda: spark), road.lines
    assert rebuild(plan, background, compare=True, report=lines.append) == 0, lines[-1]
    orphans.remove(road.lake, road.lake.log(CHUNKS.path).state().files)
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.b", "", "b_again")
    with pytest.raises(LakeRefused, match="it would lack rows of a snapshot"):
        plan.run(background, lines.append)
    assert not (tmp_path / "lake/silver" / database / "b_again").exists()


def changes(number: int) -> Iterator[str]:
    """Beside the reader: rows that it has come to, and others."""
    if number > CHANGES_MAX:
        return
    yield f"UPDATE b SET t = 'now {number}' WHERE id % 50 = {number % 50}"
    yield f"DELETE FROM b WHERE id = {number * 7 % 900}"
    yield f"INSERT INTO b VALUES ({1000 + number}, 2, 'new')"
    yield f"UPDATE b SET id = id + 100000 WHERE id = {number * 11 % 900}"
    yield f"DELETE FROM a WHERE id = {number if number == 3 else 0}"
