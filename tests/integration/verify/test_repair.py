"""`verify --repair` of several tables: one whose rows apply doesn't take keeps no other from its repair."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate import config, tables
from tidegate.lake import control
from tidegate.local.server import Server
from tidegate.repair import verify_and_repair
from tidegate.tables import WATERMARK_DATABASE
from tidegate.verify.report import Outcome, Report
from tidegate.verify.under_way import VerifyOptions

pytestmark = pytest.mark.server

NAMES = ("a", "b", "c")


def test_a_table_that_apply_does_not_take_is_named_and_the_others_are_mended(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    made = (f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)" for name in NAMES)
    rows = (f"INSERT INTO {name} VALUES (1, 1), (2, 2), (3, 3)" for name in NAMES)
    road = Road.begun(mariadb, tmp_path, database, *made, *rows)
    road.capture()
    road.apply()
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        for name in NAMES:
            cursor.execute(f"UPDATE {name} SET v = 9 WHERE id = 2")
        connection.commit()
    said: list[str] = []
    reports: list[Report] = []

    def mend() -> None:
        options, connections = VerifyOptions(timeout_seconds=60), {"one": road.info}
        reports.append(verify_and_repair(verified, road.lake, connections, options, repair=True, report=said.append))

    verified = road.pipeline
    without_b = config.parse(road.text.replace("include:", f"exclude: ['{database}.b'], include:"), where="test")
    thread = threading.Thread(target=mend)
    thread.start()
    while thread.is_alive():
        road.capture(seconds=2)
        if control.read(road.lake, tables.CHUNKS, columns=["table"]).num_rows:  # verified, and read again
            road.pipeline = without_b
        road.apply()
    (report,) = reports
    outcomes = {result.table.partition(".")[2]: result.outcome for result in report.tables}
    assert outcomes == {"a": Outcome.EQUAL, "b": Outcome.DIFFERENT, "c": Outcome.EQUAL}, said
    assert not report.passed
    (unmended,) = (result for result in report.tables if result.outcome is Outcome.DIFFERENT)
    assert "doesn't keep the table" in unmended.reason
    assert unmended.reason in said


def test_rows_of_a_table_with_a_left_out_and_a_masked_column_are_mended(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """Also where the first has a value that can't be read, and the second's mask is no number."""
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    rules = (
        f", columns: [{{match: '{database}.t', exclude: [s]}}]"
        f", masks: [{{match: '{database}.t', columns: [m], how: constant, value: x}}]"
        f", renames: [{{match: '{database}.t', columns: {{id: v, v: id, m: hidden}}}}]"
    )
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=rules)
    road.capture()
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9) CHARACTER SET ucs2 NOT NULL, v INT, m INT)")
        cursor.execute("INSERT INTO t VALUES (1, 'a', 1, 1), (2, CHAR(0xD801 USING ucs2), 2, 2), (3, 'c', 3, 3)")
        connection.commit()
        road.capture()
        road.apply()
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute("UPDATE t SET v = 9 WHERE id = 2")
        cursor.execute("DELETE FROM t WHERE id = 3")
        connection.commit()
    reports: list[Report] = []

    def mend() -> None:
        options, connections = VerifyOptions(timeout_seconds=60), {"one": road.info}
        reports.append(
            verify_and_repair(road.pipeline, road.lake, connections, options, repair=True, report=road.lines.append)
        )

    thread = threading.Thread(target=mend)
    thread.start()
    while thread.is_alive():
        road.capture(seconds=2)
        road.apply()
    (report,) = reports
    assert [result.outcome for result in report.tables] == [Outcome.EQUAL], report.tables
