"""Delete files a table no longer needs, or never had. No commit is made.

In:  a table's log, its folder, how long removed files must stay.
Out: names of the deleted files.

A file stays in three cases: the newest version has it; the version that was the newest when the
retention time began has it; it is hardly older than the retention time (COMMIT_SECONDS_MAX). A file
that came to the table later is young, unless its writer took very long from the file to its commit.
Therefore tombstones aren't needed, and a file stays if any version had it within the retention time. If
the log doesn't reach back so far, nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import commit_version
from tidegate.delta.stores.store import LogStore, remove_unfinished
from tidegate.delta.table.actions import now_ms
from tidegate.delta.table.state import TableState
from tidegate.limits import COMMIT_SECONDS_MAX

_DATA: Final = ".parquet"


def vacuum(log: DeltaLog, folder: LogStore, *, keep_seconds: float) -> list[str]:
    """Delete needless files that lie directly in the table's own folder. Folders in it (of
    partitions) aren't searched.

    keep_seconds: for readers that still use an older version; more than the difference between the
    clocks of this machine and of the store. Raises LakeUnavailable, LakeRefused.
    """
    gone = unneeded(log, {entry.name: entry.modified_ms for entry in folder.names()}, keep_seconds=keep_seconds)
    folder.delete(gone)
    remove_unfinished(folder, now_ms() - int(max(keep_seconds, COMMIT_SECONDS_MAX) * 1000))
    return gone


def unneeded(log: DeltaLog, written_ms: Mapping[str, int], *, keep_seconds: float) -> list[str]:
    """A table's files without a further use.

    written_ms: path within the table -> when it was written (Unix milliseconds), listed before this
    call. keep_seconds: as in vacuum. Raises LakeUnavailable, LakeRefused.
    """
    before_ms = now_ms() - int(keep_seconds * 1000)
    then = newest_at(log, before_ms)
    if then is None:
        return []
    needed = {file.local_path for file in then.files}
    del then  # memory: two lists of all files would be too much
    needed.update(file.local_path for file in log.state().files)
    old_ms = before_ms - COMMIT_SECONDS_MAX * 1000
    old = [path for path, at_ms in written_ms.items() if path.endswith(_DATA) and at_ms < old_ms]
    return [path for path in old if path not in needed]


def newest_at(log: DeltaLog, at_ms: int) -> TableState | None:
    """The newest version at a moment, or an older one; None if the log doesn't reach back so far."""
    later = [commit_version(entry.name) for entry in log.store.names() if entry.modified_ms > at_ms]
    young = min((version for version in later if version is not None), default=None)
    return log.state() if young is None else log.state_at(max(0, young - 1))
