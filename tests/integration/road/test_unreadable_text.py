"""A value that isn't valid in its column's character set holds its table, until a snapshot finds it repaired.

In:  a real MariaDB, which takes half a pair of UCS-2 by its number.
Out: the table is held by name and waits for rows; once the value is repaired, a snapshot that nobody asked for ends it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.rebuild import Rebuild, rebuild
from spark_jobs.session.background import BackgroundSession
from tests.integration.road.test_renames import held, run
from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.errors import TidegateError
from tidegate.local.server import Server
from tidegate.remedy import Needs
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_repaired_value_is_read_by_a_snapshot(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9) CHARACTER SET ucs2)
        INSERT INTO t VALUES (1, 'good'), (2, CHAR(0xD801 USING ucs2))
    """)  # fmt: skip
    road.capture()
    app = road.apply(spark)
    (reason,) = held(app).values()
    assert "column s: bytes d801 are not valid ucs2" in reason
    assert app.states[f"{database}.t"].needs is Needs.ROWS
    run(mariadb, database, "UPDATE t SET s = 'repaired' WHERE id = 2")
    assert not held(Reading(road, spark).run())
    assert road.assert_equal() == {"t": 2}


def test_a_left_out_column_holds_nothing(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """By a value that can't be decoded: silver doesn't have it, and has the others of its row."""
    database = fresh_database(mariadb)
    extra = f", columns: [{{match: '{database}.*', exclude: [s]}}]"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=extra)
    road.capture()
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9) CHARACTER SET ucs2, n INT)
        INSERT INTO t VALUES (1, 'good', 1), (2, CHAR(0xD801 USING ucs2), 2), (3, CHAR(0xD802 USING ucs2), 3)
        UPDATE t SET n = 5 WHERE id = 2
        DELETE FROM t WHERE id = 3
    """)  # fmt: skip
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"t": 2}


def test_a_snapshot_reads_what_is_beside_a_left_out_column(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Its rows from before capture: of a bad text, and of a date that no calendar has where that is an error. Once
    silver is to have the column, the value is said.
    """
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    run(mariadb, database, """
        CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9) CHARACTER SET ucs2, d DATE, n INT)
        INSERT INTO t VALUES (1, 'good', NULL, 1), (2, CHAR(0xD801 USING ucs2), '2024-02-00', 2)
    """)  # fmt: skip
    extra = f", columns: [{{match: '{database}.*', exclude: [s, d]}}]"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=extra, apply=", zero_dates: error")
    road.capture()
    assert not held(Reading(road, spark).run())
    assert road.assert_equal() == {"t": 2}
    road.file.write_text(road.text.replace("[s, d]", "[d]"))
    road.pipeline = config.load(road.file)
    run(mariadb, database, "INSERT INTO t VALUES (3, 'x', NULL, 3)")
    road.capture()
    assert "silver lacks column s" in held(road.apply(spark))[f"{database}.t"]
    plan = Rebuild.plan(road.pipeline, road.lake, f"{database}.t", "", "")
    with pytest.raises(TidegateError) as caught:
        rebuild(plan, BackgroundSession(lambda: spark), compare=False, report=road.lines.append)
    assert "column s: bytes d801 are not valid ucs2; its snapshot left the value out" in str(caught.value)
