"""Apply deletes its data files in silver's folders here if no commit names them. (Private logs
delete their own.)

In:  staged files in no commit once a window is written; files of a commit too late.
Out: the files are deleted. If the store refuses, VACUUM removes them later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from spark_jobs.window.made import StagedTable
from tidegate.lake.files import LakeFiles


def delete_files(lake: LakeFiles, paths: Iterable[str]) -> None:
    """Delete files certainly in no commit. paths: relative to the lake."""
    for path in paths:
        with suppress(OSError):
            lake.filesystem.delete_file(lake.local(path))


def delete_added(lake: LakeFiles, table_path: str, adds: Iterable[Mapping[str, Any]]) -> None:
    """The same, of the `add` actions of one table's commit that came too late."""
    delete_files(lake, (f"{table_path}/{unquote(add['path'])}" for add in adds))


def remove_abandoned(lake: LakeFiles, tables: Iterable[StagedTable]) -> None:
    """Delete files staged in vain: those left in the lists by their writer (made.py)."""
    for table in tables:
        delete_files(lake, (path for staged in table.upserts for path in staged.files))
