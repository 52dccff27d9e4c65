"""Clocks that jump: a session's, the source's, and this machine's. Order, resolved_ts and figures stay sound.

In:  a real server; SET TIMESTAMP for its sessions; its clock as capture reads it, and this machine's, are put elsewhere
     in this process.
Out: bronze whose commit_ts only grow, whose resolved_ts no later transaction is below, in which nothing is dated in the
     future, and figures that make sense.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import (
    Background,
    assert_equals_binlog,
    binlog_end,
    bronze_segments,
    capture_run,
    has_reached,
    wait_for_bronze,
)
from tests.support.servers import FreshDatabase
from tidegate.commit_ts import physical_ms
from tidegate.limits import CLOCK_SLACK_SECONDS
from tidegate.local.server import Server
from tidegate.mysql.capturing import second_connection
from tidegate.tables import SegmentKind

pytestmark = pytest.mark.server

DAY_MS = 86_400_000


class Told(Background):
    """Keeps what progress said."""

    def __init__(self, run: Any) -> None:
        self.told: list[Any] = []
        super().__init__(run)

    def _note(self, progress: Any) -> None:
        self.told.append(progress)


def captured_all(server: Server, lake: Path) -> None:
    end = binlog_end(server)
    wait_for_bronze(lake, has_reached(end))


def test_a_clock_that_jumps_dates_nothing_in_the_future_or_behind_a_resolved_ts(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, lake, jump_ms = fresh_database(any_server), tmp_path / "lake", 0
    read, machine = second_connection.read_clock_ms, time.time
    told_by: list[int] = []  # of each answer, how far its clock had jumped

    def clock_there(cursor: Any) -> int:
        jumped = jump_ms
        said = read(cursor) + jumped
        told_by.append(jumped)
        return said

    monkeypatch.setattr(second_connection, "read_clock_ms", clock_there)
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY AUTO_INCREMENT)")
    any_server.query("SET GLOBAL binlog_expire_logs_seconds = 864000")
    insert = f"INSERT INTO `{database}`.t VALUES ()"
    with Told(capture_run(any_server, lake)) as capture:
        wait_for_bronze(lake, bool)
        for jump_ms in (0, -DAY_MS, 0, DAY_MS, 0):
            # The second answer: the first may not have been taken yet. What comes then is dated by that clock.
            answers, deadline = len(told_by), time.monotonic() + 300
            while told_by[answers:].count(jump_ms) < 2:
                assert time.monotonic() < deadline, "capture doesn't ask what time it is"
                time.sleep(0.05)
            any_server.query(insert)
            captured_all(any_server, lake)
        monkeypatch.setattr(time, "time", lambda: machine() + 7200)
        with any_server.connect() as connection, connection.cursor() as cursor:
            for moment in ("1000000000", "1900000000", "DEFAULT"):
                cursor.execute(f"SET TIMESTAMP = {moment}")
                cursor.execute(insert)
        captured_all(any_server, lake)
        count = len(bronze_segments(lake))
        wait_for_bronze(lake, lambda segments: len(segments) > count + 1)  # heartbeats go on
    monkeypatch.setattr(time, "time", machine)
    segments = bronze_segments(lake)
    assert_equals_binlog(segments, any_server)  # resolved_ts never falls, and each commit_ts lies above the one before
    assert sum(segment.txn_count for segment in segments) == 8
    ends = [segment.max_commit_ts for segment in segments if segment.kind is SegmentKind.BINLOG]
    assert ends == sorted(set(ends))
    for segment in segments:
        assert (
            physical_ms(segment.resolved_ts)
            < segment.captured_at.timestamp() * 1000 + 1000 * CLOCK_SLACK_SECONDS + 1000
        )
    lowered = sum(segment.ceiling_ms > 0 for segment in segments)
    assert lowered == capture.told[-1].status.lowered > 0
    assert all(0 <= progress.lag_seconds < DAY_MS / 1000 + 600 for progress in capture.told)
    assert capture.told[-1].lag_seconds < 600


def test_the_machines_clock_isnt_taken_for_a_lag(
    mariadb: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, machine = tmp_path / "lake", time.time
    with Told(capture_run(mariadb, lake)) as capture:
        wait_for_bronze(lake, bool)
        monkeypatch.setattr(time, "time", lambda: machine() + 7200)
        wait_for_bronze(lake, lambda segments: len(segments) > 5)
        time.sleep(1.2)
        monkeypatch.setattr(time, "time", machine)
    assert capture.told
    assert max(progress.lag_seconds for progress in capture.told) < 3600
