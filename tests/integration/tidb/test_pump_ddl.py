"""What TiDB's history says of a DDL job is in bronze before anything behind the DDL is resolved."""

from __future__ import annotations

import time
from pathlib import Path

from tests.kit.tidb import encode
from tests.kit.tidb.pump_world import Client, Counter, Jobs, pump_run, running, until
from tests.support.captures import landed_segments
from tidegate.tidb.records.enclosed import payloads_of
from tidegate.tidb.records.payload import Binlog, BinlogType, binlog_of

SECOND = 1000 << 18
DDL = 100 * SECOND
COMMITTED = DDL + 5


def of_type(folder: Path, tp: BinlogType) -> list[Binlog]:
    found = [binlog_of(payload) for segment in landed_segments(folder / "lake") for payload in payloads_of(segment)]
    return [binlog for binlog in found if binlog.tp is tp]


def resolved(folder: Path) -> int:
    segments = landed_segments(folder / "lake")
    return segments[-1].resolved_ts if segments else 0


def test_a_ddl_is_not_resolved_before_its_job_is_in_bronze(tmp_path: Path) -> None:
    jobs, counter = Jobs(), Counter(SECOND)
    with running(pump_run(tmp_path, counter, jobs=jobs)):
        client = Client(f"unix:{tmp_path}/p.sock")
        client.write(encode.ddl(BinlogType.PREWRITE, DDL, 0, 7, b"create table t (a int)"))
        client.write(encode.ddl(BinlogType.COMMIT, DDL, COMMITTED, 7, b"create table t (a int)"))
        counter.floor = 200 * SECOND
        until(lambda: resolved(tmp_path) == COMMITTED - 1)
        client.close()
    jobs.down = True
    with running(pump_run(tmp_path, counter, jobs=jobs)):  # it knows again what it waits for
        time.sleep(1.5)
        assert resolved(tmp_path) == COMMITTED - 1
        jobs[7], jobs.down = b'{"id": 7}', False
        until(lambda: resolved(tmp_path) > COMMITTED)
    (job,) = of_type(tmp_path, BinlogType.JOB)
    assert (job.ddl_job_id, job.start_ts, job.prewrite_value) == (7, COMMITTED, b'{"id": 7}')
    (listed,) = of_type(tmp_path, BinlogType.TABLES)
    assert jobs.listed == [listed.start_ts]


def test_a_pump_that_begins_again_between_a_commit_and_its_job_lands_the_job(tmp_path: Path) -> None:
    """The segment of the DDL's Prewrite isn't read again, and a later Prewrite's names more than its Commit."""
    jobs, counter, open_ts = Jobs(), Counter(SECOND), COMMITTED + 10 * SECOND
    with running(pump_run(tmp_path, counter, jobs=jobs)):
        client = Client(f"unix:{tmp_path}/p.sock")
        until(lambda: resolved(tmp_path) > 0)
        client.write(encode.ddl(BinlogType.PREWRITE, DDL, 0, 7, b"create table t (a int)"))
        client.write(encode.binlog(BinlogType.PREWRITE, open_ts, key=b"k"))
        client.write(encode.ddl(BinlogType.COMMIT, DDL, COMMITTED, 7, b"create table t (a int)"))
        until(lambda: resolved(tmp_path) == COMMITTED - 1)
        client.close()
    jobs[7] = b'{"id": 7}'
    with running(pump_run(tmp_path, counter, jobs=jobs)):
        until(lambda: resolved(tmp_path) == open_ts)
    assert [(job.ddl_job_id, job.start_ts) for job in of_type(tmp_path, BinlogType.JOB)] == [(7, COMMITTED)]


def test_a_sequence_that_moves_has_no_job_to_wait_for(tmp_path: Path) -> None:
    counter = Counter(SECOND)
    with running(pump_run(tmp_path, counter, jobs=Jobs())):
        client = Client(f"unix:{tmp_path}/p.sock")
        query = b"select setval(`d`.`s`, 5)"
        client.write(encode.ddl(BinlogType.PREWRITE, DDL, 0, 7, query))
        client.write(encode.ddl(BinlogType.COMMIT, DDL, COMMITTED, 7, query))
        counter.floor = 200 * SECOND
        until(lambda: resolved(tmp_path) > COMMITTED)
        client.close()


def test_nothing_is_resolved_before_it_is_known_which_tables_there_are(tmp_path: Path) -> None:
    jobs = Jobs()
    jobs.down = True
    with running(pump_run(tmp_path, Counter(SECOND), jobs=jobs)):
        client = Client(f"unix:{tmp_path}/p.sock")
        assert client.write(encode.binlog(BinlogType.PREWRITE, DDL, key=b"k")) == ""
        client.write(encode.binlog(BinlogType.COMMIT, DDL, COMMITTED))
        time.sleep(1)
        assert resolved(tmp_path) == 0
        jobs.down = False
        until(lambda: resolved(tmp_path) > 0)
        client.close()


def test_only_a_pump_writes_jobs(tmp_path: Path) -> None:
    with running(pump_run(tmp_path, Counter())):
        client = Client(f"unix:{tmp_path}/p.sock")
        assert "only a Pump" in client.write(encode.ddl(BinlogType.JOB, DDL, 0, 7))
        client.close()
