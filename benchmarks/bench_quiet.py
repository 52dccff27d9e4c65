"""What a quiet pipeline costs, how soon its commits are visible, and how soon a new application's first window is done.

In:  seconds per part; the demo's MariaDB with 100 tables, capture and apply as processes of their own.
Out: seconds from apply's start to the end of its first window over 13 tables, their silver to be made and there; CPU
     seconds a second by process at 100 changes a second over 4 tables, without markers; percentiles of markers with 4,
     31 and 100 tables changing all the time.

`python -m benchmarks.bench_quiet [--seconds 60] [--latency-seconds 15]`: about three minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "include")]

from benchmarks.micro_batch import COMMAND, Job, Workload, change, environment, pipeline_file  # noqa: E402
from tidegate.commit_ts import physical_ms  # noqa: E402
from tidegate.lake import control  # noqa: E402
from tidegate.lake.bronze.table import Bronze  # noqa: E402
from tidegate.lake.cuts.published import cut_at, known_cuts  # noqa: E402
from tidegate.lake.figures.latency import Percentiles, written_since  # noqa: E402
from tidegate.lake.files import LakeFiles  # noqa: E402
from tidegate.local import jars, mariadb  # noqa: E402
from tidegate.local.server import Server  # noqa: E402
from tidegate.mysql.looking.marker import MarkerWriter  # noqa: E402
from tidegate.tables import CUTS  # noqa: E402

NAME: Final = "bench_quiet"
FIRST_TABLES: Final = 13
# Tables that change within each half second (the marker's is one of them) -> row changes a second.
LATENCIES: Final = {4: 100, 31: 280, 100: 800}
_TABLES: Final = [f"t{number}" for number in range(max(LATENCIES) - 1)]
_QUIET_TABLES: Final = 4
_QUIET_RATE: Final = 100
_TICKS_FOR_ALL: Final = 5
_MARKERS_A_SECOND: Final = 5.0
_WAIT_SECONDS_MAX: Final = 120.0
_RUN_SECONDS: Final = 7200.0  # longer than all that is waited for, on a busy machine too
_WARM_SECONDS: Final = 8.0
_REST_SECONDS: Final = 4.0

Figures = dict[str, float]


class Bench:
    """A source of many tables, capture, and one apply after the other.

    environment, apply_command: of those that start from now on (micro_batch.Job).
    """

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self._folder = folder
        self.lake = LakeFiles(str(folder / "lake"))
        self.file = pipeline_file(folder, NAME)
        self.environment = environment(ROOT, server, NAME)
        self.apply_command = COMMAND
        self._connection = server.connect()
        self._marker = MarkerWriter(self._connection)
        self._marker.create()
        self.apply: Job | None = None
        self.capture = self._job("capture")

    def _job(self, name: str) -> Job:
        command = self.apply_command if name == "apply" else COMMAND
        return Job(name, self.file, self.environment, _RUN_SECONDS, command)

    def end(self) -> None:
        self._connection.close()
        for job in (self.capture, self.apply):
            if job is not None:
                job.end()

    def check_alive(self) -> None:
        for job in (self.capture, self.apply):
            if job is not None:
                job.check_alive()

    def wait_for_bronze(self, seq: int) -> None:
        """Until capture has landed more than this."""
        end = time.monotonic() + _WAIT_SECONDS_MAX
        while Bronze(self.lake, "one").last_seq <= seq:
            self.check_alive()
            assert time.monotonic() < end, "nothing was captured"
            time.sleep(0.2)

    def touch(self, tables: list[str]) -> int:
        """One row into each, in a transaction of its own. Returns a time behind them all, Unix milliseconds."""
        first = int(time.time() * 1000) * 1000
        with self.server.connect(NAME) as connection, connection.cursor() as cursor:
            for table in tables:
                change(cursor, table, first, 1)
        return int(time.time() * 1000) + 1

    def start(self, tables: list[str], seconds_max: float = _WAIT_SECONDS_MAX) -> float:
        """Begin an apply that finds changes in these; seconds until its first window is done."""
        touched_ms = self.touch(tables)
        self.wait_for_all(seconds_max)
        time.sleep(_REST_SECONDS)
        self.apply = self._job("apply")
        return self.visible_at(touched_ms, seconds_max) - self.apply.started

    def wait_for_all(self, seconds_max: float) -> None:
        """Until capture has landed what the server has now."""
        ((file, position, *_),) = self.server.query("SHOW MASTER STATUS")
        end = time.monotonic() + seconds_max
        while (last := Bronze(self.lake, "one").last_segments()[-1]).file < file or last.end_pos < position:
            self.check_alive()
            assert time.monotonic() < end, f"capture is at {last.file}:{last.end_pos}, not {file}:{position}"
            time.sleep(0.2)

    def visible_at(self, unix_ms: int, seconds_max: float = _WAIT_SECONDS_MAX) -> float:
        """When all commits up to a time were visible, in monotonic seconds."""
        end = time.monotonic() + seconds_max
        while self.cut_ms() < unix_ms:
            self.check_alive()
            assert time.monotonic() < end, f"the newest cut is at {self.cut_ms()}, not at {unix_ms}"
            time.sleep(0.05)
        seen = time.monotonic()
        missing = cut_at(self.lake, NAME).missing
        assert not missing, missing
        return seen

    def cut_ms(self) -> int:
        """The newest cut's time, Unix milliseconds; 0 before the first one."""
        return physical_ms(max(known_cuts(self.lake), default=0))

    def windows_of(self, tables: list[str]) -> int:
        """How many windows have written any of these tables."""
        wanted = {f"{NAME}.{table}" for table in tables}
        rows = control.read(self.lake, CUTS, columns=["cut_ts", "table"]).to_pylist()
        return len({row["cut_ts"] for row in rows if row["table"] in wanted})

    def start_caught_up(self, apply: str, seconds: float, seconds_max: float) -> None:
        """Begin an apply, and wait until it is at most so far behind. apply: keys of its section, behind a comma."""
        self.file = pipeline_file(self._folder, NAME, apply)
        self.apply = self._job("apply")
        end = time.monotonic() + seconds_max
        while (behind := time.time() - self.cut_ms() / 1000) > seconds:
            self.check_alive()
            assert time.monotonic() < end, f"it is {behind:.0f} s behind"
            time.sleep(0.2)

    def markers_begin(self) -> int:
        """Unix microseconds at the source."""
        return time.time_ns() // 1000 + self._marker.ahead_us

    def mark(self) -> None:
        """One marker, in a transaction of its own."""
        self._marker.write()

    def stop_apply(self) -> None:
        assert self.apply is not None
        self.apply.end()
        self.apply = None

    def quiet(self, seconds: float) -> Figures:
        """CPU seconds a second, by process; windows a second."""
        assert self.apply is not None
        with Workload(self.server, NAME, _QUIET_RATE, _TABLES[:_QUIET_TABLES]) as workload:
            time.sleep(_WARM_SECONDS)
            before, cuts, started = self.cpu(), set(known_cuts(self.lake)), time.monotonic()
            done = workload.done
            time.sleep(seconds)
            took, after = time.monotonic() - started, self.cpu()
            changes = (workload.done - done) / took
        self.check_alive()
        spent = {role: (after[role] - before.get(role, 0.0)) / took for role in sorted(after)}
        windows = len(set(known_cuts(self.lake)) - cuts)
        return {"all": sum(spent.values()), **spent, "windows": windows / took, "changes": changes}

    def cpu(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for job in (self.capture, self.apply):
            for role, spent in job.cpu().items() if job else ():
                found[role] = found.get(role, 0.0) + spent
        return found

    def latency(self, tables: int, rate: int, seconds: float) -> Figures:
        """Percentiles of markers while so many tables change."""
        assert self.apply is not None
        others = _TABLES[: tables - 1]
        with Workload(self.server, NAME, rate, others, -(-len(others) // _TICKS_FOR_ALL)):
            time.sleep(_REST_SECONDS)
            since, written, cuts = self.markers_begin(), 0, set(known_cuts(self.lake))
            before, started = self.cpu(), time.monotonic()
            while (due := started + written / _MARKERS_A_SECOND) < started + seconds:
                time.sleep(max(0.0, due - time.monotonic()))
                self.mark()
                written += 1
            took, after = time.monotonic() - started, self.cpu()
        windows = len(set(known_cuts(self.lake)) - cuts)
        found = self.all_visible(since, written)
        cpu = (sum(after.values()) - sum(before.values())) / took
        return {"p50": found.p50, "p95": found.p95, "longest": found.longest, "cpu": cpu, "windows": windows / took}

    def all_visible(self, since: int, written: int) -> Percentiles:
        end = time.monotonic() + _WAIT_SECONDS_MAX
        while (found := written_since(self.lake, since)) is None or found.markers < written:
            self.check_alive()
            assert time.monotonic() < end, f"{found.markers if found else 0} of {written} markers became visible"
            time.sleep(0.5)
        return found


@contextmanager
def running(folder: Path) -> Iterator[Bench]:
    """A MariaDB with empty tables, and capture of it; on an error the last lines of both jobs go to stderr."""
    jars.ensure(ROOT)
    base = mariadb.install(ROOT)
    with mariadb.MariaDB(folder / "mariadb", base) as server:
        Workload.create(server, NAME, _TABLES)
        bench = Bench(server, folder)
        try:
            bench.wait_for_bronze(0)
            yield bench
        except BaseException:
            for job in (bench.capture, bench.apply):
                print(*(text for _, text in (job.lines if job else [])[-30:]), sep="\n", file=sys.stderr)
            raise
        finally:
            bench.end()


def measure(seconds: float, latency_seconds: float) -> dict[str, Figures]:
    """By part its figures: seconds, or CPU seconds a second."""
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as bench:
        found["start"] = {"first_window": bench.start(_TABLES[:FIRST_TABLES])}
        assert bench.apply is not None
        bench.visible_at(bench.touch(_TABLES[FIRST_TABLES:]))
        found["quiet"] = bench.quiet(seconds)
        for tables, rate in LATENCIES.items():
            found[f"latency_{tables}"] = bench.latency(tables, rate, latency_seconds)
        bench.stop_apply()
        found["start"]["first_window_again"] = bench.start(_TABLES[:FIRST_TABLES])
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=60.0, help="of the quiet part")
    options.add_argument("--latency-seconds", type=float, default=15.0, help="per number of tables")
    given = options.parse_args()
    for part, figures in measure(given.seconds, given.latency_seconds).items():
        print(f"{part}: " + ", ".join(f"{name} {value:.3g}" for name, value in figures.items()), flush=True)


if __name__ == "__main__":
    main()
