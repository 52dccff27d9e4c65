"""Bounds of the key in the row groups of silver's files, kept from one window to the next.

In:  an open data file's facts of its groups (keys.columns).
Out: whether a group of a file may hold a changed key, without opening the file.

A data file never changes under its name, and a new deletion vector doesn't change its row groups.
The knowledge of a file is right for later windows. A window with few keys opens only the few
files with groups for them: its cost grows with the keys, and not with the number of files. If
memory is short, the least recently used files go first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tidegate.delta.table.live_file import LiveFile
from tidegate.upsert.keys.file import Int64s
from tidegate.upsert.keys.probe_table import KeyTable

_ENTRY_BYTES: Final = 600  # of the objects around the arrays

FileName = tuple[str, tuple[str, int, int], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Groups:
    """rows: int64[groups] of each row group. boxes: int64[groups, columns, 2], inclusive bounds of the key's leads."""

    rows: Int64s
    boxes: Int64s

    @property
    def total_rows(self) -> int:
        return int(self.rows.sum())

    def that_may_hold(self, table: KeyTable) -> Iterator[tuple[int, int, int]]:
        """(index, rows, position of the first row) of the groups that can't be ruled out."""
        ends = np.cumsum(self.rows)
        for index in np.flatnonzero(self._may_hold(table)).tolist():
            rows = int(self.rows[index])
            yield index, rows, int(ends[index]) - rows

    def rows_that_may_hold(self, table: KeyTable) -> int:
        """In the groups that can't be ruled out."""
        return int(self.rows[self._may_hold(table)].sum())

    def _may_hold(self, table: KeyTable) -> npt.NDArray[np.bool_]:
        return (self.rows > 0) & table.may_lie_in_each(self.boxes)


class KnownGroups:
    """At most bytes_max of Groups. Its methods may be called from any thread."""

    def __init__(self, bytes_max: int) -> None:
        self._room = bytes_max
        self._files: OrderedDict[FileName, Groups] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._files)

    def of(self, name: FileName) -> Groups | None:
        with self._lock:
            groups = self._files.get(name)
            if groups is not None:
                self._files.move_to_end(name)
            return groups

    def keep(self, name: FileName, groups: Groups) -> None:
        with self._lock:
            before = self._files.pop(name, None)
            self._room += _bytes(before) - _bytes(groups)
            self._files[name] = groups
            while self._room < 0:
                _, oldest = self._files.popitem(last=False)
                self._room += _bytes(oldest)


def file_name(table_path: str, file: LiveFile, table: KeyTable) -> FileName:
    """The identity of Groups: the file, and the columns of its bounds."""
    return table_path, file.identity, table.lead_kinds


def _bytes(groups: Groups | None) -> int:
    return 0 if groups is None else groups.rows.nbytes + groups.boxes.nbytes + _ENTRY_BYTES
