"""Capture in processes of its own, forked from one that has imported everything, that a failpoint may kill.

In:  a server, a folder.
Out: `nursery`, a fixture: what is forked from, one per test session; CaptureProcess: runs of one pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import pipeline_text
from tests.support.nursery import Nursery
from tidegate.local.server import Server

SETTINGS: dict[str, Any] = {"segment_bytes": 4096, "land_seconds": 0.1, "heartbeat_seconds": 0.5}


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """One process that others are forked from."""
    with Nursery() as found:
        yield found


class CaptureProcess:
    """Capture of one pipeline, in processes of its own."""

    def __init__(self, nursery: Nursery, server: Server, folder: Path, dump: str) -> None:
        self._nursery, self._folder = nursery, folder
        self._file = folder / "pipeline.yaml"
        self._file.write_text(pipeline_text(server, folder / "lake", dump=dump, **SETTINGS))
        self._login = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}"

    def run(self, failpoint: str | None = None, *, idle: str = "1") -> int | None:
        """Until it is killed at the point, or, without one, quiet for so many seconds; its return code."""
        folder = self._folder
        arguments = ["capture", str(self._file), "--run-for", "300", "--state-dir", str(folder / "state")]
        arguments += [] if failpoint else ["--idle", idle]
        environment = {"AIRFLOW_CONN_ONE": self._login} | ({"TIDEGATE_FAILPOINT": failpoint} if failpoint else {})
        return self._nursery.start(arguments, environment, folder / "capture.log").wait(600)

    def runs_until_quiet(self, idle: str = "1") -> None:
        assert self.run(idle=idle) == 0, (self._folder / "capture.log").read_text()[-2000:]
