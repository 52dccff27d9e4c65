"""A DDL whose Commit got lost, and of whose transaction TiDB's MVCC has nothing any more: TiDB's history decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.tidb.test_parked import BEGAN, CAME, SECOND, World
from tests.kit.tidb import encode
from tests.kit.tidb.pump_world import Client, Jobs
from tests.kit.tidb.pumps import NAMES, SAFE_POINT, Pumps, apply_upto, collected_upto, free_port
from tests.kit.tidb.server import MISSING, PROGRAM, Tidb
from tests.support.captures import bronze_segments
from tests.support.readers import by_polars
from tidegate.lake import control
from tidegate.lake.bronze import prewrites
from tidegate.lake.files import LakeFiles
from tidegate.pump.lost_ddl import LostDdl
from tidegate.pump.parked import Parked
from tidegate.tables.prewrites_table import PREWRITES, PrewriteState
from tidegate.tidb.records.enclosed import payloads_of
from tidegate.tidb.records.mvcc import NOTHING
from tidegate.tidb.records.payload import BinlogType, binlog_of

QUERY = b"alter table t add column a int"


def job(finished_ts: int) -> bytes:
    return json.dumps({"id": 7, "binlog": {"FinishedTS": finished_ts}}).encode()


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.jobs = Jobs()
    made.words = Parked(made.lake, "one", made.policy, lambda _: "", LostDdl(made.lake, ("one",), made.jobs))
    return made


def test_what_history_does_not_have_waits_by_name_and_nobody_is_asked(world: World) -> None:
    with world.run(jobs=world.jobs):
        client = Client(f"unix:{world.folder}/p.sock")
        client.write(encode.binlog(BinlogType.PREWRITE, CAME - SECOND, key=b"o"))
        client.write(encode.binlog(BinlogType.COMMIT, CAME - SECOND, CAME))
        client.write(encode.ddl(BinlogType.PREWRITE, BEGAN, 0, 7, QUERY))
        world.counter.floor = 1000 * SECOND
        world.until(lambda: bool(world.rows()))
        assert [(one.start_ts, one.state) for one in world.rows().values()] == [(BEGAN, PrewriteState.OPEN)]
        assert prewrites.parked_by_pumps(world.lake) == {}
        assert f"open  one  tidb {BEGAN}  " in world.says()
        assert world.resolved == CAME
        world.jobs[7] = job(CAME + 50)
        world.until(lambda: BEGAN in world.answers())
        world.until(lambda: world.resolved > 1000 * SECOND)
        client.close()
    answer, row = world.answers()[BEGAN], world.rows()[BEGAN]
    assert (answer.tp, answer.commit_ts, answer.ddl_job_id) == (BinlogType.COMMIT, CAME + 1, 7)
    assert (row.state, row.decided_by) == (PrewriteState.COMMITTED, "TiDB's history of DDL job 7")
    landed = [binlog_of(one) for segment in bronze_segments(world.folder / "lake") for one in payloads_of(segment)]
    assert [one.start_ts for one in landed if one.tp is BinlogType.JOB] == [CAME + 1]


def test_of_several_tries_of_a_job_the_last_one_was_committed(world: World) -> None:
    world.fates |= {BEGAN: NOTHING, BEGAN + 5: NOTHING}
    world.jobs[7] = job(CAME + 50)
    with world.run(jobs=world.jobs):
        client = Client(f"unix:{world.folder}/p.sock")
        for start_ts in (BEGAN, BEGAN + 5):
            client.write(encode.ddl(BinlogType.PREWRITE, start_ts, 0, 7, QUERY))
        world.counter.floor = 1000 * SECOND
        world.until(lambda: {BEGAN, BEGAN + 5} <= world.answers().keys())
        client.close()
    assert [world.answers()[one].tp for one in (BEGAN, BEGAN + 5)] == [BinlogType.ROLLBACK, BinlogType.COMMIT]


class Collected(BaseHTTPRequestHandler):
    """A status port of a TiDB whose garbage collection took every record away."""

    def do_GET(self) -> None:
        told = json.dumps({"value": {"info": {}}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collected() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collected)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.skipif(not PROGRAM.exists(), reason=MISSING)
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_real_tidb_says_what_became_of_a_ddl(
    *, is_gone: bool, tmp_path: Path, collected: int, spark: SparkSession
) -> None:
    """is_gone: its MVCC has nothing any more, and its history decides."""
    sql_port, status_port = free_port(), free_port()
    pumps = Pumps(tmp_path, sql_port, collected if is_gone else status_port)
    try:
        addresses = [f"unix://{tmp_path}/{name}.sock" for name in NAMES]
        tidb = Tidb(tmp_path / "tidb", addresses, "--port", str(sql_port), "--status-port", str(status_port))
        try:
            collected_upto(tidb, "20990101-00:00:00 +0000" if is_gone else SAFE_POINT)
            altered(tidb)
            apply_upto(pumps, tidb, spark)
            rows = by_polars(str(pumps.lake / "silver" / "shop" / "t")).sort_by("id")
            assert [rows[name].to_pylist() for name in ("id", "a", "b")] == [[1, 2], [1, 2], [7, 2]]
            lake = LakeFiles(str(pumps.lake))
            told = prewrites.standing(lake, 0).values() if control.exists(lake, PREWRITES) else ()
            decided = [(one.state, one.decided_by.rpartition(" ")[0]) for of in told for one in of]
            assert decided == ([(PrewriteState.COMMITTED, "TiDB's history of DDL job")] if is_gone else [])
        finally:
            tidb.stop()
    finally:
        pumps.stop()


def altered(tidb: Tidb) -> None:
    """A table with a row on both sides of an ALTER whose Commit gets lost."""
    with tidb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("CREATE TABLE shop.t (id INT PRIMARY KEY, a INT)")
        cursor.execute("INSERT INTO shop.t VALUES (1, 1)")
        tidb.settle()
        tidb.control("/fault?drop_commit=1")
        cursor.execute("ALTER TABLE shop.t ADD COLUMN b INT DEFAULT 7")
        tidb.control("/fault?reset=1")
        cursor.execute("INSERT INTO shop.t VALUES (2, 2, 2)")
    tidb.settle()
