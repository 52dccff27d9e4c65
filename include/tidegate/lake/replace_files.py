"""A commit by delta-rs that takes files out of a table, beside writers that append to it or take files out as well.

In:  a loaded table, the files that go, those that come.
Out: one commit; or CommitConflict.

delta-rs doesn't notice when two writers remove the same file: both commits are made, and the rows of both are there. So
a commit is tried once, at the version after the one that was read; when another commit has that version, its lines are
read: behind appends we try again, behind anything else we give way. So it is known at the commit that every file it
removes is still there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from tidegate.errors import CommitConflict, LakeUnavailable
from tidegate.lake.delta_log import DeltaLog
from tidegate.limits import BRONZE_COMMIT_ATTEMPTS_MAX


def removed(path: str, size: int, partition: dict[str, str], *, data_change: bool) -> RemoveAction:
    return RemoveAction(path, data_change, int(time.time() * 1000), size, partition)


def replace_files(
    table: DeltaTable,
    log: DeltaLog,
    removes: Sequence[RemoveAction],
    adds: Sequence[AddAction],
    partition_by: list[str],
) -> None:
    """Replace files in one commit; the table is at that version then. Raises CommitConflict, LakeUnavailable."""
    where = str(table.table_uri)
    for _ in range(BRONZE_COMMIT_ATTEMPTS_MAX):
        read = int(table.version())
        try:
            table.create_write_transaction(
                [*adds, *removes],
                mode="append",
                schema=table.schema(),
                partition_by=partition_by,
                commit_properties=CommitProperties(max_commit_retries=0),
            )
            table.update_incremental()
        except (CommitFailedError, DeltaError, OSError) as error:
            if _is_there(table, log, read, removes, adds, error):
                return
        else:
            return
    raise CommitConflict("other commits came first every time", where=where)


def _is_there(
    table: DeltaTable,
    log: DeltaLog,
    read: int,
    removes: Sequence[RemoveAction],
    adds: Sequence[AddAction],
    error: Exception,
) -> bool:
    """After a failure: whether the commit was made all the same; False when it may be tried again."""
    where = str(table.table_uri)
    try:
        table.update_incremental()
    except (DeltaError, OSError) as unknown:
        raise LakeUnavailable(f"the commit failed: {error}", where=where) from unknown
    newest = int(table.version())
    if newest == read:
        raise LakeUnavailable(f"the commit failed: {error}", where=where) from error
    for version in range(read + 1, newest + 1):
        text = log.commit(version)
        if text is None:
            raise CommitConflict(f"version {version} is no longer in the log", where=where) from error
        lines = [json.loads(line) for line in text.splitlines()]
        taken = {line["remove"]["path"] for line in lines if "remove" in line}
        made = {_name(line["add"]["path"]) for line in lines if "add" in line}
        if made & {_name(one.path) for one in adds} or (not adds and taken == {one.path for one in removes}):
            return True
        if taken or any("metaData" in line for line in lines):
            raise CommitConflict("another commit changed the table", where=where) from error
    return False


def _name(path: str) -> str:
    """Of a file, without its folders, which the log may spell otherwise."""
    return path.rsplit("/", 1)[-1]
