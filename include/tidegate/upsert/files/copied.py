"""Copies of a silver table's files in another table's folder, byte by byte.

In:  live files of a table with the other one's columns.
Out: `add` actions of the copies, with the originals' deletion vectors. No log names them yet.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, wait
from typing import Any, Final
from urllib.parse import quote, unquote

from tidegate.delta.table.actions import now_ms
from tidegate.delta.table.live_file import LiveFile
from tidegate.errors import SilverDamaged
from tidegate.lake.files import LakeFiles
from tidegate.limits import COPY_OBJECT_BYTES_MAX
from tidegate.remedy import DAMAGED
from tidegate.upsert.deletions import deletion_vector
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.files.abandoned import delete_added, delete_files

# Deleted rows are as old as in the original: maintain removes them by the age of their file.
_KEPT: Final = ("size", "stats", "modificationTime")


class TooSlow(Exception):  # noqa: N818 - nothing went wrong
    """The copies took longer than files without a commit are safe."""


def can_copy(lake: LakeFiles, files: Iterable[LiveFile]) -> bool:
    """Whether the lake's place copies files of these sizes. Files in partitions aren't copied."""
    return lake.copies and all(f.size <= COPY_OBJECT_BYTES_MAX and not f.partition_values for f in files)


def copies(
    lake: LakeFiles, source: str, target: str, files: Sequence[LiveFile], pool: Executor, *, seconds: float
) -> list[Mapping[str, Any]]:
    """The `add` bodies of the copies. source, target: the tables' paths, relative to the lake.

    seconds: for all of them. After an error no copy stays. Raises SilverDamaged for a lost file or
    vector, TooSlow, and OSError.
    """
    until, failed = time.monotonic() + seconds, threading.Event()

    def copied(file: LiveFile) -> Mapping[str, Any] | None:
        """None once another copy has failed: none of them is of use then."""
        try:
            return None if failed.is_set() else _copied(lake, source, target, file, until)
        except BaseException:
            failed.set()
            raise

    running = [pool.submit(copied, file) for file in files]
    _, more = wait(running, return_when=FIRST_EXCEPTION)
    begun = [copy for copy in running if copy not in more or not copy.cancel()]
    adds = [add for done in begun if done.exception() is None and (add := done.result()) is not None]
    try:
        for done in begun:
            done.result()
        with VectorWriter(lake, target, named=False) as vectors:
            adds = [_with_dead_rows(lake, source, pair, vectors) for pair in zip(files, adds, strict=True)]
        _check_time(until)
        lake.settle_names(target, (unquote(add["path"]) for add in adds))
    except BaseException:
        delete_added(lake, target, adds)
        raise
    return adds


def _check_time(until: float) -> None:
    if time.monotonic() > until:
        raise TooSlow("the copies take too long")


def _copied(lake: LakeFiles, source: str, target: str, file: LiveFile, until: float) -> Mapping[str, Any]:
    _check_time(until)
    path = f"part-00000-{uuid.uuid4()}-c000.parquet"
    try:
        lake.copy(f"{source}/{file.local_path}", f"{target}/{path}")
    except OSError as error:
        delete_files(lake, [f"{target}/{path}"])  # a full disk would keep its part
        if not isinstance(error, FileNotFoundError):
            raise
        where = f"{source}/{file.local_path}"
        raise SilverDamaged("a data file is gone", where=where, remedy=DAMAGED) from None
    kept = {name: file.action[name] for name in _KEPT if file.action.get(name) is not None}
    return {"path": quote(path), "partitionValues": {}, "modificationTime": now_ms(), "dataChange": True, **kept}


def _with_dead_rows(
    lake: LakeFiles, source: str, pair: tuple[LiveFile, Mapping[str, Any]], vectors: VectorWriter
) -> Mapping[str, Any]:
    """The copy's action with its original's vector. One vector at a time is in memory."""
    file, add = pair
    if file.deletion_vector is None:
        return add
    positions = deletion_vector.read(lake, source, file.deletion_vector)
    return {**add, "deletionVector": vectors.add(positions).as_action()}
