"""Tables that a TiDB had before its first Pump are snapshotted, while it is written to and apply goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.kit.tidb.pumps import Pumps, apply_upto, applying, tidb_with_pumps, under_way
from tests.kit.tidb.server import MISSING, PROGRAM, Tidb
from tests.kit.tidb.types import fill, make_tables
from tests.support.readers import by_polars
from tidegate import config, pipelines, tables
from tidegate.connections import from_environment
from tidegate.lake.files import LakeFiles
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.repair import verify_and_repair
from tidegate.snapshot.progress.events import EventKind
from tidegate.snapshot.progress.requests import events_of, request
from tidegate.snapshot.reader import ReaderSettings, SnapshotReader
from tidegate.snapshot.reading.table_reader import ChunkBounds
from tidegate.snapshot.work import SnapshotWork
from tidegate.tables import State
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.skipif(not PROGRAM.exists(), reason=MISSING),
]

SMALL = ReaderSettings(parallel=2, chunk=ChunkBounds(40, 1 << 20, 1.0), wave_bytes=1)


def stocked(tidb: Tidb) -> None:
    """Tables of every type with rows, and two that are written to later, one of them without a key."""
    with tidb.connect() as connection, connection.cursor() as cursor:
        make_tables(cursor, "Typed")
        fill(cursor)
        cursor.execute("CREATE TABLE busy (id INT PRIMARY KEY, n INT)")
        cursor.execute("CREATE TABLE loose (id INT, n INT)")
        for table in ("busy", "loose"):
            cursor.execute(f"INSERT INTO {table} VALUES {', '.join(f'({n}, 0)' for n in range(400))}")


def writing(tidb: Tidb) -> Callable[[threading.Event], None]:
    """Transactions whose commits are told late, out of order and twice."""

    def work(stop: threading.Event) -> None:
        number = 0
        with tidb.connect() as connection, connection.cursor() as cursor:
            while not stop.wait(0.01):
                number += 1
                if number % 10 == 1:
                    tidb.control("/fault?delay_commit_ms=400&delay_commit_count=3&dup_commit=1&dup_prewrite=1")
                for table in ("busy", "loose"):
                    cursor.execute("BEGIN")
                    cursor.execute(f"UPDATE typed.{table} SET n = n + 1 WHERE id %% 7 = %s", (number % 7,))
                    cursor.execute(f"DELETE FROM typed.{table} WHERE id = %s", (number % 400,))
                    cursor.execute(f"INSERT INTO typed.{table} (id, n) VALUES (%s, 1)", (1000 + number,))
                    cursor.execute("COMMIT")
        tidb.control("/fault?reset=1")
        tidb.settle()

    return work


def info_of(pumps: Pumps, lake: LakeFiles) -> ConnectionInfo:
    pipeline = config.load(pumps.file)
    return pipelines.sql_info(pipeline, "p0", lambda name: from_environment(name, pumps.environment), lake)


def check_equal(pumps: Pumps, app: Application) -> None:
    """Nothing is held, and what verify says is equal."""
    assert {name: state.reason for name, state in app.states.items() if state.state is not State.ACTIVE} == {}
    pipeline, lake = app.pipeline, app.lake
    report = verify_and_repair(
        pipeline, lake, {"p0": info_of(pumps, lake)}, VerifyOptions(), repair=False, report=print
    )
    assert {one.table: one.reason or one.differences for one in report.tables if one.outcome != Outcome.EQUAL} == {}
    assert {"typed.busy", "typed.loose"} <= {one.table for one in report.tables if one.source_rows > 100}


def silver_rows(pumps: Pumps, database: str, name: str) -> pa.Table | None:
    path = pumps.lake / tables.silver_path(database, name)
    if not path.exists():
        return None
    rows = by_polars(str(path))
    return rows.select([column for column in rows.column_names if not column.startswith(tables.SYSTEM_PREFIX)])


def test_every_type_is_the_same_by_select_and_by_the_pump(tmp_path: Path, spark: SparkSession) -> None:
    """The snapshot is asked for by itself, and read while transactions wait for their commits."""
    with tidb_with_pumps(tmp_path, pipeline="early", before=stocked) as (pumps, tidb):
        app = apply_upto(pumps, tidb, spark)
        assert app.states["typed.num"].state is State.HELD
        assert app.states["typed.num"].lacks_rows
        work = SnapshotWork(app.pipeline, app.lake, lambda _: info_of(pumps, app.lake), print)
        with under_way(applying(pumps, tidb, spark), writing(tidb)):
            asked = work.ask()
            assert ("p0", "typed", "num") in asked
            found = work.read()
            assert {one.reason for one in found} == {""}
            with tidb.connect() as connection, connection.cursor() as cursor:
                names = make_tables(cursor, "Logged")
                fill(cursor)
        check_equal(pumps, apply_upto(pumps, tidb, spark))
        other = [
            name
            for name in names
            if (mine := silver_rows(pumps, "typed", name)) is not None
            and sorted(map(str, mine.to_pylist())) != sorted(map(str, silver_rows(pumps, "logged", name).to_pylist()))
        ]
        assert other == []
        assert len(names) > 20


def test_waves_and_ddl_meet_and_nothing_is_lost(tmp_path: Path, spark: SparkSession) -> None:
    """Many small waves, while a column is added, a table emptied and another one gets a snapshot anew."""
    with tidb_with_pumps(tmp_path, pipeline="early", before=stocked) as (pumps, tidb):
        app = apply_upto(pumps, tidb, spark)
        lake, source = app.lake, "p0"
        names = [(source, "typed", name) for name in ("busy", "loose", "parted", "js", "cstr")]
        rest = [one for of in app.names.flows().values() for one in of if one not in names]
        request(lake, "early", names)
        reader = SnapshotReader("early", source, info_of(pumps, lake), lake, SMALL)
        with under_way(applying(pumps, tidb, spark), writing(tidb)):
            looks = iter(range(1_000_000))

            def stop() -> bool:
                look = next(looks)
                if look == 3:
                    with tidb.connect() as connection, connection.cursor() as cursor:
                        cursor.execute("ALTER TABLE typed.busy ADD COLUMN extra VARCHAR(9) DEFAULT 'x'")
                        cursor.execute("ALTER TABLE typed.loose ADD COLUMN extra INT DEFAULT 3")
                        cursor.execute("TRUNCATE TABLE typed.parted")
                        cursor.execute("INSERT INTO typed.parted VALUES (7, 'again')")
                return False

            reader.run(stop)
            request(lake, "early", rest)
            reader.run()
        check_equal(pumps, apply_upto(pumps, tidb, spark))
        told = events_of(lake, "early")
        assert len({one.wave for one in told if one.event is EventKind.WAVE and one.table == "busy"}) > 3
