"""Capture against `mysqlbinlog --raw`, per CPU second of the client, in one run on one MySQL 9 server.

In:  MySQL 9 (tests/support/mysql9.py fetches it) with its mysqlbinlog; --megabytes of binlog per workload.
Out: one line per workload and road: MB, CPU seconds, MB per CPU-s, and the ratio to mysqlbinlog.

Workloads: A wide rows, thousands per transaction; C the same table in single-row transactions. Roads:
segments (socket -> verified segments, dropped), bronze (segments -> value log with fdatasync -> bronze).
Plain TCP on both sides. Targets (FACTS): segments 2x on A and 8x on C; bronze 200 MB per CPU-s.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "include")]

from tests.support import mysql9  # noqa: E402
from tidegate.capture.checkpoint import Checkpoint  # noqa: E402
from tidegate.capture.run import CaptureRun  # noqa: E402
from tidegate.capture.segment import Cutter, CutterSettings  # noqa: E402
from tidegate.config import DumpMode, Flavour, parse  # noqa: E402
from tidegate.demo.server import Server  # noqa: E402
from tidegate.position import Position  # noqa: E402
from tidegate.wire.connection import ConnectionInfo, TlsMode, connect  # noqa: E402
from tidegate.wire.dump_stream import DumpRequest, DumpStream  # noqa: E402
from tidegate.wire.source import read_facts  # noqa: E402

ROW = """(%s, %s, %s, %s, 12345.6789, '2026-01-02 03:04:05.678901', 1, 'a note of some length',
 '{"sku": 12345, "qty": 3}')"""
TABLE = """CREATE TABLE {} (id BIGINT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL,
 amount DECIMAL(18,4), ts DATETIME(6) NOT NULL, flag TINYINT NOT NULL, note VARCHAR(255), j JSON)"""
PROCEDURE = """CREATE PROCEDURE one_by_one(i INT, n INT) BEGIN WHILE i < n DO
 INSERT INTO C SELECT 10000000 + i, k, c, pad, amount, ts, flag, note, j FROM A WHERE id = 7; SET i = i + 1;
END WHILE; END"""


def cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def fill(server: Server, megabytes: int) -> dict[str, str]:
    """Write both workloads, each into a binlog file of its own; workload -> file."""
    files = {}
    server.query("CREATE DATABASE IF NOT EXISTS bench")
    with server.connect("bench") as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL max_binlog_size = 1073741824")
        cursor.execute("SET GLOBAL sync_binlog = 0")
        cursor.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
        cursor.execute(PROCEDURE)
        for name, rows_each in (("A", 2000), ("C", 1)):
            cursor.execute(TABLE.format(name))
            cursor.execute("FLUSH BINARY LOGS")
            number = 0
            while True:
                if rows_each > 1:
                    values = [(number + n, n, f"{n:0120d}", f"{number:060d}") for n in range(rows_each)]
                    cursor.executemany(f"INSERT INTO {name} VALUES {ROW}", values)
                    number += rows_each
                else:
                    cursor.execute("CALL one_by_one(%s, %s)", (number, number + 10_000))
                    number += 10_000
                cursor.execute("SHOW BINARY LOG STATUS")
                file, at = cursor.fetchone()[:2]
                if at >= megabytes << 20 or (rows_each == 1 and number >= 60_000):
                    break
            files[name] = str(file)
            cursor.execute("FLUSH BINARY LOGS")
    return files


def mysqlbinlog(base: Path, server: Server, file: str) -> tuple[float, float]:
    """(MB, CPU seconds) of mysqlbinlog --raw for one file."""
    with tempfile.TemporaryDirectory() as folder:
        before = cpu(resource.RUSAGE_CHILDREN)
        environment = dict(os.environ, MYSQL_PWD=server.password)
        arguments = [str(base / "bin" / "mysqlbinlog"), "--no-defaults", "--read-from-remote-server", "--raw"]
        arguments += ["-h", server.host, "-P", str(server.port), "-u", server.user, "--ssl-mode=DISABLED"]
        arguments += ["--get-server-public-key", f"--result-file={folder}/", file]
        subprocess.run(arguments, check=True, env=environment)
        size = (Path(folder) / file).stat().st_size
        return size / 1e6, cpu(resource.RUSAGE_CHILDREN) - before


def segments(info: ConnectionInfo, file: str, size: int) -> tuple[float, float]:
    """(MB, CPU seconds) from the socket to segments."""
    facts = read_facts(connect(info), info)
    request = DumpRequest(Flavour.MYSQL, DumpMode.POSITION, 4_000_000_001, "", 1.0, position=Position.of(file, 4))
    settings = CutterSettings("one", Flavour.MYSQL, DumpMode.POSITION, 8 << 20, lambda *_: [])
    cutter = Cutter(settings, Checkpoint.start(file=file), facts.server_id, facts.server_uuid)
    stream = DumpStream.open(info, request)
    before, done = cpu(resource.RUSAGE_SELF), 0
    while done + cutter.waiting_bytes < size - 200:
        stream.receive(cutter.state, 1.0)
        for segment in cutter.advance(stream):
            done += len(segment.payload) if segment.file == file else 0
            if segment.file != file:
                break
    used = cpu(resource.RUSAGE_SELF) - before
    stream.close()
    return (done + cutter.waiting_bytes) / 1e6, used


def bronze(info: ConnectionInfo, file: str, size: int, folder: Path) -> tuple[float, float]:
    """(MB, CPU seconds) from the socket to bronze, value log synced."""
    shutil.rmtree(folder, ignore_errors=True)
    text = f"""
pipeline: bench
lake: {{path: {folder}/lake}}
sources: {{one: {{conn_id: one, flavour: mysql, dump: position}}}}
tables: {{include: ['*.*']}}
"""
    run = CaptureRun(parse(text, where="bench"), "one", info, folder / "state", on_first_start=lambda *_: None)
    from tidegate.capture import run as module

    module.first_checkpoint = lambda *_: Checkpoint.start(file=file)  # type: ignore[assignment]
    import threading

    stop = threading.Event()

    def tell(progress: Any) -> None:
        if progress.bytes >= size - 200:
            stop.set()

    before = cpu(resource.RUSAGE_SELF)
    result = run.run(300, stop=stop, on_progress=tell)
    used = cpu(resource.RUSAGE_SELF) - before
    shutil.rmtree(folder, ignore_errors=True)
    return result.bytes / 1e6, used


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=300)
    chosen = options.parse_args()
    base = mysql9.install(ROOT)
    with tempfile.TemporaryDirectory() as folder, mysql9.MySQL9(Path(folder) / "server", base) as server:
        info = ConnectionInfo(server.host, server.port, server.user, server.password, tls=TlsMode.DISABLED)
        files = fill(server, chosen.megabytes)
        for name, file in files.items():
            size = (server.data / "data" / file).stat().st_size
            segments(info, file, size)  # compile, warm the page cache
            runs = [
                ("mysqlbinlog --raw", lambda f=file: mysqlbinlog(base, server, f)),
                ("segments", lambda f=file, s=size: segments(info, f, s)),
                ("bronze", lambda f=file, s=size: bronze(info, f, s, Path(folder) / "lake")),
            ]
            reference = 0.0
            for road, run in runs:
                started = time.monotonic()
                megabytes, used = run()
                speed = megabytes / used
                reference = reference or speed
                print(
                    f"{name} {road:18s} {megabytes:7.0f} MB {used:6.2f} CPU-s {speed:7.0f} MB/CPU-s "
                    f"{speed / reference:5.1f}x  {time.monotonic() - started:.1f} s"
                )


if __name__ == "__main__":
    main()
