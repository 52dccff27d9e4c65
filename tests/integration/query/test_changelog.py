"""Every change of a table that keeps a changelog is in it exactly once, in commit order, whatever is killed when."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.kit import changelogs
from tests.kit.changelogs import changes_of
from tests.kit.road import Road
from tests.support.driver import killed
from tests.support.readers import READERS
from tests.support.servers import FreshDatabase
from tests.support.sessions import wait_for_end
from tidegate.changelog.changelog_table import PLACE, ROW_OPS, changelog
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


MADE = (
    "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), b VARBINARY(4))",
    "CREATE TABLE other (id INT PRIMARY KEY)",
    "INSERT INTO other VALUES (1)",
    "INSERT INTO t VALUES (1, 'a', X'FF'), (2, NULL, NULL), (3, 'ü', '')",
    "UPDATE t SET v = 'b' WHERE id = 1",
    "UPDATE t SET v = 'c' WHERE id = 1",
    "DELETE FROM t WHERE id = 2",
)
PREPARED = (
    "ALTER TABLE t ADD COLUMN n INT DEFAULT 7",
    "XA START 'mine'",
    "INSERT INTO t VALUES (6, 'x', NULL, 6)",
    "XA END 'mine'",
    "XA PREPARE 'mine'",
)
# By another session: MySQL's own can't go on before its branch is answered.
LATER = (
    "INSERT INTO t VALUES (4, 'd', NULL, 8)",
    "BEGIN",
    "UPDATE t SET id = 40 WHERE id = 4",
    "UPDATE t SET v = 'e' WHERE id = 40",
    "ROLLBACK",
    "UPDATE t SET id = 5 WHERE id = 4",
    "XA COMMIT 'mine'",
)


def logging(server: Server, database: str, folder: Path, *tables: str) -> Road:
    patterns = ", ".join(f"'{database}.{table}'" for table in tables)
    road = Road(server, folder, include=f"{database}.*", extra=f", changelog: [{patterns}]")
    road.capture()
    return road


def run(road: Road, database: str, *statements: str) -> None:
    with road.server.connect(database) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    wait_for_end(road.server, connection.thread_id())


def rows_of(road: Road, database: str, table: str) -> list[dict[str, Any]]:
    """In order, by a reader that isn't ours."""
    path = road.lake.uri(changelog(database, table).path)
    found: pa.Table = READERS["DuckDB"](path).sort_by([(name, "ascending") for name in PLACE])
    rows = found.to_pylist()
    places = [tuple(row[name] for name in PLACE) for row in rows]
    assert len(set(places)) == len(places), "a change is in it twice"
    for row in rows:
        row |= {side: row[side] and json.loads(row[side]) for side in ("before", "after")}
    return rows


def played(rows: list[dict[str, Any]], key: str = "id") -> dict[Any, Mapping[str, Any]]:
    """What a table is after all changes; each must fit what was there before it."""
    there: dict[Any, Mapping[str, Any]] = {}
    for row in rows:
        if row["op"] in ("truncate", "drop"):
            there.clear()
        if row["before"] is not None and row["op"] in ROW_OPS:
            there.pop(row["before"][key])
        if row["after"] is not None:
            assert row["after"][key] not in there, "a row comes twice"
            there[row["after"][key]] = row["after"]
    return there


@pytest.mark.timeout(900)
def test_every_change_is_there_once_in_commit_order_through_ddl_and_kills(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = logging(any_server, database, tmp_path, "t.*")
    run(road, database, *MADE)
    road.capture()
    for point in ("delta_before_commit:1", "apply_after_changelog", "apply_after_merge", "apply_before_publish"):
        killed(spark, road.file, point)
    road.apply(spark)
    rows = rows_of(road, database, "t")
    assert [row["op"] for row in rows] == ["begin", "create", *["insert"] * 3, "update", "update", "delete"]
    assert rows[2]["after"] == {"id": 1, "v": "a", "b": "/w=="}
    assert (rows[5]["before"]["v"], rows[5]["after"]["v"], rows[6]["before"]["v"]) == ("a", "b", "b")
    assert rows[7]["before"] == {"id": 2, "v": None, "b": None}
    assert rows[2]["gtid"] == rows[4]["gtid"] != rows[5]["gtid"]
    assert all(row["gtid"] and row["file"] and row["pos"] for row in rows[2:])
    assert not (tmp_path / "lake" / changelog(database, "other").path).exists()

    run(road, database, *PREPARED)
    run(road, database, *LATER)
    road.capture()
    killed(spark, road.file, "delta_after_commit:1")
    road.apply(spark)
    before = len(rows)
    rows = rows_of(road, database, "t")
    assert [row["op"] for row in rows[before:]] == ["alter", "insert", "update", "insert"]
    assert rows[-1]["after"]["id"] == 6, "a prepared row stands where its answer does"
    assert "ADD COLUMN n" in rows[before]["note"]
    assert played(rows)[5] == {"id": 5, "v": "d", "b": None, "n": 8}
    run(road, database, "TRUNCATE TABLE t", "INSERT INTO t VALUES (9, 'z', NULL, 1)", "DROP TABLE t")
    run(road, database, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    road.capture()
    road.apply(spark)
    rows = rows_of(road, database, "t")
    assert [row["op"] for row in rows[-5:]] == ["truncate", "insert", "drop", "create", "insert"]
    assert played(rows) == {1: {"id": 1}}
    point = "INSERT INTO t VALUES (2, ST_GeomFromText('POINT(1 2)', 4326), b'1')"
    run(road, database, "DELETE FROM t", "ALTER TABLE t ADD COLUMN g GEOMETRY, ADD COLUMN f BIT(1)", point)
    road.capture()
    road.apply(spark)
    road.assert_equal()
    changes = changes_of(road.lake, database, "t")
    assert base64.b64decode(changes[-1]["after"]["g"])[1:9].hex() == "01000020e6100000", "the SRID is in it"
    assert changelogs.played(changes) == changelogs.silver_rows(road.lake, database, "t")


@pytest.mark.timeout(600)
def test_a_window_with_nothing_after_the_changelog_of_a_killed_one_leaves_no_gap(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The killed window has appended its changes. The next one ends later, and has no more of this table."""
    database = fresh_database(mariadb)
    road = logging(mariadb, database, tmp_path, "t")
    run(road, database, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE other (id INT PRIMARY KEY)")
    run(road, database, "INSERT INTO t VALUES (1)")
    road.capture()
    road.apply(spark)
    run(road, database, "INSERT INTO t VALUES (2)")
    road.capture()
    killed(spark, road.file, "apply_after_changelog")
    run(road, database, "INSERT INTO other VALUES (1)")
    road.capture()
    killed(spark, road.file, "apply_after_changelog")
    road.apply(spark)
    run(road, database, "INSERT INTO t VALUES (3)")
    road.capture()
    road.apply(spark)
    rows = rows_of(road, database, "t")
    assert [row["op"] for row in rows] == ["begin", "create", "insert", "insert", "insert"], rows[-1]["note"]
    road.assert_equal()


@pytest.mark.timeout(900)
def test_what_a_changelog_lacks_is_a_row_of_its_own(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = logging(mariadb, database, tmp_path, "t")
    run(road, database, "CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT)", "INSERT INTO t VALUES (1, 1, 1)")
    road.capture()
    road.apply(spark)
    with_log, pipeline = road.pipeline, road.pipeline
    without = pipeline.tables.model_copy(update={"changelog": ()})
    road.pipeline = pipeline.model_copy(update={"tables": without})
    run(road, database, "UPDATE t SET v = 2")
    road.capture()
    road.apply(spark)
    road.pipeline = with_log
    with road.server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_image = MINIMAL")
        cursor.execute("UPDATE t SET v = 3, w = 3")
        cursor.execute("DELETE FROM t")
    road.capture()
    road.apply(spark)
    rows = rows_of(road, database, "t")
    assert [row["op"] for row in rows] == ["begin", "create", "insert", "gap", "update", "delete"]
    assert "the table had no changelog then" in rows[3]["note"]
    # MINIMAL: what isn't in the log isn't NULL, it isn't there.
    assert (rows[4]["before"], rows[4]["after"], rows[5]["before"]) == ({"id": 1}, {"v": 3, "w": 3}, {"id": 1})
    with road.server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_image = MINIMAL")
        cursor.execute("INSERT INTO t VALUES (7, 1, 1)")
        cursor.execute("UPDATE t SET v = 9")  # w isn't told: silver can't have it
    road.capture()
    assert road.apply(spark).positions.is_held(f"{database}.t")
    run(road, database, "INSERT INTO t VALUES (8, 1, 1)", "TRUNCATE TABLE t", "INSERT INTO t VALUES (9, 1, 1)")
    road.capture()
    road.apply(spark)
    rows = rows_of(road, database, "t")
    assert [row["op"] for row in rows[6:]] == ["gap", "truncate", "insert"]
    assert "the table was held" in rows[6]["note"]
    DeltaTable(road.lake.uri(changelog(database, "t").path)).restore(1)
    for number in (10, 11):
        run(road, database, f"INSERT INTO t VALUES ({number}, 1, 1)")
        road.capture()
        road.apply(spark)
    rows = rows_of(road, database, "t")[-3:]
    assert [row["op"] for row in rows] == ["gap", "insert", "insert"]
    assert "somebody took this changelog back" in rows[0]["note"]
    road.assert_equal()
