"""Lakes that many runs start from: capture has begun, before the workload was played.

In:  a server, an empty table on it.
Out: Origin: the schema baseline and a first heartbeat are in bronze; fork() copies it, and the copy captures on.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from benchmarks.workloads import DATABASE
from tests.kit.reached import position_of
from tidegate import config
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo, TlsMode
from tidegate.mysql.facts.server_facts import current_position

PIPELINE = "bench"
# A server that is told to be quick pauses no longer than this in mid-stream, and a busy disk's sync ends sooner: each
# run that ends too early is followed by another, whose memory is new.
_IDLE_SECONDS = 2.0
_HEARTBEAT_SECONDS = 1.0
_SECONDS_MAX = 900.0
_ATTEMPTS = 20


class BenchLake:
    """One lake of one pipeline; apply, capture, tables: what the pipeline file's sections of these names hold more."""

    def __init__(
        self,
        server: Server,
        folder: Path,
        table: str,
        apply: str = "mode: batch",
        capture: str = "",
        *,
        tables: str = "",
    ) -> None:
        self.server = server
        self.folder = folder
        self.table = table
        include = f"include: ['{DATABASE}.{table}']"
        text = (
            f"pipeline: {PIPELINE}\nlake: {{path: {folder / 'lake'}}}\n"
            f"sources: {{one: {{conn_id: bench_one, flavour: {server.flavour}, start: now}}}}\n"
            f"tables: {{{', '.join(filter(None, (include, tables)))}}}\n"
            f"capture: {{{', '.join(filter(None, (f'heartbeat_seconds: {_HEARTBEAT_SECONDS}', capture)))}}}\n"
            f"apply: {{{apply}}}\n"
        )
        self.pipeline = config.parse(text, where="bench.yaml")
        self.files = LakeFiles(str(folder / "lake"))

    @property
    def silver(self) -> Path:
        return self.folder / "lake" / "silver" / DATABASE / self.table

    def begin(self) -> None:
        """Capture until a first heartbeat is in bronze: from then on it knows where to go on."""
        for _ in range(_ATTEMPTS):
            binlog_run(self.pipeline, "one", connection_info(self.server), self.folder / "state").run(
                _SECONDS_MAX, idle_seconds=3 * _HEARTBEAT_SECONDS
            )
            if Bronze(self.files, "one").last_seq > 0:
                return
        raise AssertionError("no heartbeat of the server came into bronze")

    def capture(self) -> int:
        """Capture up to where the server is now; the bytes that came."""
        with self.server.connect() as connection, connection.cursor() as cursor:
            goal = current_position(cursor)
        done = 0
        for _ in range(_ATTEMPTS):
            run = binlog_run(self.pipeline, "one", connection_info(self.server), self.folder / "state")
            found = run.run(_SECONDS_MAX, idle_seconds=_IDLE_SECONDS)
            done += found.bytes
            if goal is None or position_of(found.position) >= goal:
                return done
        raise AssertionError(f"capture never came to {goal}")

    def fork(self, folder: Path, apply: str = "mode: batch", capture: str = "", *, tables: str = "") -> BenchLake:
        """A copy elsewhere. Data files are linked, since nobody changes them; logs and the value log are copied."""
        shutil.rmtree(folder, ignore_errors=True)
        for path in self.folder.rglob("*"):
            target = folder / path.relative_to(self.folder)
            if path.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            elif path.suffix == ".parquet" and "_delta_log" not in path.parts:
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(path, target)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)
        return BenchLake(self.server, folder, self.table, apply, capture, tables=tables)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def connection_info(server: Server) -> ConnectionInfo:
    """Plain TCP, as every peer's connection: encryption costs all of them the same."""
    return ConnectionInfo(server.host, server.port, server.user, server.password, tls=TlsMode.DISABLED)


def begun(server: Server, folder: Path, table: str) -> BenchLake:
    """An origin: capture of an empty table has begun, so that its baseline holds no rows."""
    lake = BenchLake(server, folder, table)
    lake.begin()
    return lake
