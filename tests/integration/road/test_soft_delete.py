"""Soft delete on a real server: live rows are its SELECT, marked ones what its SELECT showed before they went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.readers import READERS
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

_SHOWN = "SELECT CONCAT_WS('|', id, code, IFNULL(note, '-'), amount) FROM {}"


def silver(road: Road, database: str, table: str) -> dict[bool, set[str]]:
    """Mark -> rows as the server shows them."""
    path = road.lake.uri(tables.silver_path(database, table))
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for row in READERS["DuckDB"](path).to_pylist():
        shown = (row["id"], row["code"], row["note"] if row["note"] is not None else "-", row["amount"])
        found[row[tables.DELETED]].add("|".join(map(str, shown)))
    return found


def test_deleted_rows_stay_as_the_server_last_showed_them(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    names = ("keyed", "bag")

    def shown(table: str, where: str = "TRUE") -> set[str]:
        rows: list[Any] = mariadb.query(f"{_SHOWN.format(f'{database}.{table}')} WHERE {where}")
        return {str(row[0]) for row in rows}

    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", soft_delete: ['{database}.*']")
    road.capture()
    for table, key in (("keyed", ", PRIMARY KEY (id)"), ("bag", "")):
        mariadb.query(f"CREATE TABLE {database}.{table} (id INT, code VARCHAR(8), note TEXT, amount DECIMAL(8,2){key})")
        values = ", ".join(f"({n}, 'c{n % 7}', {'NULL' if n % 3 else repr('n' * n)}, {n}.50)" for n in range(40))
        mariadb.query(f"INSERT INTO {database}.{table} VALUES {values}")
    road.capture()
    road.apply(spark)
    gone: dict[str, set[str]] = {}
    for table in names:
        gone[table] = shown(table, "id < 10")
        mariadb.query(f"DELETE FROM {database}.{table} WHERE id < 10")
        gone[table] |= shown(table, "id = 20")
        mariadb.query(f"UPDATE {database}.{table} SET id = 120 WHERE id = 20")
        back = "(5, 'back', 'again', 1.00)" if table == "keyed" else "(5, 'c5', NULL, 5.50)"
        mariadb.query(f"INSERT INTO {database}.{table} VALUES {back}")
        gone[table] = {row for row in gone[table] if not row.startswith("5|")}
    road.capture()
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state == "held"]
    assert road.assert_equal() == {"keyed": 31, "bag": 31}
    for table in names:
        assert silver(road, database, table) == {True: gone[table], False: shown(table)}

    everything = {table: gone[table] | shown(table) for table in names}
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE TABLE {database}.keyed")
        cursor.execute(f"INSERT INTO {database}.keyed VALUES (1, 'one', NULL, 1.00)")
        cursor.execute("SET SESSION binlog_row_image = MINIMAL")
        cursor.execute(f"DROP TABLE {database}.bag")
    road.capture()
    road.apply(spark)
    assert road.assert_equal() == {"keyed": 1}
    kept = {row for row in everything["keyed"] if not row.startswith("1|")}
    assert silver(road, database, "keyed") == {True: kept, False: shown("keyed")}
    assert silver(road, database, "bag") == {True: everything["bag"], False: set()}

    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_image = MINIMAL")
        cursor.execute(f"DELETE FROM {database}.keyed")
        connection.commit()
    road.capture()
    app = road.apply(spark)
    assert "a deleted row lacks column code" in app.states[f"{database}.keyed"].reason
    assert silver(road, database, "keyed")[True] == kept, "its rows wait in bronze"


def test_a_held_table_whose_columns_changed_meanwhile_is_read_anew_and_keeps_deleted_rows(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", soft_delete: ['{database}.*']")
    road.capture()
    with mariadb.connect(database, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, code INT)")
        cursor.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
        cursor.execute("DELETE FROM t WHERE id = 3")
        road.capture()
        road.apply(spark)
        cursor.execute("SET SESSION binlog_row_image = MINIMAL")
        cursor.execute("DELETE FROM t WHERE id = 2")
        road.capture()
        assert "a deleted row lacks column code" in road.apply(spark).states[f"{database}.t"].reason
        cursor.execute("ALTER TABLE t ADD COLUMN later INT DEFAULT 7, CHANGE id number INT")
        cursor.execute("INSERT INTO t VALUES (4, 4, 4)")
    app = Reading(road, spark).run()
    assert app.states[f"{database}.t"].state == "active", app.states[f"{database}.t"].reason
    assert road.assert_equal() == {"t": 2}
    rows = READERS["DuckDB"](road.lake.uri(tables.silver_path(database, "t"))).to_pylist()
    assert sorted((row["number"], row["code"], row["later"], row[tables.DELETED]) for row in rows) == [
        (1, 1, 7, False), (2, 2, None, True), (3, 3, None, True), (4, 4, 4, False),
    ]  # fmt: skip
