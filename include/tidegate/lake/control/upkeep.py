"""Upkeep of the control tables: needless rows go, small files become one, files no log names go.

In:  a control table of tables/, and a function that chooses the rows to keep.
Out: commits. Concurrent appends keep their rows.

Only files of the state read are replaced. A concurrent append adds its own file, which our
commit doesn't name. After another rewrite everything is decided again on the new state
(delta/exchange.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import pyarrow as pa

from tidegate.delta.cleaning.log_upkeep import LogUpkeep
from tidegate.delta.cleaning.vacuum import vacuum
from tidegate.delta.exchange import exchange
from tidegate.delta.object_names import commit_name
from tidegate.delta.table.state import FileTotals, TableState
from tidegate.errors import CommitConflict
from tidegate.lake.control.files import write_file
from tidegate.lake.control.rows import current, pack, rows_of
from tidegate.lake.files import LakeFiles
from tidegate.limits import COMMIT_ATTEMPTS_MAX, CONTROL_BACKOFF_SECONDS, CONTROL_REMOVED_KEPT_HOURS
from tidegate.tables import Table

# A larger file stays as it is.
_PACKED_BYTES: Final = 64 << 20

Found = TypeVar("Found")


def rewrite(lake: LakeFiles, table: Table, stays: Callable[[pa.Table], pa.Table]) -> tuple[int, int] | None:
    """Keep only the rows that `stays` returns. Returns (rows before, rows after); None if there was
    nothing to do.

    Raises CommitConflict when others rewrote the table first every time.
    """

    def attempt() -> tuple[int, int] | None:
        state = current(lake, table)
        if state is None:
            return None
        rows = rows_of(lake, table, state)
        kept = stays(rows)
        if kept.num_rows == rows.num_rows:
            return None
        adds = [write_file(lake, table, kept)] if kept.num_rows else []
        exchange(lake.log(table.path), state.files, adds, operation="DELETE", data_change=True)
        return rows.num_rows, kept.num_rows

    return _again(attempt)


def drop_files(lake: LakeFiles, table: Table, column: str, below: int) -> tuple[int, int] | None:
    """Take out each file whose rows all have less than `below` in a column, by the log's
    statistics. Returns the rows before and after.

    None if there was nothing to do. Raises CommitConflict if another commit rewrote the table
    first.
    """
    state = current(lake, table)
    bounds = [] if state is None else [(file, file.bounds(column)) for file in state.files]
    old = [file for file, bound in bounds if bound is not None and bound[1] < below]
    if state is None or not old:
        return None
    exchange(lake.log(table.path), old, [], operation="DELETE", data_change=True)
    before = sum(file.rows or 0 for file in state.files)
    return before, before - sum(file.rows or 0 for file in old)


def _one_file(lake: LakeFiles, table: Table, state: TableState) -> None:
    pack(lake, table, state, smaller_bytes=_PACKED_BYTES)


def compact(
    lake: LakeFiles,
    table: Table,
    *,
    files_min: int,
    packs: Callable[[LakeFiles, Table, TableState], None] = _one_file,
) -> tuple[FileTotals, FileTotals] | None:
    """Make one file of many, write a checkpoint, and remove needless files. Returns the sizes
    before and after.

    None if the table doesn't exist. Fewer than `files_min` files stay as they are. packs: how to
    pack a table, perhaps one too long for memory. Raises CommitConflict if others rewrote the table
    first every time.
    """

    def attempt() -> tuple[FileTotals, FileTotals] | None:
        unpacked = current(lake, table)
        if unpacked is None:
            return None
        before = unpacked.totals
        if before.files >= files_min:
            packs(lake, table, unpacked)
        log = lake.log(table.path)
        vacuum(log, lake.store(table.path), keep_seconds=CONTROL_REMOVED_KEPT_HOURS * 3600)
        state = log.state()
        LogUpkeep().run(log, state)
        return before, state.totals

    return _again(attempt)


def _again(attempt: Callable[[], Found]) -> Found:
    """Try again on the newest state, as long as another rewrite comes first."""
    for number in range(1, COMMIT_ATTEMPTS_MAX + 1):
        try:
            return attempt()
        except CommitConflict:
            if number == COMMIT_ATTEMPTS_MAX:
                raise
            time.sleep(CONTROL_BACKOFF_SECONDS * 2**number)
    raise AssertionError("the loop returns or raises")


def commit_times(lake: LakeFiles, path: str, versions: Sequence[int]) -> dict[int, float]:
    """When versions of a Delta table were committed, in Unix seconds: the times of the log's files,
    as Delta itself takes them.

    A version whose log file is gone is left out. path: of the table, relative to the lake.
    """
    store = lake.log(path).store
    entries = {version: store.stat(commit_name(version)) for version in versions}
    return {version: entry.modified_ms / 1000 for version, entry in entries.items() if entry is not None}
