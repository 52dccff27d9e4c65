"""Data files in silver's folders in no commit: their writer deletes them.

In:  files of a commit that came too late, or that nobody will make.
Out: the files are deleted. If the disk or the store refuses, VACUUM removes them later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from tidegate.lake.files import LakeFiles


def delete_files(lake: LakeFiles, paths: Iterable[str]) -> None:
    """Delete files certainly in no commit. paths: relative to the lake."""
    for path in paths:
        with suppress(OSError):
            lake.filesystem.delete_file(lake.local(path))


def delete_added(lake: LakeFiles, table_path: str, adds: Iterable[Mapping[str, Any]]) -> None:
    """The same, of the `add` actions of one table's commit that came too late."""
    delete_files(lake, (f"{table_path}/{unquote(add['path'])}" for add in adds))
