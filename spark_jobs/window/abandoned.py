"""Apply deletes its data files in silver's folders here if no commit names them. (Private logs
delete their own.)

In:  staged files in no commit once a window is written.
Out: the files are deleted. If the store refuses, VACUUM removes them later.
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_jobs.window.made import StagedTable
from tidegate.lake.files import LakeFiles
from tidegate.upsert.files.abandoned import delete_files


def remove_abandoned(lake: LakeFiles, tables: Iterable[StagedTable]) -> None:
    """Delete files staged in vain: those left in the lists by their writer (made.py)."""
    for table in tables:
        delete_files(lake, (path for staged in table.upserts for path in staged.files))
