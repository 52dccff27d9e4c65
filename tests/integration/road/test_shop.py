"""A busy shop, end to end without Airflow: real server, real Spark, silver equal to the source."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import typer.testing
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.cli.main import app as command_line
from tidegate.demo.workload import Workload
from tidegate.lake import control
from tidegate.local.server import Server
from tidegate.schema.model.types import ZeroDates

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_busy_shop_with_ddl_is_equal_in_silver(any_server: Server, spark: SparkSession, tmp_path: Path) -> None:
    road = Road(any_server, tmp_path, include="shop.*")
    road.capture()
    shop = Workload(any_server.connect, seconds=6, seed=3)
    shop.create()
    shop.run()
    road.capture()
    app = road.apply(spark)
    counts = road.assert_equal()
    assert len(counts) >= 8
    assert sum(counts.values()) > 100
    assert not [name for name, state in app.states.items() if state.state == "held"]
    assert any("by position" in line for line in road.lines), road.lines
    _the_ledger_accounts_for_every_byte(road)


def _the_ledger_accounts_for_every_byte(road: Road) -> None:
    ledger = control.read(road.lake, tables.LEDGER)
    accounted = pc.add(pc.add(ledger["decoded_bytes"], ledger["ignored_bytes"]), ledger["quarantined_bytes"])
    assert pc.all(pc.equal(accounted, ledger["payload_bytes"])).as_py()
    assert pc.sum(ledger["decoded_bytes"]).as_py() > 0


def test_a_table_with_rows_from_before_is_held_and_named_until_truncated(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.old (id INT PRIMARY KEY, a INT)")
    mariadb.query(f"CREATE TABLE {database}.empty (id INT PRIMARY KEY, a INT)")
    mariadb.query(f"INSERT INTO {database}.old VALUES (1, 1)")
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        "INSERT INTO old VALUES (2, 2)",
        "INSERT INTO empty VALUES (3, 3)",
    )
    road.capture()
    app = road.apply(spark)
    state = app.states[f"{database}.old"]
    assert state.state == "held"
    assert state.lacks_rows
    assert not (tmp_path / "lake" / tables.silver_path(database, "old")).exists()
    assert (tmp_path / "lake" / tables.silver_path(database, "empty")).exists()

    mariadb.query(f"TRUNCATE TABLE {database}.old")
    mariadb.query(f"INSERT INTO {database}.old VALUES (7, 7)")
    road.capture()
    app = road.apply(spark)
    assert app.states[f"{database}.old"].state == "active"
    assert road.assert_equal() == {"old": 1, "empty": 1}


def test_a_segment_that_bronze_no_longer_has_as_captured_holds_its_tables_until_it_is_restored(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    for table in "ab":
        mariadb.query(f"CREATE TABLE {database}.{table} (id INT PRIMARY KEY, v VARCHAR(20))")
        road.capture()
        mariadb.query(f"INSERT INTO {database}.{table} VALUES (1, 'as captured')")
        road.capture()
    file = next(
        file
        for file in (tmp_path / "lake" / tables.SEGMENTS.path).rglob("*.parquet")
        for row in pq.ParquetFile(file).read().to_pylist()
        if row["tables"] == [f"{database}.a"] and b"as captured" in row["payload"]
    )
    content, rows = file.read_bytes(), pq.ParquetFile(file).read()
    changed = [payload.replace(b"as captured", b"as CAPTURED") for payload in rows["payload"].to_pylist()]
    at = rows.schema.names.index("payload")
    pq.write_table(rows.set_column(at, "payload", pa.array(changed, rows.schema.field(at).type)), file)
    app = road.apply(spark)
    assert set(app.states) == {f"{database}.a"}
    assert app.states[f"{database}.a"].state == "held"
    assert "CRC-32C" in app.states[f"{database}.a"].reason
    file.write_bytes(content)
    released(road, f"{database}.a")
    road.apply(spark)
    assert road.assert_equal() == {"a": 1, "b": 1}


def test_a_ddl_that_is_not_understood_holds_its_table_and_a_release_replays_it(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        "CREATE TABLE a (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE b (id INT PRIMARY KEY, v INT)",
        "INSERT INTO a VALUES (1, 1)",
        "ALTER TABLE a MODIFY COLUMN v DOUBLE",
        "INSERT INTO a VALUES (2, 2.5)",
        "INSERT INTO b VALUES (2, 2)",
    )
    road.capture()
    app = road.apply(spark)
    assert app.states[f"{database}.a"].state == "held"
    assert f"{database}.b" not in app.states
    before = app.cut_ts
    mariadb.query(f"INSERT INTO {database}.b VALUES (3, 3)")
    road.capture()
    app = road.apply(spark)
    assert app.cut_ts > before, "a held table does not hold the others"
    assert app.states[f"{database}.a"].state == "held"

    released(road, f"{database}.a")
    app = road.apply(spark)
    assert app.states[f"{database}.a"].state == "held", "its cause is still there"
    mariadb.query(f"DROP TABLE {database}.a")
    mariadb.query(f"CREATE TABLE {database}.a (id INT PRIMARY KEY, v VARCHAR(20))")
    mariadb.query(f"INSERT INTO {database}.a VALUES (9, 'new')")
    released(road, f"{database}.a")
    road.capture()
    app = road.apply(spark)
    assert road.assert_equal() == {"a": 1, "b": 2}


def released(road: Road, table: str) -> None:
    done = typer.testing.CliRunner().invoke(command_line, ["release", str(road.file), table], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def test_compressed_binlogs_reach_silver(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    mariadb = any_server.flavour == "mariadb"
    settings = {"log_bin_compress": 1, "log_bin_compress_min_len": 10} if mariadb else {}
    settings |= {} if mariadb else {"binlog_transaction_compression": 1, "binlog_row_value_options": "'PARTIAL_JSON'"}
    before = {name: any_server.query(f"SELECT @@GLOBAL.{name}")[0][0] for name in settings}
    try:
        for name, value in settings.items():
            any_server.query(f"SET GLOBAL {name} = {value}")
        road = Road(any_server, tmp_path, include=f"{database}.*")
        road.capture()
        any_server.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a VARCHAR(200), j JSON)")
        any_server.query(f"CREATE TABLE {database}.quiet (id INT PRIMARY KEY)")
        rows = ", ".join(f"""({i}, REPEAT('x', 150), '{{"n": {i}, "s": "{"y" * 80}"}}')""" for i in range(500))
        any_server.query(f"INSERT INTO {database}.t VALUES {rows}")
        any_server.query(f"UPDATE {database}.t SET j = JSON_SET(j, '$.n', 1) WHERE id % 2 = 0")
        any_server.query(f"DELETE FROM {database}.t WHERE id % 5 = 0")
        road.capture()
    finally:
        for name, value in before.items():
            any_server.query(
                f"SET GLOBAL {name} = {value!r}" if isinstance(value, str) else f"SET GLOBAL {name} = {value}"
            )
    road.apply(spark)
    assert road.assert_equal() == {"t": 400, "quiet": 0}
    _the_ledger_accounts_for_every_byte(road)


def test_zero_dates_hold_a_table_or_are_null_as_the_pipeline_says(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = Road(any_server, tmp_path, include=f"{database}.*")
    road.capture()
    any_server.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, d DATE, dt DATETIME(3))")
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute(
            "INSERT INTO t VALUES (1, '0000-00-00', '2024-00-00'), (2, '2024-02-29', '2024-02-29 01:02:03.004')"
        )
        connection.commit()
    road.capture()
    lenient = road.pipeline
    strict = lenient.apply.model_copy(update={"zero_dates": ZeroDates.ERROR})
    road.pipeline = lenient.model_copy(update={"apply": strict})
    state = road.apply(spark).states[f"{database}.t"]
    assert state.state == "held"
    assert "column d holds a date that no calendar has" in state.reason
    assert "0000-00-00" not in state.reason, "a column may be masked"
    road.pipeline = lenient
    released(road, f"{database}.t")
    road.apply(spark)
    silver = pl.read_delta(road.lake.uri(tables.silver_path(database, "t"))).sort("id")
    assert silver["d"].to_list() == [None, dt.date(2024, 2, 29)]
    assert silver["dt"].to_list() == [None, dt.datetime(2024, 2, 29, 1, 2, 3, 4000)]  # noqa: DTZ001 - it has no zone
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute("UPDATE t SET id = 3 WHERE id = 1")
        connection.commit()
    road.capture()
    road.apply(spark)
    assert sum(control.read(road.lake, tables.LEDGER)["null_dates"].to_pylist()) == 6  # both of three images
