"""Many XA branches over a run: some are in doubt all the time, and neither memory nor windows grow with all that were.

In:  a real server that keeps prepared branches without their session (MySQL 9), capture and apply in processes of their
     own. In `make test-long` 100,000 branches, of which up to 2,000 are open at a time.
Out: silver has the rows of those that were committed, and of no others; nothing is open that was answered; a line with
     the most memory of each process and the seconds of each window.
"""

from __future__ import annotations

import signal
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from pymysql.constants import CLIENT
from pyspark.sql import SparkSession

from tests.support import driver
from tests.support.captures import binlog_end
from tests.support.nursery import Nursery
from tests.support.own_server import own_server_or_skip
from tests.support.readers import by_duckdb
from tests.support.seeds import LONG, many
from tidegate import tables
from tidegate.lake import control
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.tables.prewrites_table import PrewriteState

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(7200)]

BRANCHES: Final = many(1200, 100_000)
WINDOWS: Final = many(4, 20)
OPEN_MAX: Final = many(200, 2_000)
_PIECE: Final = 50  # statements of so many branches go to the server together
_SECONDS_MAX: Final = 1800.0
# Beyond what a process takes that reads one small window.
CAPTURE_MIB_MAX: Final = 450
APPLY_MIB_MAX: Final = 600
_OPTIONS: Final = ("--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=128M")


class Branches:
    """Prepares and answers them; committed: ids of rows that are there for good."""

    def __init__(self, server: Server) -> None:
        self.open: deque[int] = deque()
        self.committed = self.made = self.most = 0
        self._connection = server.connect("many", client_flag=CLIENT.MULTI_STATEMENTS)

    def work(self, count: int) -> None:
        """So many more are prepared, and as many are answered, as soon as OPEN_MAX are open."""
        for first in range(self.made, self.made + count, _PIECE):
            names = range(first, min(first + _PIECE, self.made + count))
            self._send(
                f"XA START 'b{at}'; INSERT INTO t VALUES ({at}, 'of {at}'); XA END 'b{at}'; XA PREPARE 'b{at}'"
                for at in names
            )
            self.open.extend(names)
            self.most = max(self.most, len(self.open))
            if len(self.open) > OPEN_MAX - _PIECE:
                self.answer(_PIECE)
        self.made += count

    def answer(self, count: int) -> None:
        """The oldest ones; each third is rolled back."""
        ready = [self.open.popleft() for _ in range(min(count, len(self.open)))]
        self._send(f"XA {'ROLLBACK' if at % 3 == 0 else 'COMMIT'} 'b{at}'" for at in ready)
        self.committed += sum(at % 3 > 0 for at in ready)

    def _send(self, statements: Iterator[str]) -> None:
        if not (text := "; ".join(statements)):
            return
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            while cursor.nextset():
                pass

    def close(self) -> None:
        self._connection.close()


@contextmanager
def peak(pid: int) -> Iterator[Callable[[], int]]:
    """The most MiB that a process had until the block's end; it may end before."""
    seen, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                seen[0] = max(seen[0], *(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM")), 0)
            except OSError:
                return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield lambda: seen[0]
    finally:
        over.set()
        thread.join()


def _file(server: Server, folder: Path) -> Path:
    file = folder / "many.yaml"
    file.write_text(
        f"pipeline: many\nlake: {{path: {folder / 'lake'}}}\n"
        "sources: {one: {conn_id: one, flavour: mysql, start: now}}\ntables: {include: ['many.*']}\n"
        "capture: {land_seconds: 1, heartbeat_seconds: 1, segment_bytes: 1048576}\napply: {mode: batch}\n"
    )
    return file


def _captured(server: Server, lake: LakeFiles) -> None:
    goal, end = binlog_end(server), time.monotonic() + _SECONDS_MAX
    while True:
        last = next(iter(Bronze(lake, "one").newest_first()), None)
        if last is not None and (last.file, last.end_pos) >= goal:
            return
        assert time.monotonic() < end, f"bronze has {last and last.end}, the server is at {goal}"
        time.sleep(0.2)


def _begun(lake: LakeFiles) -> None:
    """Capture knows where it began: all that comes is in the log behind that."""
    end = time.monotonic() + _SECONDS_MAX
    while not Bronze(lake, "one").last_seq:
        assert time.monotonic() < end, "capture doesn't begin"
        time.sleep(0.2)


def _applied(spark: SparkSession, file: Path) -> tuple[float, int]:
    """Seconds and MiB of one application that applies all there is."""
    began = time.monotonic()
    process = driver.started(spark, file, "none", log=file.with_name("apply.log"))
    with peak(process.pid) as mebibytes:
        process.join(_SECONDS_MAX)
    assert process.exitcode == 0, file.with_name("apply.log").read_text()[-2000:]
    return time.monotonic() - began, mebibytes()


def _ids(lake: LakeFiles) -> set[int]:
    return set(by_duckdb(lake.uri(tables.silver_path("many", "t")))["id"].to_pylist())


def test_branches_in_doubt_are_bounded_in_memory_and_windows_do_not_grow_with_all_that_were(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = LakeFiles(str(tmp_path / "lake"))
    with own_server_or_skip("mysql9", tmp_path / "server", options=_OPTIONS) as server, Nursery() as nursery:
        server.query(f"GRANT XA_RECOVER_ADMIN ON *.* TO '{server.user}'@'%'")
        server.query("CREATE DATABASE many")
        file = _file(server, tmp_path)
        words = ["capture", str(file), "--run-for", "86400", "--state-dir", str(tmp_path / "state")]
        login = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}"
        child = nursery.start(words, {"AIRFLOW_CONN_ONE": login}, tmp_path / "capture.log")
        with peak(child.pid) as capture_mebibytes:
            _begun(lake)
            server.query("CREATE TABLE many.t (id INT PRIMARY KEY, a VARCHAR(30))")
            branches, windows = Branches(server), list[tuple[float, int]]()
            for _ in range(WINDOWS):
                branches.work(BRANCHES // WINDOWS)
                _captured(server, lake)
                windows.append(_applied(spark, file))
                print(f"{branches.made} branches: {windows[-1][0]:.1f} s, {windows[-1][1]} MiB", flush=True)
            while branches.open:
                branches.answer(_PIECE)
            branches.close()
            _captured(server, lake)
            windows.append(_applied(spark, file))
            assert child.returncode is None, (tmp_path / "capture.log").read_text()[-2000:]
            child.send(signal.SIGTERM)
            child.wait(60)
            most = {"capture": capture_mebibytes(), "apply": max(size for _, size in windows)}
        there = {row[0] for row in server.query("SELECT id FROM many.t")}
        assert branches.most <= OPEN_MAX
        assert len(there) == branches.committed == sum(at % 3 > 0 for at in range(branches.made))
        assert _ids(lake) == there
        assert not _open(lake)
    seconds = [f"{one:.1f}" for one, _ in windows]
    print(
        f"{branches.made} branches, {branches.most} open at most: MiB {most}, seconds of windows {', '.join(seconds)}"
    )
    assert most["capture"] <= CAPTURE_MIB_MAX
    assert most["apply"] <= APPLY_MIB_MAX
    if LONG:  # a machine that does other things, too, makes single windows slow
        half = len(windows) // 2
        early, late = (statistics.median(one for one, _ in part) for part in (windows[1:half], windows[half:-1]))
        assert late < 2 * early, f"windows get slower: {seconds}"


def _open(lake: LakeFiles) -> list[Any]:
    rows = control.newest(lake, tables.PREWRITES, by=tables.PREWRITES.key, order=["answer_ts", "recorded_at"])
    over = (PrewriteState.COMMITTED, PrewriteState.ROLLED_BACK)
    return [row["id"] for row in rows.to_pylist() if row["state"] not in over]
