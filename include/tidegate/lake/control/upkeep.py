"""Upkeep of the control tables: needless rows go, small files become one, unnamed files go.

In:  a control table of tables/, and the choice of its staying rows.
Out: commits. Appends beside it keep their rows.

Only files of the state read are replaced. A concurrent append adds a file of its own, named by no
remove of ours; after another rewrite all is looked at again on the new state (delta/exchange.py).
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
    """Keep only the rows `stays` returns; (rows before, rows after), None when there is nothing to
    do.

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
    """Take out the files all of whose rows have less in a column, by the log's statistics; rows
    before and after.

    None when there is nothing to do. Raises CommitConflict when another commit rewrote the table
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
    """One file instead of many, a checkpoint, and needless files removed; sizes before and after.

    None when the table doesn't exist. Fewer than `files_min` files stay as they are. packs: how to
    pack one perhaps too long for the memory. Raises CommitConflict when others rewrote the table
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
    """On the newest state each time, as long as another rewrite comes first."""
    for number in range(1, COMMIT_ATTEMPTS_MAX + 1):
        try:
            return attempt()
        except CommitConflict:
            if number == COMMIT_ATTEMPTS_MAX:
                raise
            time.sleep(CONTROL_BACKOFF_SECONDS * 2**number)
    raise AssertionError("the loop returns or raises")


def commit_times(lake: LakeFiles, path: str, versions: Sequence[int]) -> dict[int, float]:
    """When versions of a Delta table were committed, Unix seconds: its log files' times, as Delta
    itself takes them.

    A version whose log file is gone is left out. path: the table's, relative to the lake.
    """
    store = lake.log(path).store
    entries = {version: store.stat(commit_name(version)) for version in versions}
    return {version: entry.modified_ms / 1000 for version, entry in entries.items() if entry is not None}
