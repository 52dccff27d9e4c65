"""Many tiny tables that were there before capture, snapshotted as a pipeline does by itself: CPU, memory and time.

In:  how many tables of three rows each; MariaDB; capture, apply and the snapshot reader as processes of their own.
Out: CPU milliseconds per table by process, from the start of all three until every table is whole; the most memory that
     a process of each role has had; then CPU seconds a second by process while one table changes.

`python -m benchmarks.many_snapshots 1000`: minutes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.bench_quiet import ROOT
from benchmarks.micro_batch import Job, Workload, environment, pipeline_file
from tidegate.lake.files import LakeFiles
from tidegate.local import jars, mariadb
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.requests import Told

NAME: Final = "many"
_RUN_SECONDS: Final = 7200.0
_LOOK_SECONDS: Final = 2.0
_SETTLE_SECONDS: Final = 8.0
_QUIET_SECONDS: Final = 20.0
_QUIET_RATE: Final = 20

Figures = dict[str, float]


def window(count: int, seconds_max: float) -> Figures:
    """seconds; by process CPU milliseconds a table (cpu_), MB (_mb), CPU seconds a second at rest (quiet_)."""
    jars.ensure(ROOT)
    base = mariadb.install(ROOT)
    with tempfile.TemporaryDirectory() as folder, mariadb.MariaDB(Path(folder) / "mariadb", base) as server:
        _create(server, count)
        file, there = pipeline_file(Path(folder), NAME), environment(ROOT, server, NAME)
        told, started = Told(LakeFiles(f"{folder}/lake"), NAME), time.monotonic()
        jobs = [Job("capture", file, there, _RUN_SECONDS), Job("apply", file, there, _RUN_SECONDS)]
        jobs.append(Job("snapshot run --follow", file, there, None))
        try:
            done = _wait(jobs, told, count, started + seconds_max)
            took, spent = time.monotonic() - started, _cpu(jobs)
            found = {"seconds": took, "done": done}
            found |= {f"cpu_{role}": 1000 * cpu / max(done, 1) for role, cpu in sorted(spent.items())}
            found["cpu_all"] = sum(value for name, value in found.items() if name.startswith("cpu_"))
            found |= {f"quiet_{role}": cpu for role, cpu in _quiet(server, jobs).items()}
            for job in jobs:
                found |= {f"{role}_mb": size for role, size in sorted(job.memory_mb().items())}
        except BaseException:
            for job in jobs:
                print(job.name, *(text for _, text in job.lines[-30:]), sep="\n", file=sys.stderr)
            raise
        finally:
            for job in jobs:
                job.end()
    return found


def _create(server: Server, count: int) -> None:
    server.query("SET GLOBAL innodb_flush_log_at_trx_commit = 0")  # they are there sooner
    server.query(f"CREATE DATABASE {NAME}")
    with server.connect(NAME) as connection, connection.cursor() as cursor:
        for number in range(count):
            cursor.execute(f"CREATE TABLE t{number} (id BIGINT PRIMARY KEY, name VARCHAR(60), at DATETIME(6))")
            cursor.execute(f"INSERT INTO t{number} VALUES (1, 'a', NOW(6)), (2, 'b', NOW(6)), (3, 'c', NOW(6))")
        server.query("RESET MASTER")
    Workload.create(server, NAME, ["busy"])


def _wait(jobs: list[Job], told: Told, count: int, end: float) -> int:
    """Until all are whole, or the time is over; how many are."""
    done = 0
    while done < count and time.monotonic() < end:
        for job in jobs:
            job.check_alive()
        time.sleep(_LOOK_SECONDS)
        done = sum(one.state is SnapshotState.DONE for one in told.tables())
        failed = [one for one in told.tables() if one.state is SnapshotState.FAILED]
        assert not failed, failed[:3]
    return done


def _cpu(jobs: list[Job]) -> Figures:
    found: Figures = {}
    for job in jobs:
        for role, spent in job.cpu().items():
            found[role] = found.get(role, 0.0) + spent
    return found


def _quiet(server: Server, jobs: list[Job]) -> Figures:
    with Workload(server, NAME, _QUIET_RATE, ["busy"]):
        time.sleep(_SETTLE_SECONDS)
        before, started = _cpu(jobs), time.monotonic()
        time.sleep(_QUIET_SECONDS)
        after, took = _cpu(jobs), time.monotonic() - started
    return {role: (after[role] - before.get(role, 0.0)) / took for role in sorted(after)}


if __name__ == "__main__":
    seconds_max = float(sys.argv[2]) if len(sys.argv) > 2 else _RUN_SECONDS
    print(*(f"{name} {value:.4g}" for name, value in window(int(sys.argv[1]), seconds_max).items()), sep="\n")
