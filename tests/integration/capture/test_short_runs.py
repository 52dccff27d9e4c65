"""Runs that end soon after their source went quiet: the proof of its quiet comes first, and all that is to be read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.capture_process import CaptureProcess
from tests.support.captures import bronze_segments
from tests.support.file_capture import SEGMENT_BYTES, file_run
from tests.support.file_source import FileReader, FileSource
from tests.support.nursery import Nursery
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.tables import SegmentKind

_SKIP_SECONDS = 2.5


@pytest.mark.server
def test_each_run_of_the_command_moves_the_resolved_ts_of_a_quiet_source(
    any_server: Server, fresh_database: FreshDatabase, nursery: Nursery, tmp_path: Path
) -> None:
    """Nothing is proved within its --idle, and on a MySQL by GTID little within a second: such runs moved nothing."""
    database = fresh_database(any_server)
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    capture = CaptureProcess(nursery, any_server, tmp_path, "gtid")
    capture.runs_until_quiet()
    for _ in range(2):
        before = bronze_segments(tmp_path / "lake")[-1]
        capture.runs_until_quiet(idle="0.2")
        after = bronze_segments(tmp_path / "lake")[-1]
        assert after.kind is SegmentKind.HEARTBEAT
        assert after.resolved_ts > before.resolved_ts


class _Skipping(FileReader):
    """The source passes over what is captured for a while, and says now and then that it isn't at the end."""

    def __init__(self, source: FileSource) -> None:
        super().__init__(source)
        self._until = time.monotonic() + _SKIP_SECONDS
        self._said = 0.0

    def receive(self, timeout_seconds: float) -> list:  # type: ignore[type-arg]
        now = time.monotonic()
        self.sends_on = now < self._until and now - self._said > 0.5
        self._said = now if self.sends_on else self._said
        if now < self._until:
            time.sleep(timeout_seconds)
            return []
        return super().receive(timeout_seconds)


class _SkippingSource(FileSource):
    def connect(self) -> FileReader:
        return _Skipping(self)


def test_a_run_does_not_end_while_its_source_passes_over_what_is_captured(tmp_path: Path) -> None:
    FileSource(tmp_path / "lines", SEGMENT_BYTES).write(*(f"transaction {number}" for number in range(20)))
    found = file_run(tmp_path, lambda: _SkippingSource(tmp_path / "lines", SEGMENT_BYTES)).run(300, idle_seconds=1.0)
    assert found.reason == "idle"
    assert found.position == f"lines:{(tmp_path / 'lines').stat().st_size}"
