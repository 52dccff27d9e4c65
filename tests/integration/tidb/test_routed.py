"""Several tables of a real TiDB that are one silver table: rows from before a Pump, writes, DDL, a new shard."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.tidb.test_snapshot import info_of
from tests.kit.tidb.pumps import apply_upto, applying, tidb_with_pumps, under_way
from tests.kit.tidb.server import MISSING, PROGRAM, Tidb
from tests.support.readers import by_polars
from tidegate import tables
from tidegate.repair import verify_and_repair
from tidegate.snapshot.work import SnapshotWork
from tidegate.tables import State
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.skipif(not PROGRAM.exists(), reason=MISSING),
]

ROUTES = (
    r"include: ['shop.*'], routes: [{match: 'shop.orders_\d+', to: shop.orders},"
    r" {match: 'shop.logs_\d+', to: shop.logs}]"
)


def make_shard(tidb: Tidb, number: int, rows: int) -> None:
    with tidb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
        cursor.execute("USE shop")
        cursor.execute(f"CREATE TABLE orders_{number} (area VARCHAR(9), id INT, n INT, PRIMARY KEY (area, id))")
        cursor.execute(f"CREATE TABLE logs_{number} (id INT, line VARCHAR(20))")
        if rows:
            mine = ", ".join(f"('a{n % 3}', {n}, {number})" for n in range(rows))
            cursor.execute(f"INSERT INTO orders_{number} VALUES {mine}")
            mine = ", ".join(f"({n % 9}, 'l')" for n in range(rows))
            cursor.execute(f"INSERT INTO logs_{number} VALUES {mine}")


def writing(tidb: Tidb) -> Callable[[threading.Event], None]:
    def work(stop: threading.Event) -> None:
        number = 0
        with tidb.connect() as connection, connection.cursor() as cursor:
            while not stop.wait(0.01):
                number += 1
                for shard in (1, 2):
                    cursor.execute("BEGIN")
                    cursor.execute(f"UPDATE shop.orders_{shard} SET n = n + 1 WHERE id %% 7 = %s", (number % 7,))
                    cursor.execute(f"DELETE FROM shop.logs_{shard} WHERE id = %s LIMIT 1", (number % 9,))
                    cursor.execute(f"INSERT INTO shop.logs_{shard} (id, line) VALUES (1, 'same')")
                    cursor.execute("COMMIT")
        tidb.settle()

    return work


def test_shards_of_a_tidb_are_one_table(tmp_path: Path, spark: SparkSession) -> None:
    def before(tidb: Tidb) -> None:
        for number in (1, 2):
            make_shard(tidb, number, 150)

    with tidb_with_pumps(tmp_path, pipeline="routed", before=before) as (pumps, tidb):
        pumps.file.write_text(pumps.file.read_text().replace("include: ['*.*']", ROUTES))
        app = apply_upto(pumps, tidb, spark)
        work = SnapshotWork(app.pipeline, app.lake, lambda _: info_of(pumps, app.lake), print)
        with under_way(applying(pumps, tidb, spark), writing(tidb)):
            work.ask()
            found = work.read()
            assert {one.reason for one in found} == {""}
            make_shard(tidb, 3, 60)
            with tidb.connect() as connection, connection.cursor() as cursor:
                for number in (1, 2, 3):
                    cursor.execute(f"ALTER TABLE shop.orders_{number} ADD COLUMN extra INT DEFAULT 5")
        with tidb.connect() as connection, connection.cursor() as cursor:
            cursor.execute("TRUNCATE TABLE shop.logs_3")
            cursor.execute("INSERT INTO shop.logs_3 VALUES (1, 'same')")
            cursor.execute("SELECT area, id, n, extra FROM shop.orders_1 UNION ALL SELECT area, id, n, extra FROM"
                           " shop.orders_2 UNION ALL SELECT area, id, n, extra FROM shop.orders_3")  # fmt: skip
            orders = sorted(cursor.fetchall())
            cursor.execute("SELECT * FROM shop.logs_1 UNION ALL SELECT * FROM shop.logs_2 UNION ALL SELECT * FROM"
                           " shop.logs_3")  # fmt: skip
            logs = sorted(cursor.fetchall())
        app = apply_upto(pumps, tidb, spark)
        assert {name: one.reason for name, one in app.states.items() if one.state is not State.ACTIVE} == {}
        for name, columns, rows in (("orders", ["area", "id", "n", "extra"], orders), ("logs", ["id", "line"], logs)):
            silver = by_polars(str(pumps.lake / tables.silver_path("shop", name)))
            assert sorted(zip(*(silver[one].to_pylist() for one in columns), strict=True)) == rows
        report = verify_and_repair(
            app.pipeline, app.lake, {"p0": info_of(pumps, app.lake)}, VerifyOptions(), repair=False, report=print
        )
        assert {one.outcome for one in report.tables} == {Outcome.EQUAL}
        assert len(report.tables) == 6
