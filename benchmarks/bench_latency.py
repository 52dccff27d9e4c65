"""Latency: from a commit at the source to its rows being visible in silver, on a warm micro-batch pipeline.

In:  rates (row changes a second), seconds per rate; the demo's MariaDB, capture and apply as processes of their own,
     as Airflow would run them.
Out: per rate the percentiles of markers (five a second, each a transaction of its own), how many there were, the CPU
     that capture and apply took, and how late this process was to write its markers: the machine's own noise.

`python -m benchmarks.bench_latency [--rates 100 1000 5000] [--seconds 60]`
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "include")]

from benchmarks.cpu import tree_cpu  # noqa: E402
from tidegate import config, spark_settings  # noqa: E402
from tidegate.demo import jars, mariadb  # noqa: E402
from tidegate.demo.server import Server  # noqa: E402
from tidegate.lake import latency  # noqa: E402
from tidegate.lake.bronze import Bronze  # noqa: E402
from tidegate.lake.files import LakeFiles  # noqa: E402
from tidegate.tables import MARKER  # noqa: E402
from tidegate.wire.marker import MarkerWriter  # noqa: E402

DATABASE = "bench_latency"
TABLES = 3
MARKERS_A_SECOND = 5.0
_TICK_SECONDS = 0.1
_WARM_SECONDS_MAX = 300.0
_WARM_WINDOWS = 10
_VISIBLE_SECONDS_MAX = 120.0
_STOP_SECONDS_MAX = 60.0

_PIPELINE = """
pipeline: bench_latency
lake: {{path: {folder}/lake}}
sources: {{one: {{conn_id: bench_latency, flavour: mariadb}}}}
tables: {{include: ["{database}.*", "{marker}"]}}
capture: {{heartbeat_seconds: 1, value_log_path: {folder}/value_log}}
apply: {{mode: micro_batch, driver_memory: 1g}}
"""


class Workload:
    """Row changes at a steady rate, from a thread: in ten, six inserts, three updates, one delete."""

    def __init__(self, server: Server, rate: int) -> None:
        self._server = server
        self._rate = rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.done = 0

    @staticmethod
    def create(server: Server) -> None:
        server.query(f"CREATE DATABASE {DATABASE}")
        for table in range(TABLES):
            server.query(
                f"CREATE TABLE {DATABASE}.t{table} (id BIGINT PRIMARY KEY, name VARCHAR(60), amount DECIMAL(12,2),"
                " at DATETIME(6), note VARCHAR(200))"
            )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        next_id = [int(time.time() * 1000) * 1000] * TABLES
        with self._server.connect(DATABASE, autocommit=False) as connection, connection.cursor() as cursor:
            started, tick = time.monotonic(), 0
            while not self._stop.wait(max(0.0, started + tick * _TICK_SECONDS - time.monotonic())):
                tick += 1
                table = tick % TABLES
                # What is owed since the start, so that a late tick makes up for it.
                count = int(self._rate * tick * _TICK_SECONDS) - self.done
                self.done += self._change(cursor, f"t{table}", next_id, table, count)
                connection.commit()

    @staticmethod
    def _change(cursor: Any, table: str, next_id: list[int], number: int, count: int) -> int:
        deletes, updates = count // 10, count * 3 // 10
        inserts = count - deletes - updates
        first = next_id[number]
        next_id[number] += inserts
        rows = [(first + n, f"name {n}", n * 1.25, "2026-02-03 04:05:06.789", "x" * 100) for n in range(inserts)]
        if rows:
            cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s)", rows)
        if updates:
            cursor.execute(
                f"UPDATE {table} SET amount = amount + 1 WHERE id < {first} ORDER BY id DESC LIMIT {updates}"
            )
        if deletes:
            cursor.execute(f"DELETE FROM {table} WHERE id < {first} ORDER BY id DESC LIMIT {deletes}")
        return count


class Bench:
    """A running pipeline, and what can be asked of it."""

    def __init__(self, server: Server, folder: Path, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        self.server = server
        self.lake = LakeFiles(str(folder / "lake"))
        self.processes = processes
        self._connection = server.connect()
        self.writer = MarkerWriter(self._connection)
        self.writer.create()

    def close(self) -> None:
        self._connection.close()

    def wait_for_bronze(self) -> None:
        """Until capture knows every table, empty as they are: rows from before would need a snapshot."""
        end = time.monotonic() + _WARM_SECONDS_MAX
        while Bronze(self.lake, "one").last_seq == 0:
            self._check_alive()
            if time.monotonic() > end:
                raise AssertionError("nothing was captured")
            time.sleep(0.5)

    def warm_up(self, rate: int) -> None:
        """Until several windows with changes in every table have gone through."""
        end = time.monotonic() + _WARM_SECONDS_MAX
        since, cuts = self._now_us(), 0
        with Workload(self.server, rate):
            while cuts < _WARM_WINDOWS:
                self._check_alive()
                if time.monotonic() > end:
                    raise AssertionError(f"only {cuts} windows with markers in {_WARM_SECONDS_MAX} s")
                self.writer.write()
                time.sleep(0.5)
                cuts = latency.windows_since(self.lake, since)

    def measure(self, rate: int, seconds: float) -> dict[str, float]:
        since, written = self._now_us(), 0
        late: list[float] = []
        cpu = self._cpu_seconds()
        with Workload(self.server, rate) as workload:
            started = time.monotonic()
            while (due := started + written / MARKERS_A_SECOND) < started + seconds:
                time.sleep(max(0.0, due - time.monotonic()))
                late.append(time.monotonic() - due)
                self.writer.write()
                written += 1
                self._check_alive()
            took = time.monotonic() - started
        changes = workload.done / took
        found = self._all_visible(since, written)
        return {
            "p50": found.p50,
            "p95": found.p95,
            "p99": found.p99,
            "longest": found.longest,
            "markers": found.markers,
            "changes_a_second": changes,
            "cpu_seconds_a_second": (self._cpu_seconds() - cpu) / took,
            "marker_late_p95": sorted(late)[int(len(late) * 0.95)],
        }

    def _all_visible(self, since: int, written: int) -> latency.Percentiles:
        end = time.monotonic() + _VISIBLE_SECONDS_MAX
        found = latency.written_since(self.lake, since)
        while found is None or found.markers < written:
            self._check_alive()
            if time.monotonic() > end:
                raise AssertionError(f"{found.markers if found else 0} of {written} markers became visible")
            time.sleep(0.5)
            found = latency.written_since(self.lake, since)
        return found

    def _now_us(self) -> int:
        return time.time_ns() // 1000 + self.writer.ahead_us

    def _check_alive(self) -> None:
        for process in self.processes:
            if process.poll() is not None:
                raise AssertionError(f"{process.args} ended with {process.returncode}")

    def _cpu_seconds(self) -> float:
        return sum(tree_cpu(process.pid) for process in self.processes)


@contextmanager
def running(folder: Path, seconds: float) -> Iterator[Bench]:
    """A MariaDB, and a pipeline of it whose capture and apply run for at most `seconds`."""
    jars.ensure(ROOT)
    base = mariadb.install(ROOT)
    file = folder / "bench_latency.yaml"
    file.write_text(_PIPELINE.format(folder=folder, database=DATABASE, marker=MARKER))
    config.load(file)
    command = [sys.executable, "-c", "from tidegate.cli.main import run; run()"]
    with mariadb.MariaDB(folder / "mariadb", base) as server:
        Workload.create(server)
        server.query("CREATE DATABASE tidegate")  # before capture's baseline, as its table: neither holds rows
        uri = f"mysql://{quote(server.user)}:{quote(server.password)}@{server.host}:{server.port}/"
        environment = os.environ | spark_settings.driver_environment(ROOT) | {"AIRFLOW_CONN_BENCH_LATENCY": uri}
        environment["PYTHONPATH"] = f"{ROOT / 'include'}{os.pathsep}{ROOT}"
        duration = ["--run-for", str(int(seconds))]
        started: list[subprocess.Popen[bytes]] = []
        bench: Bench | None = None
        try:
            for job, log in (("capture", "capture.log"), ("apply", "apply.log")):
                with (folder / log).open("wb") as output:
                    started.append(
                        subprocess.Popen(
                            [*command, job, str(file), *duration],
                            env=environment,
                            stdout=output,
                            stderr=subprocess.STDOUT,
                            start_new_session=True,
                        )
                    )
            bench = Bench(server, folder, started)
            bench.wait_for_bronze()
            yield bench
        except BaseException:
            for log in ("capture.log", "apply.log"):
                print((folder / log).read_text(errors="replace")[-3000:], file=sys.stderr)
            raise
        finally:
            if bench is not None:
                bench.close()
            for process in started:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started (its own session)."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(_STOP_SECONDS_MAX)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def measure(rates: Sequence[int], seconds: float) -> dict[int, dict[str, float]]:
    """Rate -> figures: p50, p95, p99, longest in seconds; markers; CPU-seconds a second; the machine's noise."""
    whole = _WARM_SECONDS_MAX + len(rates) * (seconds + _VISIBLE_SECONDS_MAX)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), whole) as bench:
        bench.warm_up(rates[0])
        return {rate: bench.measure(rate, seconds) for rate in rates}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rates", type=int, nargs="+", default=[100, 1_000, 5_000], help="row changes a second")
    options.add_argument("--seconds", type=float, default=60.0, help="per rate")
    given = options.parse_args()
    for rate, figures in measure(given.rates, given.seconds).items():
        print(f"{rate} changes a second: " + ", ".join(f"{name} {value:.3g}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
