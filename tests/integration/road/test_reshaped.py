"""Columns that come with values and columns that go, at a real server: silver is its SELECT, and Spark isn't needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.readers.lake import check
from tests.support.servers import FreshDatabase
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.tables import silver_path

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.small_files("apart")]

ROWS = 300
# Of every family of types: what NOT NULL without a default gives, and a default.
ADDED = (
    "TINYINT NOT NULL DEFAULT -5",
    "SMALLINT UNSIGNED NOT NULL DEFAULT 65535",
    "MEDIUMINT NOT NULL",
    "INT NOT NULL DEFAULT '42'",
    "BIGINT NOT NULL DEFAULT 4611686018427387904",
    "BIGINT UNSIGNED NOT NULL DEFAULT 18446744073709551615",
    "DECIMAL(12,3) NOT NULL DEFAULT -1.25",
    "DECIMAL(65,30) NOT NULL DEFAULT 1.5",
    "DECIMAL(9,0) NOT NULL",
    "FLOAT NOT NULL DEFAULT 1.5",
    "DOUBLE NOT NULL DEFAULT 0.1",
    "DOUBLE NOT NULL",
    "BIT(1) NOT NULL DEFAULT b'1'",
    "BIT(10) NOT NULL DEFAULT b'1000000001'",
    "TINYINT(1) NOT NULL DEFAULT 1",
    "YEAR NOT NULL DEFAULT 2024",
    "DATE NOT NULL DEFAULT '2024-02-29'",
    "DATETIME(3) NOT NULL DEFAULT '2024-02-03 04:05:06.789'",
    "TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6)",
    "TIME(2) NOT NULL DEFAULT '-12:34:56.25'",
    "TIME NOT NULL",
    "CHAR(5) NOT NULL DEFAULT 'ab'",
    "VARCHAR(60) CHARACTER SET utf8mb4 NOT NULL DEFAULT 'Tee, 烏龍茶 and it''s \\\\ 🫖'",
    "VARCHAR(20) CHARACTER SET latin1 NOT NULL DEFAULT 'früh'",
    "VARCHAR(20) NOT NULL DEFAULT ''",
    "MEDIUMTEXT NOT NULL",
    "ENUM('basic','silver','früh') NOT NULL DEFAULT 'früh'",
    "ENUM('first','other') NOT NULL",
    "SET('books','music','茶') NOT NULL DEFAULT 'books,茶'",
    "BINARY(4) NOT NULL DEFAULT 'ab'",
    "VARBINARY(10) NOT NULL DEFAULT 'ab'",
    "BLOB NOT NULL",
    "INT NULL DEFAULT 7",
    "VARCHAR(20) NULL",
    "JSON NULL",
    "DATE NULL",
)
_ADD = ", ".join(f"ADD COLUMN a{at} {kind}" for at, kind in enumerate(ADDED))
_WIDER = "MODIFY n BIGINT NOT NULL, MODIFY amount DECIMAL(14,3) NULL, CHANGE note remark VARCHAR(400) NULL"


def test_columns_of_every_type_come_with_values_and_go(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    columns = "note VARCHAR(200) NULL, n INT NOT NULL, amount DECIMAL(10,2) NULL, gone DOUBLE NULL, also BLOB NULL"
    tables = {
        "keyed": "id INT PRIMARY KEY",
        "texts": "id VARCHAR(20) PRIMARY KEY",
        "bag": "id INT",
        "rowless": "id INT",
    }

    def done(*statements: str) -> None:
        with any_server.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("SET NAMES utf8mb4")
            for statement in statements:
                cursor.execute(statement)
                connection.commit()
        road.capture()
        app = road.apply()
        assert not [state.reason for state in app.states.values() if state.state == "held"]

    cells = [
        f"({number}, {'NULL' if number % 7 == 0 else f'CONCAT(REPEAT(0x61, {number % 50}), {number})'}, {number * 3},"
        f" {number}.25, {number}.5, X'{number:04x}')"
        for number in range(ROWS)
    ]
    done(*(f"CREATE TABLE {table} ({key}, {columns})" for table, key in tables.items()))
    done(*(f"INSERT INTO {table} VALUES {', '.join(cells)}" for table in ("keyed", "texts", "bag")))
    done(
        *(f"UPDATE {table} SET n = n + 1 WHERE MOD(n, 5) = 0" for table in ("keyed", "texts", "bag")),
        *(f"DELETE FROM {table} WHERE MOD(n, 11) = 0" for table in ("keyed", "texts", "bag")),
    )
    lake = LakeFiles(road.lake.root)
    assert any(file.deletion_vector for file in lake.log(silver_path(database, "keyed")).state().files)
    done(*(f"ALTER TABLE {table} {_ADD}" for table in tables))
    names = ", ".join(["id", "n", *(f"a{at}" for at, kind in enumerate(ADDED) if "NOT NULL" in kind)])
    more = f"INSERT INTO {{0}} ({names}) SELECT {names.replace('id', 'id + 100000', 1)} FROM {{0}} WHERE MOD(n, 19) = 0"
    for table in ("keyed", "texts"):
        # In a window with rows before and after it: a column that goes and two that come, wider ones, another name.
        done(
            f"UPDATE {table} SET note = 'before' WHERE MOD(n, 17) = 0",
            f"ALTER TABLE {table} DROP COLUMN gone, ADD COLUMN b1 VARCHAR(30) NOT NULL DEFAULT 'web' AFTER id,"
            " ADD COLUMN b2 DATE NULL",
            f"UPDATE {table} SET b1 = 'app', b2 = '2026-01-02' WHERE MOD(n, 13) = 0",
            f"ALTER TABLE {table} DROP COLUMN also",
            f"ALTER TABLE {table} {_WIDER}",
            more.format(table),
            f"ALTER TABLE {table} ADD COLUMN gone INT NOT NULL DEFAULT 3",  # not what had this name
        )
    done(f"ALTER TABLE bag {_WIDER}", "DELETE FROM bag WHERE MOD(n, 3) = 0")
    found = road.assert_equal()
    assert set(found) == set(tables)
    assert found["keyed"] == found["texts"] > ROWS // 2
    assert found["bag"] > ROWS // 10
    wrong = [one for one in check(tmp_path / "lake", spark) if one.outcome != "equal"]
    assert not wrong, "Spark, DuckDB, Polars and delta-rs read the same"
