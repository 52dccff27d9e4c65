"""Whether other writers' rewrites of files kept the number of rows.

In:  a silver table's log, and commits of it since a known version.
Out: the first Repacked with other rows; else one of which nobody knows; None if each has as many rows as before.

OPTIMIZE, Z-ORDER and REORG say `dataChange: false` (PROTOCOL.md, "Add File and Remove File"), and every reader of
changes believes them. A broken writer may lose rows, or bring dead ones back. The log judges it: the live rows of the
removed files against those of the added ones, by numRecords and the deletion vectors' cardinality. The `add` from
before counts, and not the commit's own word about a removed file. Files without statistics have their footers read, up
to REWRITE_FILES_MAX.

A file that stays, with the same deletion vector, has the same rows: new statistics, tags or row ids change none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.delta.log import DeltaLog
from tidegate.delta.table.actions import made_by_us, operation_and_engine
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import Action, TableState
from tidegate.errors import LakeRefused
from tidegate.lake.files import LakeFiles
from tidegate.lake.storage.store_error import StoreError
from tidegate.limits import REWRITE_FILES_MAX
from tidegate.standing.silver import Repacked


def worst_rewrite(lake: LakeFiles, log: DeltaLog, commits: Mapping[int, Sequence[Action]]) -> Repacked | None:
    """commits: version -> actions; of all versions between the first and the last one.

    Raises LakeUnavailable, LakeRefused: of the log.
    """
    rewritten = [version for version in sorted(commits) if _is_rewrite(commits[version])]
    if not rewritten:
        return None
    paths = {body["path"] for version in rewritten for body in _files(commits[version])}
    before = DeltaLog(log.place, store=log.store, keep=lambda add: add["path"] in paths).state_at(rewritten[0] - 1)
    counted = _Counted(lake, log.place)
    worst: Repacked | None = None
    for version in range(rewritten[0], rewritten[-1] + 1):
        after = before.after(version, commits[version]) if before is not None else None
        if version in rewritten:
            rewrite = _rewrite(version, commits[version], counted, before, after)
            if rewrite.is_known and not rewrite.is_even:
                return rewrite
            worst = worst if rewrite.is_even or worst is not None else rewrite
        before = after
    return worst


def _rewrite(
    version: int, actions: Sequence[Action], counted: _Counted, before: TableState | None, after: TableState | None
) -> Repacked:
    rows: tuple[int | None, int | None] = (None, None)
    if before is not None and after is not None:
        stay = {key for key, file in before.live.items() if key in after.live and _is_same(file, after.live[key])}
        gone, new = ([file for key, file in of.live.items() if key not in stay] for of in (before, after))
        rows = counted.rows(gone), counted.rows(new)
    return Repacked(version, *operation_and_engine(actions), *rows)


def _is_same(before: LiveFile, after: LiveFile) -> bool:
    """Whether a file with the same path and deletion vector is the same one. Its writer may have brought statistics."""
    return before.size == after.size and (None in (before.rows, after.rows) or before.rows == after.rows)


def _files(actions: Iterable[Action]) -> list[Mapping[str, object]]:
    return [body for action in actions if (body := action.get("add") or action.get("remove"))]


def _is_rewrite(actions: Sequence[Action]) -> bool:
    """Whether another writer says that all of the commit's files have the rows of before."""
    files = _files(actions)
    return bool(files) and not made_by_us(actions) and all(body.get("dataChange") is False for body in files)


class _Counted:
    """Live rows of files, by their statistics, or by their footers: these are bounded."""

    def __init__(self, lake: LakeFiles, place: str) -> None:
        self._lake, self._path = lake, place.removeprefix(lake.uri(""))
        self._left = REWRITE_FILES_MAX

    def rows(self, files: Iterable[LiveFile]) -> int | None:
        """None: of one of them nobody knows."""
        total = 0
        for file in files:
            rows = file.live_rows if file.rows is not None else self._by_footer(file)
            if rows is None:
                return None
            total += rows
        return total

    def _by_footer(self, file: LiveFile) -> int | None:
        if not self._left:
            return None
        self._left -= 1
        vector = file.deletion_vector
        try:
            with self._lake.open(f"{self._path}/{file.local_path}") as handle:
                rows = int(pq.ParquetFile(handle).metadata.num_rows)
        except StoreError:  # it may answer the next time
            raise
        except (LakeRefused, OSError, pa.ArrowInvalid):  # outside of the table, removed by VACUUM, or damaged
            return None
        return rows - (vector.cardinality if vector else 0)
