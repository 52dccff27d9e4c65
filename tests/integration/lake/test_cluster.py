"""A standalone Spark cluster and a lake on S3: a worker dies in a large window, and two drivers start at once.

Needs what CI doesn't bring: the jars of `make jars-s3`, and versitygw. `make topology` kills the other parts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit import services
from tests.kit.reached import run_to
from tests.support.servers import ROOT, FreshDatabase
from tidegate import config
from tidegate.errors import HostLacks
from tidegate.local.jars import S3 as JARS
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import current_position
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = [pytest.mark.server, pytest.mark.spark]

_ROWS = 60_000
_SECONDS_MAX = 600.0


@dataclass
class Cluster:
    """options: of the store. spark: the master, then two workers."""

    folder: Path
    options: dict[str, str]
    spark: services.Cluster

    @property
    def tasks_begun(self) -> int:
        """In executors of the first worker."""
        logs = self.folder.glob("work-1/*/*/stderr")
        return sum(log.read_text(errors="replace").count("Running task") for log in logs)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    missing = [jar.file_name for jar in JARS if not (ROOT / ".tidegate" / "jars" / jar.file_name).exists()]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: make jars-s3")
    try:
        store, options = services.store(tmp_path, "known-to-the-test-only")
    except HostLacks as lacks:
        pytest.skip(str(lacks))
    spark = services.spark(Path(sys.executable).parent, ROOT, tmp_path)
    with ExitStack() as stack:
        for part in (store, *spark.parts):
            part.start()
            stack.callback(part.stop)
        yield Cluster(tmp_path, dict(options), spark)


@contextmanager
def _applying(file: Path, cluster: Cluster) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {
        "AIRFLOW_CONN_THE_LAKE": json.dumps({"conn_type": "generic", "extra": cluster.options}),
    }
    argv = [str(Path(sys.executable).parent / "tidegate"), "apply", str(file), "--mode", "batch"]
    argv += ["--master", f"spark://{cluster.spark.host}:{cluster.spark.port}"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(argv, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("writer", ["auto", "merge"])
def test_a_worker_is_killed_in_a_large_window_and_a_second_driver_is_told_to_wait(
    mariadb: Server, fresh_database: FreshDatabase, cluster: Cluster, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(mariadb)
    file = tmp_path / "spread.yaml"
    file.write_text(
        f"pipeline: spread\nlake: {{path: 's3://{services.BUCKET}/spread', conn_id: the_lake}}\n"
        "sources: {one: {conn_id: one, flavour: mariadb, start: now}}\n"
        f"tables: {{include: ['{database}.*']}}\ncapture: {{heartbeat_seconds: 1, segment_bytes: 1048576}}\n"
        f"apply: {{writer: {writer}, driver_decode_bytes: 1, driver_memory: 768m, spark_conf: {{\n"
        "  spark.executor.cores: '1', spark.executor.memory: 512m,\n"
        "  spark.driver.host: 127.0.0.1, spark.driver.bindAddress: 127.0.0.1}}\n"
    )
    pipeline = config.load(file)
    info = ConnectionInfo(host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password)
    run = binlog_run(pipeline, "one", info, tmp_path / "state", storage_options=cluster.options)
    run_to(run, None, 60, idle_seconds=3.0)
    mariadb.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v VARCHAR(200))")
    for first in range(1, _ROWS, _ROWS // 6):  # a segment holds whole transactions
        rows = f"SELECT seq, REPEAT(MD5(seq), 4) FROM seq_{first}_to_{first + _ROWS // 6 - 1}"
        mariadb.query(f"INSERT INTO t {rows}", database=database)
    mariadb.query(f"DELETE FROM {database}.t WHERE id % 7 = 0")
    with mariadb.connect() as connection, connection.cursor() as cursor:
        goal = current_position(cursor)
    run_to(run, goal, 120, idle_seconds=3.0)
    worker = cluster.spark.parts[1]
    with _applying(file, cluster) as driver:
        end = time.monotonic() + _SECONDS_MAX
        while not cluster.tasks_begun:
            assert driver.poll() is None, driver.communicate()[0][-3000:]
            assert time.monotonic() < end, "no executor of the first worker began a task"
            time.sleep(0.02)
        worker.kill()
        with _applying(file, cluster) as second:
            said, _ = second.communicate(timeout=_SECONDS_MAX)
        assert second.returncode == 75, said[-3000:]
        assert "held by apply of spread" in said
        worker.start()
        said, _ = driver.communicate(timeout=_SECONDS_MAX)
    assert driver.returncode == 0, said[-3000:]
    report = verify(pipeline, {"one": info}, pipeline.lake.path, cluster.options, VerifyOptions(timeout_seconds=60))
    (table,) = report.tables
    assert (table.outcome, table.silver_rows) == (Outcome.EQUAL, _ROWS - _ROWS // 7)
