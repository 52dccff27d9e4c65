"""The disks of this machine that a pipeline writes to, and the room left on each.

In:  a pipeline, the folder of this machine's state.
Out: Disks by name: `lake` (a folder, not an object store), `value log` (if capture runs here),
     `spark`.

A disk without an answer, as a mount that hangs up, is left out: nobody knows its room.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from tidegate.capture.value_log.folder import value_log_folder
from tidegate.config import Pipeline

LAKE: Final = "lake"
VALUE_LOG: Final = "value log"
SPARK: Final = "spark"
DISKS: Final = (LAKE, VALUE_LOG, SPARK)
_LOCAL_DIRS: Final = "spark.local.dir"


class Disk(NamedTuple):
    """Bytes. folder: the pipeline's own on it."""

    folder: Path
    total: int
    free: int


def folders(pipeline: Pipeline, state_dir: Path, *, is_capture_here: bool = False) -> dict[str, Path]:
    """Folders by the name of their disk, some perhaps not made yet. is_capture_here: on this machine, now or soon."""
    known: dict[str, Path] = {}
    if "://" not in pipeline.lake.path:
        known[LAKE] = Path(pipeline.lake.path)
    logs = [value_log_folder(pipeline, source, state_dir) for source in pipeline.sources]
    if here := [folder for folder in logs if is_capture_here or folder.exists()]:
        known[VALUE_LOG] = here[0]
    dirs = os.environ.get("SPARK_LOCAL_DIRS") or pipeline.apply.spark_conf.get(_LOCAL_DIRS) or tempfile.gettempdir()
    known[SPARK] = Path(str(dirs).split(",")[0].strip())
    return known


def disks(pipeline: Pipeline, state_dir: Path, *, is_capture_here: bool = False) -> dict[str, Disk]:
    """Never raises."""
    known: dict[str, Disk] = {}
    for name, folder in folders(pipeline, state_dir, is_capture_here=is_capture_here).items():
        with suppress(OSError, StopIteration):
            nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
            usage = shutil.disk_usage(nearest)
            if usage.total:  # a filesystem without a size has no room to lose
                known[name] = Disk(folder, usage.total, usage.free)
    return known
