"""Capture of a file_source, in this process or as a program of its own that a failpoint may kill.

In:  a folder: the source's file `lines` in it, its lake, its value log.
Out: bronze; killed_capture(): the exit code of a process of its own, which runs until it is quiet or killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.file_source import FileSource
from tests.support.forks import exit_code
from tidegate.capture.run import CaptureRun
from tidegate.config import parse
from tidegate.lake.files import LakeFiles

SEGMENT_BYTES = 100


def file_run(folder: Path, source: Callable[[], FileSource] | None = None, **capture: Any) -> CaptureRun:
    """source: as it is in the folder, when none is given."""
    settings = {"land_seconds": 0.1, "heartbeat_seconds": 0.5} | capture
    pipeline = parse(
        f"pipeline: test\nlake: {{path: {folder / 'lake'}}}\nsources: {{one: {{conn_id: one, flavour: mariadb}}}}\n"
        f"tables: {{include: ['*.*']}}\n"
        f"capture: {{{', '.join(f'{key}: {value}' for key, value in settings.items())}}}\n",
        where="test",
    )

    def there() -> FileSource:
        return FileSource(folder / "lines", SEGMENT_BYTES)

    return CaptureRun(pipeline, "one", source or there, folder / "state", LakeFiles(str(folder / "lake")))


def killed_capture(folder: Path, failpoint: str | None) -> int | None:
    """Forked from what drivers are forked from: it has imported what capture needs."""
    return exit_code(_capture, folder, failpoint)


def _capture(folder: Path, failpoint: str | None) -> None:
    if failpoint is not None:
        os.environ["TIDEGATE_FAILPOINT"] = failpoint
    file_run(folder).run(300, idle_seconds=1.0)
