"""Columns that Delta or Spark would refuse, or take for tidegate's own, by both writers and for every reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.readers import READERS
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

# Name at the source -> in silver.
ODD = {
    "Order ID": "Order~20~ID",
    "price(eur)": "price~28~eur~29~",
    "a,b;{}=": "a~2c~b~3b~~7b~~7d~~3d~",
    "tab\there": "tab~9~here",
    "two\nlines": "two~a~lines",
    "e`f": "e~60~f",
    "~20~": "~7e~20~7e~",
    "x.y": "x.y",
    "_tg_op": "~5f~tg_op",
    "_TG_commit_ts": "~5f~TG_commit_ts",
    "_tg_x": "~5f~tg_x",
    "grün": "grün",
    "Привет": "Привет",
    "名": "名",
}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize("writer", ["auto", "merge"])
def test_odd_columns_are_followed_under_names_that_every_reader_takes(
    writer: str, mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.pipeline = road.pipeline.model_copy(
        update={"apply": road.pipeline.apply.model_copy(update={"writer": writer})}
    )
    road.capture()
    columns = ", ".join(f"{_quoted(name)} INT COMMENT 'it''s'" for name in ODD)
    mariadb.query(f"CREATE TABLE keyed (id INT, {columns}, PRIMARY KEY (id, `Order ID`, `_tg_op`))", database=database)
    mariadb.query(f"CREATE TABLE bag (id INT, {columns})", database=database)
    zeros = ", ".join("0" for _ in ODD)
    for table in ("keyed", "bag"):
        mariadb.query(f"INSERT INTO {table} VALUES (1, {zeros}), (2, {zeros}), (3, {zeros})", database=database)
        mariadb.query(
            f"UPDATE {table} SET `Order ID` = 5, `_tg_op` = 7, `_TG_commit_ts` = 9 WHERE id = 2", database=database
        )
        mariadb.query(f"DELETE FROM {table} WHERE id = 3", database=database)
    road.capture()
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state == "held"]
    assert road.assert_equal() == {"keyed": 2, "bag": 2}
    mariadb.query("ALTER TABLE keyed ADD `new one` INT DEFAULT 3, RENAME COLUMN `x.y` TO `x y`", database=database)
    mariadb.query("ALTER TABLE keyed RENAME COLUMN `e``f` TO `g``h`, DROP COLUMN `two\nlines`", database=database)
    mariadb.query("INSERT INTO keyed (id, `Order ID`, `_tg_op`, `x y`) VALUES (9, 9, 9, 9)", database=database)
    road.capture()
    app = road.apply(spark)
    assert {state.state for state in app.states.values()} <= {"active"}
    assert road.assert_equal() == {"keyed": 3, "bag": 2}
    uri = road.lake.uri(tables.silver_path(database, "bag"))
    for reader in READERS.values():
        found = reader(uri)
        assert sorted(n for n in found.column_names if not n.startswith("_tg_")) == sorted(["id", *ODD.values()])
        rows = sorted(zip(*(found[name].to_pylist() for name in ("id", "Order~20~ID", "~5f~tg_op")), strict=True))
        assert rows == [(1, 0, 0), (2, 5, 7)]
    said = {field.name: field.metadata for field in DeltaTable(uri).schema().fields}
    assert said["Order~20~ID"] == {"tidegate.source": "`Order ID` int(11)", "comment": "it's"}
    assert said["id"] == {"tidegate.source": "int(11)"}


def test_a_table_made_from_a_query_has_the_names_that_the_server_gave_it(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """MariaDB writes CREATE ... SELECT anew in UTF-8, and says that it is in the character set of its client."""
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, `e_é` VARCHAR(20), d ENUM('a', 'é') COMMENT 'ä€')")
        cursor.execute("INSERT INTO t VALUES (1, 'é', 'é'), (2, 'b', 'a')")
        connection.commit()
        cursor.execute("SET SESSION character_set_client = cp1250")
        cursor.execute("CREATE TABLE `u_é` CHARSET=latin1 AS SELECT * FROM t")
        cursor.execute("CREATE TABLE empty (x INT) CHARSET=latin1 AS SELECT * FROM t WHERE FALSE")
        cursor.execute("SET SESSION sql_mode = 'ANSI_QUOTES'")
        cursor.execute('CREATE TABLE "v_é" CHARSET=latin1 AS SELECT * FROM t')
        cursor.execute('CREATE TABLE "w_é" AS SELECT * FROM t')
    road.capture()
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    names = "t", *(f"{name}_é".encode().decode("cp1250") for name in "uvw")
    assert road.assert_equal() == dict.fromkeys(names, 2) | {"empty": 0}
    made = {path.name for path in (tmp_path / "lake" / "silver" / database).iterdir()}
    assert made == {tables.silver_path(database, name).rpartition("/")[2] for name in (*names, "empty")}
