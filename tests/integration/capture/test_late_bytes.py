"""Bytes that come late move no commit's time: a heartbeat among them says nothing of the clock read meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import Background, bronze_segments, capture_run, capture_until_quiet, wait_for_bronze
from tests.support.servers import FreshDatabase
from tidegate.commit_ts import physical_ms
from tidegate.local.server import Server
from tidegate.mysql.stream.dump_stream import DumpStream

pytestmark = pytest.mark.server
_LATE_SECONDS = 4.0
_FEW_BYTES = 16  # less than any event: no turn of capture's loop sees two


@contextmanager
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stream's bytes wait in its socket for a while, then come a few at a time. The second connection answers."""
    receive, into = DumpStream.receive, DumpStream._into

    begun: list[float] = []

    def later(stream: DumpStream, state: Any, timeout: float) -> int:
        begun.append(time.monotonic())
        if begun[-1] < begun[0] + _LATE_SECONDS:
            time.sleep(timeout)
            return 0
        return receive(stream, state, timeout)

    def few(stream: DumpStream, view: memoryview, timeout: float) -> int:
        return into(stream, view[:_FEW_BYTES], timeout)

    with monkeypatch.context() as patched:
        patched.setattr(DumpStream, "_into", few)
        patched.setattr(DumpStream, "_more_records", lambda _stream, _view: 0)
        patched.setattr(DumpStream, "receive", later)
        yield


def inserted_ms(server: Server, database: str, number: int) -> int:
    """A row is committed; Unix milliseconds of the server after it."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (%s)", (number,))
        cursor.execute("SELECT UNIX_TIMESTAMP(NOW(6))")
        return int(float(cursor.fetchone()[0]) * 1000)


def last_commit_ms(lake: Path) -> int:
    return max(physical_ms(segment.max_commit_ts) for segment in bronze_segments(lake) if segment.txn_count)


def test_a_server_that_passes_over_captured_events_first_is_not_quiet(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MySQL sends a heartbeat right before the first new event; for a long file that takes longer than one wait."""
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    capture_until_quiet(any_server, lake)
    at_ms = inserted_ms(any_server, database, 1)
    time.sleep(_LATE_SECONDS)
    before = len(bronze_segments(lake))
    with late(monkeypatch), Background(capture_run(any_server, lake)) as capture:
        wait_for_bronze(lake, lambda s: capture.error is not None or any(part.txn_count for part in s[before:]))
    assert abs(last_commit_ms(lake) - at_ms) < 1_500


def test_heartbeats_and_a_commit_that_wait_on_the_way(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    capture_until_quiet(any_server, lake)
    before = len(bronze_segments(lake))
    with Background(capture_run(any_server, lake)) as capture:
        wait_for_bronze(lake, lambda s: capture.error is not None or len(s) > before + 1)
        with late(monkeypatch):
            time.sleep(0.8)  # one heartbeat waits already
            at_ms = inserted_ms(any_server, database, 1)
            heard = len(bronze_segments(lake))
            wait_for_bronze(lake, lambda s: capture.error is not None or any(part.txn_count for part in s[heard:]))
    assert capture.error is None, capture.error
    assert abs(last_commit_ms(lake) - at_ms) < 1_500
