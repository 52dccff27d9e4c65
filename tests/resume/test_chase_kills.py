"""Capture killed with SIGKILL while the slow chaser is on, at each point of reader, lander and chaser.

One lake: each kill leaves its value log and bronze to the next, so that later points are reached from the middle of
things. The oracle is the server's own binlog.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import assert_equals_binlog, binlog_end, bronze_segments, pipeline_text
from tests.support.nursery import GATE, Child, Nursery
from tests.support.servers import FreshDatabase
from tests.support.writing import writing
from tidegate.capture import status_file
from tidegate.local.server import Server

pytestmark = pytest.mark.server

SETTINGS = {
    "segment_bytes": 1 << 16,
    "land_bytes": 1 << 19,
    "queue_bytes": 1 << 20,
    "heartbeat_seconds": 0.5,
    "slow_seconds": 0.1,
    "hold_seconds": 0.5,
    "return_seconds": 0.3,
}
POINTS = (
    "capture_at_chase_start",
    "capture_in_first_catch_up",
    "capture_before_value_log:3",
    "capture_after_value_log_sync:2",
    "capture_after_bronze_file",
    "capture_after_bronze_commit",
    "capture_in_second_catch_up",
    "capture_at_chase_end",
)


def insert(cursor: Any, _number: int) -> None:
    """So often about a MB a second."""
    cursor.execute("INSERT INTO t (b) VALUES (%s)", (os.urandom(20_000),))


class Captures:
    """Capture processes over a lake that stalls as long as the file `stall` is in the gate's folder."""

    def __init__(self, nursery: Nursery, server: Server, folder: Path) -> None:
        self._nursery, self._folder = nursery, folder
        self.gate = folder / "gate"
        self.gate.mkdir()
        (folder / "pipeline.yaml").write_text(pipeline_text(server, folder / "lake", **SETTINGS))
        self._environment = {
            "AIRFLOW_CONN_ONE": f"mysql://{server.user}:{server.password}@{server.host}:{server.port}",
            GATE: str(self.gate),
        }

    def start(self, **environment: str) -> Child:
        folder = self._folder
        arguments = ["capture", str(folder / "pipeline.yaml"), "--state-dir", str(folder / "state"), "--run-for", "600"]
        arguments += [] if environment else ["--idle", "2"]
        return self._nursery.start(arguments, self._environment | environment, folder / "capture.log")

    def chases(self, child: Child) -> bool:
        """Wait until its chaser is on because the lake stalls; False when it ended before."""
        began, folder = time.time(), self._folder / "state" / "value_log" / "test" / "one"
        while child.wait(0.02) is None:
            told = status_file.read(folder) if folder.exists() else None
            if told is not None and told.written_at > began and told.state == "chasing" and told.behind_bytes > 0:
                return True
        return False

    def log(self) -> str:
        return (self._folder / "capture.log").read_text()[-2000:]


def test_killed_while_chasing_at_every_point_bronze_is_the_binlog_in_the_end(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY AUTO_INCREMENT, b BLOB)")
    with Nursery() as nursery:
        captures = Captures(nursery, mariadb, tmp_path)
        with writing(mariadb, database, insert):
            for point in POINTS:
                (captures.gate / "stall").touch()
                at_start = point == "capture_at_chase_start"
                (captures.gate / "arm").write_text(point)  # set when the stall is over: the chaser is on then
                child = captures.start(TIDEGATE_FAILPOINT=point if at_start else "none")
                chases = captures.chases(child)
                assert chases != at_start, f"{point}: {captures.log()}"
                (captures.gate / "stall").unlink()
                assert child.wait(300) == -signal.SIGKILL, f"{point}: {captures.log()}"
        (captures.gate / "arm").unlink()
        end = binlog_end(mariadb)
        assert captures.start().wait(600) == 0, captures.log()
    segments = bronze_segments(tmp_path / "lake")
    assert assert_equals_binlog(segments, mariadb) > 4 << 20
    assert (segments[-1].file, segments[-1].end_pos) >= end  # a server itself may add to its log
