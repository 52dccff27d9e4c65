"""A micro-batch pipeline as Airflow would run it: capture and apply as processes of their own, a source that changes.

In:  a server, a folder, how many tables.
Out: Job: a process, the lines it wrote and when, the CPU seconds of each process below it. Workload: row changes at a
     steady rate.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from tidegate import spark_settings
from tidegate.local.server import Server
from tidegate.tables import MARKER

TICK_SECONDS: Final = 0.1
_STOP_SECONDS_MAX: Final = 60.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
# Whose CPU it is, by a word of the command line; the first that fits.
_ROLES: Final = (
    ("org.apache.spark.deploy.SparkSubmit", "jvm"),
    ("spark_jobs.session.worker_daemon", "workers"),
    ("spark_jobs/apply.py", "driver"),
    ("benchmarks/timed_apply.py", "driver"),
)
COMMAND: Final = "from tidegate.cli.main import run; run()"

_PIPELINE: Final = """
pipeline: {name}
lake: {{path: {folder}/lake}}
sources: {{one: {{conn_id: {name}, flavour: mariadb}}}}
tables: {{include: [{include}]}}
capture: {{heartbeat_seconds: 1, value_log_path: {folder}/value_log}}
apply: {{mode: micro_batch, driver_memory: 1g{apply}}}
"""


def pipeline_file(folder: Path, name: str, apply: str = "", include: Sequence[str] = ("*",)) -> Path:
    """Of tables in database `name`, and of markers. apply: more keys of that section, each behind a comma."""
    file = folder / f"{name}.yaml"
    patterns = ", ".join(f'"{pattern}"' for pattern in (*(f"{name}.{table}" for table in include), MARKER))
    file.write_text(_PIPELINE.format(folder=folder, name=name, include=patterns, apply=apply))
    return file


def environment(root: Path, server: Server, name: str) -> dict[str, str]:
    """What capture and apply need to know of this machine and the server."""
    uri = f"mysql://{quote(server.user)}:{quote(server.password)}@{server.host}:{server.port}/"
    found = os.environ | spark_settings.driver_environment(root) | {f"AIRFLOW_CONN_{name.upper()}": uri}
    found["PYTHONPATH"] = f"{root / 'include'}{os.pathsep}{root}"
    return found


class Job:
    """`tidegate capture` or `tidegate apply` in a session of its own.

    lines: (monotonic seconds, text), as they came.
    """

    def __init__(
        self, job: str, file: Path, environment: dict[str, str], seconds: float | None, command: str = COMMAND
    ) -> None:
        """job: the command's words. seconds: it ends by itself then; None: when it is ended. command: Python that
        runs tidegate's command line.
        """
        self.name = job.partition(" ")[0]
        self.lines: list[tuple[float, str]] = []
        self.started = time.monotonic()
        until = () if seconds is None else ("--run-for", str(int(seconds)))
        self._process = subprocess.Popen(
            [sys.executable, "-c", command, *job.split(), str(file), *until],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append((time.monotonic(), line.rstrip()))

    @property
    def pid(self) -> int:
        return self._process.pid

    def check_alive(self) -> None:
        """Raises AssertionError when it has ended."""
        if self._process.poll() is not None:
            told = "\n".join(text for _, text in self.lines[-20:])
            raise AssertionError(f"{self.name} ended with {self._process.returncode}: {told}")

    def cpu(self) -> dict[str, float]:
        """CPU seconds by role (the job itself: its name); under `forked` those of processes that ended."""
        found: dict[str, float] = {}
        for _, role, (user, system, *ended) in self._below():
            found[role] = found.get(role, 0.0) + user + system
            found["forked"] = found.get("forked", 0.0) + sum(ended)
        return found

    def memory_mb(self) -> dict[str, float]:
        """The most resident memory that a process of each role has had so far."""
        found: dict[str, float] = {}
        for pid, role, _ in self._below():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            if "VmHWM:" in status:
                found[role] = max(found.get(role, 0.0), int(status.partition("VmHWM:")[2].split()[0]) / 1000)
        return found

    def _below(self) -> list[tuple[int, str, list[float]]]:
        """The job and all that it started: pid, role, CPU seconds.

        /proc/PID/stat: field 4 is the parent, 14 and 15 are own ticks, 16 and 17 those of ended children (proc(5)).
        """
        parents, there = {}, []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # it ended while we looked
                continue
            pid = int(entry.name)
            parents[pid] = int(fields[1])
            role = next((role for word, role in _ROLES if word in command), "other")
            spent = [int(ticks) / _TICKS for ticks in fields[11:15]]
            there.append((pid, self.name if pid == self._process.pid else role, spent))
        return [one for one in there if self._is_below(one[0], parents)]

    def _is_below(self, pid: int, parents: dict[int, int]) -> bool:
        while pid > 1:
            if pid == self._process.pid:
                return True
            pid = parents.get(pid, 0)
        return False

    def end(self) -> None:
        """End the process and all that it started."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, sign)
                self._process.wait(_STOP_SECONDS_MAX)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        self._process.wait()


class Workload:
    """Row changes at a steady rate, from a thread: in ten, six inserts, three updates, one delete.

    tables: names of tables that `create` made, taken by turns, `together` of them in each tick's transaction. done:
    changes so far.
    """

    def __init__(self, server: Server, database: str, rate: int, tables: list[str], together: int = 1) -> None:
        self._server = server
        self._database = database
        self._rate = rate
        self._tables = tables
        self._together = together
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.done = 0

    @staticmethod
    def create(server: Server, database: str, tables: list[str]) -> None:
        server.query(f"CREATE DATABASE IF NOT EXISTS {database}")
        for table in tables:
            server.query(
                f"CREATE TABLE {database}.{table} (id BIGINT PRIMARY KEY, name VARCHAR(60), amount DECIMAL(12,2),"
                " at DATETIME(6), note VARCHAR(200))"
            )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        first = int(time.time() * 1000) * 1000
        next_id = dict.fromkeys(self._tables, first)
        with self._server.connect(self._database, autocommit=False) as connection, connection.cursor() as cursor:
            started, tick, turn = time.monotonic(), 0, 0
            while not self._stop.wait(max(0.0, started + tick * TICK_SECONDS - time.monotonic())):
                tick += 1
                for left in range(self._together, 0, -1):
                    table = self._tables[turn % len(self._tables)]
                    turn += 1
                    # What is owed since the start, so that a late tick makes up for it.
                    count = -(-(int(self._rate * tick * TICK_SECONDS) - self.done) // left)
                    next_id[table] = change(cursor, table, next_id[table], count)
                    self.done += count
                connection.commit()


def change(cursor: Any, table: str, first: int, count: int) -> int:
    """Change this many rows; what is inserted has ids from `first` on. Returns the next free id."""
    deletes, updates = count // 10, count * 3 // 10
    inserts = count - deletes - updates
    rows = [(first + n, f"name {n}", n * 1.25, "2026-02-03 04:05:06.789", "x" * 100) for n in range(inserts)]
    if rows:
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s)", rows)
    if updates:
        cursor.execute(f"UPDATE {table} SET amount = amount + 1 WHERE id < {first} ORDER BY id DESC LIMIT {updates}")
    if deletes:
        cursor.execute(f"DELETE FROM {table} WHERE id < {first} ORDER BY id DESC LIMIT {deletes}")
    return first + inserts
