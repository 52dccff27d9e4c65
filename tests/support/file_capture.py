"""Capture of a file_source, in this process or as a program of its own that a failpoint may kill.

In:  a folder: the source's file `lines` in it, its lake, its value log.
Out: bronze; `python -m tests.support.file_capture FOLDER` runs until it is quiet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.file_source import FileSource
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


if __name__ == "__main__":
    file_run(Path(sys.argv[1])).run(60, idle_seconds=1.0)
