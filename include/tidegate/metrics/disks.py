"""The disks of this machine that a pipeline writes to, and the room left on each.

In:  a pipeline, the folder of this machine's state.
Out: Disks by name: `lake` (a folder, not an object store), `value log` (if capture runs here),
     `spark`. A disk without an answer is None: its mount hangs, or is stale.

A hung mount hangs its asker. Each disk is therefore asked aside, and waited for DISK_ANSWER_SECONDS.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from tidegate.capture.value_log.folder import value_log_folder
from tidegate.config import Pipeline
from tidegate.limits import DISK_ANSWER_SECONDS
from tidegate.patience import Patience

LAKE: Final = "lake"
VALUE_LOG: Final = "value log"
SPARK: Final = "spark"
DISKS: Final = (LAKE, VALUE_LOG, SPARK)
_LOCAL_DIRS: Final = "spark.local.dir"
_PATIENCE: Final = Patience(DISK_ANSWER_SECONDS)


class Disk(NamedTuple):
    """Bytes. folder: the pipeline's own on it."""

    folder: Path
    total: int
    free: int


def folders(pipeline: Pipeline, state_dir: Path, *, is_capture_here: bool = False) -> dict[str, Path]:
    """Folders by the name of their disk, some perhaps not made yet. is_capture_here: on this machine, now or soon."""
    known = _given(pipeline, state_dir)
    if not is_capture_here and not _is_captured_here(pipeline, state_dir):
        del known[VALUE_LOG]
    return known


def disks(pipeline: Pipeline, state_dir: Path, *, is_capture_here: bool = False) -> dict[str, Disk | None]:
    """Never raises, and never hangs."""
    given = _given(pipeline, state_dir)
    known: dict[str, Disk | None] = {}
    for name, folder in given.items():
        try:
            if name == VALUE_LOG and not is_capture_here:
                asked = f"captures of {given[VALUE_LOG]}"
                if not _PATIENCE.ask(asked, lambda: _is_captured_here(pipeline, state_dir)):
                    continue
            disk = _PATIENCE.ask(f"disk of {folder}", lambda folder=folder: _disk(folder))  # type: ignore[misc]
        except OSError:  # TimeoutError is one
            known[name] = None
            continue
        if disk.total:  # a filesystem without a size has no room to lose
            known[name] = disk
    return known


def _given(pipeline: Pipeline, state_dir: Path) -> dict[str, Path]:
    """The pipeline file and the environment say them; no disk is asked."""
    known: dict[str, Path] = {}
    if "://" not in pipeline.lake.path:
        known[LAKE] = Path(pipeline.lake.path)
    known[VALUE_LOG] = value_log_folder(pipeline, next(iter(pipeline.sources)), state_dir)
    dirs = os.environ.get("SPARK_LOCAL_DIRS") or pipeline.apply.spark_conf.get(_LOCAL_DIRS) or tempfile.gettempdir()
    known[SPARK] = Path(str(dirs).split(",")[0].strip())
    return known


def _is_captured_here(pipeline: Pipeline, state_dir: Path) -> bool:
    return any(_is_there(value_log_folder(pipeline, source, state_dir)) for source in pipeline.sources)


def _is_there(folder: Path) -> bool:
    """Raises OSError for a disk without an answer. Path.exists would be False for it."""
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _disk(folder: Path) -> Disk:
    """The disk of a folder, or of its future place. Raises OSError."""
    nearest = next(each for each in (folder, *folder.absolute().parents) if _is_there(each))
    usage = shutil.disk_usage(nearest)
    return Disk(folder, usage.total, usage.free)
