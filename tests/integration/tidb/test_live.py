"""A bank on a real TiDB writes to two Pumps, while commits are lost, repeated and late and Pumps are killed.

Bronze, replayed, is what TiDB's SELECT says, and the sum is constant at every commit. Silver, which apply keeps
meanwhile, is at each published cut what TiDB says of that timestamp. `make test-long` goes on for minutes with several
seeds: a Pump is killed every few seconds, in the middle of faults, behind DDL of several kinds.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from spark_jobs.apply import run as run_apply
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.tidb.pumps import NAMES, Pumps, tidb_with_pumps
from tests.kit.tidb.replay.catalog import Catalog
from tests.kit.tidb.server import MISSING, PROGRAM, Tidb
from tests.support.captures import bronze_segments
from tests.support.readers import by_polars
from tests.support.seeds import LONG, many, seed
from tidegate import config, tables
from tidegate.lake import control
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.cuts.published import Cut, cut_at
from tidegate.lake.files import LakeFiles
from tidegate.tidb.jobs import Job
from tidegate.tidb.records.enclosed import payloads_of
from tidegate.tidb.records.pairing import Pairing
from tidegate.tidb.records.payload import Binlog, binlog_of

pytestmark = [
    *(pytest.mark.server, pytest.mark.long),
    *(pytest.mark.timeout(1800), pytest.mark.skipif(not PROGRAM.exists(), reason=MISSING)),
]

DEADLOCK = 1213
ACCOUNTS, EACH, WRITERS, SECONDS, KILLS = 20, 1000, 4, *((150, 24) if LONG else (12, 2))
# Each is of another kind, and those of one round leave the journal's columns as they were but for one.
ALTERS = (
    "ALTER TABLE bank.journal ADD COLUMN after_{0} INT DEFAULT 5",
    "ALTER TABLE bank.account ADD COLUMN note_{0} VARCHAR(20) DEFAULT 'x'",
    "ALTER TABLE bank.journal ADD INDEX by_{0} (a)",
    "CREATE TABLE bank.other_{0} (id INT PRIMARY KEY)",
    "ALTER TABLE bank.journal COMMENT = 'turn {0}'",
    "TRUNCATE TABLE bank.emptied",
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[tuple[Path, Pumps, Tidb]]:
    with tidb_with_pumps(tmp_path) as (pumps, tidb):
        yield tmp_path, pumps, tidb


def write(tidb: Tidb, luck: float, stop: threading.Event, done: list[int]) -> None:
    draw, connection = random.Random(luck), tidb.connect()
    with connection, connection.cursor() as cursor:
        while not stop.is_set():
            (one, other), amount = draw.sample(range(ACCOUNTS), 2), draw.randint(1, 50)
            try:
                cursor.execute("BEGIN")
                cursor.execute("UPDATE bank.account SET balance = balance - %s WHERE id = %s", (amount, one))
                cursor.execute("UPDATE bank.account SET balance = balance + %s WHERE id = %s", (amount, other))
                cursor.execute("INSERT INTO bank.journal (a, b, amount) VALUES (%s, %s, %s)", (one, other, amount))
                cursor.execute("COMMIT")
                done.append(1)
            except pymysql.err.OperationalError as error:
                if error.args[0] != DEADLOCK:
                    raise
                cursor.execute("ROLLBACK")


def disturb(tidb: Tidb, pumps: Pumps, draw: random.Random) -> None:
    """Faults, and Pumps killed in turn; never both at a time: TiDB ends itself when no Pump answers."""
    cursor = tidb.connect().cursor()
    late = "delay_commit_ms=300&delay_commit_count=5"
    faults = ("drop_commit=1", "dup_prewrite=2", "dup_commit=2", "lose_ack_prewrite=1", late)
    started, killed = time.monotonic(), 0
    while time.monotonic() < started + SECONDS or killed < KILLS:
        tidb.control(f"/fault?{draw.choice(faults)}")
        time.sleep(0.4)
        due = (time.monotonic() - started) / SECONDS * KILLS  # spread over the whole time
        if killed < KILLS and draw.random() < 0.3 and due >= killed:
            tidb.control("/fault?reset=1")
            name = NAMES[-1 - killed % len(NAMES)]
            pumps.kill(name)
            cursor.execute(ALTERS[killed % len(ALTERS)].format(killed))
            pumps.start(name)
            killed += 1
    tidb.control("/fault?reset=1")


def applying(folder: Path, spark: SparkSession, stop: threading.Event, apps: list[Application]) -> None:
    """Apply, as each run of Airflow does, until it is told to stop and nothing is left."""
    pipeline = config.load(folder / "bank.yaml")
    last = False
    while not last:
        last = stop.is_set()
        lake = LakeFiles(str(folder / "lake"))
        apps.append(Application(BackgroundSession(lambda: spark), pipeline, lake, BronzeIndex(lake)))
        run_apply(apps[-1], report=print)
        time.sleep(0.5)


def silver_at(folder: Path, cut: Cut, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
    found = cut.tables[f"bank.{table}"]
    rows = by_polars(str(folder / "lake" / found.path), found.version)
    return sorted(zip(*(rows[name].to_pylist() for name in columns), strict=True))


def silver_is_tidbs(folder: Path, tidb: Tidb) -> int:
    """Compares the tables at published cuts; returns how many cuts there were."""
    lake = LakeFiles(str(folder / "lake"))
    stamps = control.read(lake, tables.CUTS, columns=["cut_ts"], filters=[("table", "=", "")])["cut_ts"].to_pylist()
    cuts = [cut for stamp in sorted(stamps) if "bank.account" in (cut := cut_at(lake, "bank", stamp)).tables]
    with tidb.connect() as connection, connection.cursor() as cursor:
        for cut in cuts:
            found = silver_at(folder, cut, "account", ["id", "balance"])
            assert not found or sum(balance for _, balance in found) == ACCOUNTS * EACH
        for cut in (cuts[-1], *random.Random(3).sample(cuts, min(4, len(cuts)))):
            cursor.execute("SET @@tidb_snapshot = %s", (str(cut.cut_ts),))
            cursor.execute("SELECT id, balance FROM bank.account ORDER BY id")
            assert silver_at(folder, cut, "account", ["id", "balance"]) == list(cursor.fetchall())
            if "bank.journal" in cut.tables:
                cursor.execute("SELECT a, b, amount FROM bank.journal ORDER BY a, b, amount")
                assert silver_at(folder, cut, "journal", ["a", "b", "amount"]) == list(cursor.fetchall())
    return len(cuts)


@pytest.mark.parametrize("turn", range(many(1, 4)))
def test_a_bank_on_two_pumps_loses_nothing(world: tuple[Path, Pumps, Tidb], spark: SparkSession, turn: int) -> None:
    folder, pumps, tidb = world
    draw = random.Random(seed() + turn)
    applied, apps = threading.Event(), list[Application]()
    apply = threading.Thread(target=applying, args=(folder, spark, applied, apps))
    apply.start()
    with tidb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bank")
        cursor.execute("CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT)")
        cursor.execute("CREATE TABLE bank.journal (a INT, b INT, amount INT)")
        cursor.execute("CREATE TABLE bank.emptied (id INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO bank.account VALUES {', '.join(f'({n}, {EACH})' for n in range(ACCOUNTS))}")
        stop, done = threading.Event(), list[int]()
        writers = [threading.Thread(target=write, args=(tidb, draw.random(), stop, done)) for _ in range(WRITERS)]
        for writer in writers:
            writer.start()
        try:
            disturb(tidb, pumps, draw)
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        tidb.settle()
        time.sleep(6)  # orphans are asked for after two seconds of timestamps
        applied.set()
        apply.join(600)
        cursor.execute("SELECT id, balance FROM bank.account ORDER BY id")
        accounts = list(cursor.fetchall())
        cursor.execute("SELECT a, b, amount, _tidb_rowid FROM bank.journal ORDER BY _tidb_rowid")
        journal = list(cursor.fetchall())
    jobs = [Job.from_text(text) for text in tidb.jobs()]
    assert not [state for state in apps[-1].states.values() if state.state == tables.State.HELD]
    assert silver_is_tidbs(folder, tidb) > 3
    pumps.stop()
    replayed = replay(folder, jobs)
    assert len(journal) >= len(done) > 0
    assert sorted((cells[1], cells[2]) for cells in replayed["account"]) == accounts
    found = [(cells[1], cells[2], cells[3], cells[-1]) for cells in replayed["journal"]]
    assert sorted(found, key=lambda row: row[3]) == journal


def replay(folder: Path, jobs: list[Job]) -> dict[str, list[dict]]:
    """Tables from both Pumps' bronze; the sum is looked at after each transaction."""
    pairing = Pairing[Binlog](NAMES)
    for name in NAMES:
        for segment in bronze_segments(folder / "lake", name):
            segment.verify()
            for payload in payloads_of(segment):
                pairing.take(binlog_of(payload), name, binlog_of(payload))
    assert not pairing.unanswered
    assert pairing.repeated > 0
    pairing.end()
    by_id = {job.id: job for job in jobs}
    catalog = Catalog(min(job.table_id for job in jobs if job.table and job.table.name in ("account", "journal")))
    for transaction in pairing.committed(pairing.resolved_ts):
        binlog = transaction.place
        if binlog.ddl_job_id:
            catalog.run(by_id[binlog.ddl_job_id])
            continue
        catalog.change(binlog.prewrite_value)
        rows = next((table.rows for _, table in catalog if table.info.name == "account"), None)
        assert rows is None or sum(cells[2] for cells in rows) == ACCOUNTS * EACH
    return {table.info.name: list(table.rows) for _, table in catalog}
