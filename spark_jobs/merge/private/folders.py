"""The folders of private logs: how they are called, used again, and found when their process was killed.

In:  a table's place.
Out: a folder's name tg-<time><random>, for one private log at a time.

Data files stay in the folder that Spark wrote them to. One folder per statement would be too many: in an object store
VACUUM lists each of them. Therefore a process uses its folder again, as long as no other process could take its log for
a leftover. A statement begins within JOB_HANGS_SECONDS of the folder's time, and ends within as many.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from typing import Final

import pyarrow.fs as pafs

from tidegate.delta.object_names import LOG
from tidegate.lake.files import LakeFiles
from tidegate.limits import JOB_HANGS_SECONDS, PRIVATE_LOG_SECONDS

# No `_` and no `.` in front: VACUUM ignores files in folders with such names, whoever runs it.
_NAME: Final = re.compile(r"tg-([0-9a-f]{12})[0-9a-f]{20}")


def new_name() -> str:
    """The time in milliseconds is in front, as in a UUID of version 7."""
    return f"tg-{int(time.time() * 1000):012x}{secrets.token_hex(10)}"


def made_at(name: str) -> float | None:
    """When a folder of this name was made, Unix seconds; None for other names."""
    match = _NAME.fullmatch(name)
    return int(match[1], 16) / 1000 if match else None


class PrivateFolders:
    """The folders that this process has and doesn't use just now. For any number of threads."""

    def __init__(self) -> None:
        self._free: dict[str, list[str]] = {}  # by the table's place
        self._lock = threading.Lock()

    def take(self, place: str) -> str | None:
        """A free folder, now the caller's alone; None if there is none, or none is young enough."""
        with self._lock:
            free = self._free.pop(place, [])
            youngest = max(free, default=None)
            if youngest is None or (made_at(youngest) or 0) < time.time() - JOB_HANGS_SECONDS:
                return None
            if rest := [name for name in free if name != youngest]:
                self._free[place] = rest
            return youngest

    def give(self, place: str, name: str) -> None:
        """Give a folder back. It may hold data files of the table, and has no log any more."""
        with self._lock:
            self._free.setdefault(place, []).append(name)


def remove_leftovers(lake: LakeFiles, path: str, *, dry_run: bool = False) -> list[str]:
    """Delete the private logs in a table's folder that are too old to be at work; the names of their folders.

    Their data files are either in the table, or VACUUM finds them.
    """
    names = [info.base_name for info in lake.listed(path)]
    oldest = time.time() - PRIVATE_LOG_SECONDS
    old = [name for name in names if (at := made_at(name)) is not None and at < oldest]
    leftovers = [name for name in old if _is_folder(lake, f"{path}/{name}/{LOG}")]
    for name in [] if dry_run else leftovers:
        lake.delete_folder(f"{path}/{name}/{LOG}")
    return leftovers


def _is_folder(lake: LakeFiles, path: str) -> bool:
    return bool(lake.filesystem.get_file_info(lake.local(path)).type == pafs.FileType.Directory)
