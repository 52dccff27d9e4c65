"""Pumps of ours as processes, with a real TiDB that writes to them.

In:  a folder; sections of a pipeline file.
Out: Pumps that serve, a Tidb; both end with the block. Silver, as far as TiDB is.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.apply import run as run_apply
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.tidb.server import Tidb
from tidegate import config
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles

NAMES = ("p0", "p1")
# Which a young TiDB hasn't said yet, and reads no snapshot before.
SAFE_POINT = "20200101-00:00:00 +0000"


class Pumps:
    """`tidegate pump` for each source, as processes. file: their pipeline's; lake: where it lies."""

    def __init__(
        self,
        folder: Path,
        sql_port: int,
        status_port: int,
        *,
        pipeline: str = "bank",
        names: Sequence[str] = NAMES,
        more: str = "",
    ) -> None:
        """more: sections of the pipeline file, as YAML."""
        self._folder, self._names, self.lake = folder, names, folder / "lake"
        entry = (
            "{{conn_id: tidb_sql, flavour: tidb, listen: ['unix:{folder}/{name}.sock'], fake_seconds: 0.5,"
            " status_url: 'http://127.0.0.1:{status}', orphan_seconds: 2}}"
        )
        sources = "\n".join(f"  {name}: {entry.format(folder=folder, name=name, status=status_port)}" for name in names)
        self.file = folder / f"{pipeline}.yaml"
        self.file.write_text(
            f"pipeline: {pipeline}\nlake: {{path: {folder}/lake}}\nsources:\n{sources}\ntables: {{include: ['*.*']}}\n"
            f"capture: {{value_log_reserve_bytes: 1048576}}\n{more}"
        )
        sql = {"conn_type": "mysql", "host": "127.0.0.1", "port": sql_port, "login": "root"}
        self.environment = os.environ | {"AIRFLOW_CONN_TIDB_SQL": json.dumps(sql)}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for name in self._names:
                self.start(name)
        except BaseException:
            self.stop()
            raise

    def start(self, name: str) -> None:
        address = self._folder / f"{name}.sock"
        address.unlink(missing_ok=True)
        program = Path(sys.executable).with_name("tidegate")
        command = [program, "pump", self.file, name, "--state-dir", self._folder / "state"]
        with (self._folder / f"{name}.log").open("a") as log:
            self._running[name] = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        end = time.monotonic() + 180  # kernels may have to be compiled
        while not address.exists():
            assert time.monotonic() < end, (self._folder / f"{name}.log").read_text()
            time.sleep(0.05)

    def kill(self, name: str) -> None:
        self._running[name].kill()
        self._running[name].wait()

    def stop(self) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        for process in self._running.values():
            process.wait(60)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def tidb_with_pumps(
    folder: Path,
    *,
    pipeline: str = "bank",
    names: Sequence[str] = NAMES,
    more: str = "",
    before: Callable[[Tidb], None] | None = None,
) -> Iterator[tuple[Pumps, Tidb]]:
    """A TiDB that shows its past, and Pumps that it writes to. before: what is done there before it has any."""
    sql_port, status_port = free_port(), free_port()
    if before is not None:
        alone = Tidb(folder / "tidb", (), "--port", str(sql_port), "--status-port", str(status_port))
        try:
            before(alone)
        finally:
            alone.end()
    pumps = Pumps(folder, sql_port, status_port, pipeline=pipeline, names=names, more=more)
    addresses = [f"unix://{folder}/{name}.sock" for name in names]
    try:
        tidb = Tidb(folder / "tidb", addresses, "--port", str(sql_port), "--status-port", str(status_port))
        try:
            collected_upto(tidb, SAFE_POINT)
            yield pumps, tidb
        finally:
            tidb.stop()
    finally:
        pumps.stop()


def collected_upto(tidb: Tidb, safe_point: str) -> None:
    """Say how far garbage collection came."""
    with tidb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("REPLACE INTO mysql.tidb VALUES ('tikv_gc_safe_point', %s, '')", (safe_point,))


def apply_upto(pumps: Pumps, tidb: Tidb, spark: SparkSession) -> Application:
    """Apply, as each run of Airflow does, until silver has all that TiDB had committed by now."""
    tso, end = int(tidb.control("/tso")), time.monotonic() + 300
    pipeline = config.load(pumps.file)
    while True:
        lake = LakeFiles(str(pumps.lake))
        app = Application(BackgroundSession(lambda: spark), pipeline, lake, BronzeIndex(lake))
        run_apply(app, report=print)
        if app.cut_ts >= tso:
            return app
        assert time.monotonic() < end, f"silver is at {app.cut_ts}, TiDB at {tso}"
        time.sleep(0.2)


@contextmanager
def under_way(*works: Callable[[threading.Event], None]) -> Iterator[None]:
    """While the block runs so do these, until the event is set; what ends one otherwise is raised."""
    stop, errors = threading.Event(), list[BaseException]()

    def guarded(work: Callable[[threading.Event], None]) -> None:
        try:
            work(stop)
        except BaseException as error:  # noqa: BLE001  raised in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def applying(pumps: Pumps, tidb: Tidb, spark: SparkSession) -> Callable[[threading.Event], None]:
    """Apply until it is told to stop, for under_way."""

    def work(stop: threading.Event) -> None:
        while not stop.is_set():
            apply_upto(pumps, tidb, spark)

    return work
