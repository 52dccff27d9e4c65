"""Latency: from a commit at the source to its rows being visible in silver, on a warm micro-batch pipeline.

In:  rates (row changes a second), seconds per rate; the demo's MariaDB, capture and apply as processes of their own,
     as Airflow would run them.
Out: per rate the percentiles of markers (five a second, each a transaction of its own), how many there were, the CPU
     that capture and apply took, and how late this process was to write its markers: the machine's own noise.

`python -m benchmarks.bench_latency [--rates 100 1000 5000] [--seconds 60]`
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "include")]

from benchmarks.micro_batch import Job, Workload, environment, pipeline_file  # noqa: E402
from tidegate import tables  # noqa: E402
from tidegate.lake import control  # noqa: E402
from tidegate.lake.bronze.table import Bronze  # noqa: E402
from tidegate.lake.figures import latency  # noqa: E402
from tidegate.lake.files import LakeFiles  # noqa: E402
from tidegate.local import jars, mariadb  # noqa: E402
from tidegate.local.server import Server  # noqa: E402
from tidegate.mysql.looking.marker import MarkerWriter  # noqa: E402

NAME = "bench_latency"
_TABLES = [f"t{number}" for number in range(3)]
MARKERS_A_SECOND = 5.0
_WARM_SECONDS_MAX = 300.0
_WARM_WINDOWS = 10
_VISIBLE_SECONDS_MAX = 120.0


class Bench:
    """A running pipeline, and what can be asked of it."""

    def __init__(self, server: Server, folder: Path, jobs: Sequence[Job]) -> None:
        self.server = server
        self.lake = LakeFiles(str(folder / "lake"))
        self.jobs = jobs
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
        with Workload(self.server, NAME, rate, _TABLES):
            while cuts < _WARM_WINDOWS:
                self._check_alive()
                if time.monotonic() > end:
                    raise AssertionError(f"only {cuts} windows with markers in {_WARM_SECONDS_MAX} s")
                self.writer.write()
                time.sleep(0.5)
                cuts = self._windows_since(since)

    def _windows_since(self, since_us: int) -> int:
        """How many windows made markers visible, written since then by the source's clock."""
        rows = control.read(self.lake, tables.LATENCY, columns=["cut_ts"], filters=[("written_us", ">=", since_us)])
        return len(set(rows["cut_ts"].to_pylist()))

    def measure(self, rate: int, seconds: float) -> dict[str, float]:
        since, written = self._now_us(), 0
        late: list[float] = []
        cpu = self._cpu_seconds()
        with Workload(self.server, NAME, rate, _TABLES) as workload:
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
        for job in self.jobs:
            job.check_alive()

    def _cpu_seconds(self) -> float:
        return sum(sum(job.cpu().values()) for job in self.jobs)


@contextmanager
def running(folder: Path, seconds: float) -> Iterator[Bench]:
    """A MariaDB, and a pipeline of it whose capture and apply run for at most `seconds`."""
    jars.ensure(ROOT)
    base = mariadb.install(ROOT)
    file = pipeline_file(folder, NAME)
    with mariadb.MariaDB(folder / "mariadb", base) as server:
        Workload.create(server, NAME, _TABLES)
        server.query("CREATE DATABASE tidegate")  # before capture's baseline, as its table: neither holds rows
        jobs: list[Job] = []
        bench: Bench | None = None
        try:
            found = environment(ROOT, server, NAME)
            jobs.extend(Job(job, file, found, seconds) for job in ("capture", "apply"))
            bench = Bench(server, folder, jobs)
            bench.wait_for_bronze()
            yield bench
        except BaseException:
            for job in jobs:
                print(*(text for _, text in job.lines[-30:]), sep="\n", file=sys.stderr)
            raise
        finally:
            if bench is not None:
                bench.close()
            for job in jobs:
                job.end()


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
