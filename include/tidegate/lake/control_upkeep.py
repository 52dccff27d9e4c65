"""Upkeep of the control tables: rows that nobody needs go, small files become one, the log gets a checkpoint.

In:  a control table of tables.py, and which of its rows stay.
Out: commits by delta-rs, as every commit of a control table. Appends that run beside it keep their rows.

Only what the loaded snapshot holds is replaced. An append that commits meanwhile adds a file of its own, which no
remove of ours names; behind another rewrite all is looked at again on the new snapshot (replace_files).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from tidegate.errors import CommitConflict, LakeUnavailable
from tidegate.lake.control import exchange, load, pack, rows_of
from tidegate.lake.delta_log import delta_log
from tidegate.lake.files import LakeFiles
from tidegate.lake.replace_files import removed, replace_files
from tidegate.limits import COMMIT_ATTEMPTS_MAX
from tidegate.tables import Table

# Nobody reads an old version of a control table; a reader that has just opened one needs its files for a while.
_PROPERTIES: Final = {
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
# A larger file stays as it is.
_PACKED_BYTES: Final = 64 << 20
_BACKOFF_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Size:
    """Live files of a table and their bytes."""

    files: int
    bytes: int


def size_of(found: DeltaTable) -> Size:
    sizes = _sizes(found)
    return Size(len(sizes), sum(sizes.values()))


def _sizes(found: DeltaTable) -> dict[str, int]:
    actions = pa.table(found.get_add_actions(flatten=True))
    return dict(zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True))


def rewrite(lake: LakeFiles, table: Table, stays: Callable[[pa.Table], pa.Table]) -> tuple[int, int] | None:
    """Keep only what `stays` returns of the rows; (rows before, rows after), None when there is nothing to do."""
    for attempt in range(COMMIT_ATTEMPTS_MAX):
        found = load(lake, table)
        if found is None:
            return None
        rows = rows_of(lake, table, found)
        kept = stays(rows)
        if kept.num_rows == rows.num_rows:
            return None
        try:
            exchange(lake, table, found, _sizes(found), kept, data_change=True)
        except (CommitConflict, CommitFailedError, DeltaError, OSError) as error:
            _again(lake, table, attempt, error)
        else:
            return rows.num_rows, kept.num_rows
    raise AssertionError("the loop returns or raises")


def drop_files(lake: LakeFiles, table: Table, column: str, below: int) -> tuple[int, int] | None:
    """Take out the files all of whose rows have less in a column, by the log's statistics; rows before and after.

    None when there is nothing to do. Raises CommitConflict when another commit rewrote the table first.
    """
    found = load(lake, table)
    actions = None if found is None else pa.table(found.get_add_actions(flatten=True))
    if found is None or actions is None or f"max.{column}" not in actions.column_names:
        return None
    old = actions.filter(pc.less(actions[f"max.{column}"], below))
    if not old.num_rows:
        return None
    sizes = zip(old["path"].to_pylist(), old["size_bytes"].to_pylist(), strict=True)
    gone = [removed(path, size, {}, data_change=True) for path, size in sizes]
    replace_files(found, delta_log(lake.uri(table.path), lake.storage_options), gone, [], [])
    before: int = pc.sum(actions["num_records"]).as_py()
    return before, before - pc.sum(old["num_records"]).as_py()


def compact(lake: LakeFiles, table: Table, *, files_min: int) -> tuple[Size, Size] | None:
    """One file instead of many, a checkpoint, and what is no longer needed removed; sizes before and after.

    None when the table doesn't exist. Fewer than `files_min` files stay as they are.
    """
    for attempt in range(COMMIT_ATTEMPTS_MAX):
        found = load(lake, table)
        if found is None:
            return None
        before = size_of(found)
        try:
            if missing := _missing_properties(found):
                found.alter.set_table_properties(missing)
            if before.files >= files_min:
                pack(lake, table, found, smaller_bytes=_PACKED_BYTES)
            found.vacuum(dry_run=False)
            found.create_checkpoint()
            found.cleanup_metadata()
        except (CommitConflict, CommitFailedError, DeltaError, OSError) as error:
            _again(lake, table, attempt, error)
        else:
            return before, size_of(found)
    raise AssertionError("the loop returns or raises")


def _missing_properties(found: DeltaTable) -> dict[str, str]:
    there = found.metadata().configuration
    return {name: value for name, value in _PROPERTIES.items() if there.get(name) != value}


def _again(lake: LakeFiles, table: Table, attempt: int, error: Exception) -> None:
    if attempt + 1 == COMMIT_ATTEMPTS_MAX:
        raise LakeUnavailable(
            f"upkeep failed {attempt + 1} times: {error}", where=lake.uri(table.path), remedy="check the lake's store"
        ) from error
    time.sleep(_BACKOFF_SECONDS * 2**attempt)


def commit_times(lake: LakeFiles, path: str, versions: Sequence[int]) -> dict[int, float]:
    """When versions of a Delta table were committed, Unix seconds: its log files' times, as Delta itself takes them.

    A version whose log file is gone is left out. path: the table's, relative to the lake.
    """
    names = {version: lake.local(f"{path}/_delta_log/{version:020d}.json") for version in versions}
    infos = lake.filesystem.get_file_info(list(names.values()))
    return {
        version: info.mtime.timestamp()
        for version, info in zip(names, infos, strict=True)
        if info.mtime is not None and info.is_file
    }
