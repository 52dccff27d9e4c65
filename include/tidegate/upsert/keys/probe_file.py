"""Find the live rows of a silver file that have a key of the phase.

In:  a live file, the table of keys.
Out: their positions. Only the key's columns are read, or an index of them; rows that a deletion vector names already
     stay out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tidegate.delta.table.live_file import LiveFile
from tidegate.errors import SilverDamaged
from tidegate.lake.files import LakeFiles
from tidegate.remedy import DAMAGED
from tidegate.upsert.deletions import deletion_vector
from tidegate.upsert.deletions.roaring import Positions
from tidegate.upsert.keys.bounds import KnownGroups, file_name
from tidegate.upsert.keys.hash import Cells
from tidegate.upsert.keys.key_columns import KeyColumns
from tidegate.upsert.keys.key_indexes import KeyIndexes
from tidegate.upsert.keys.probe_table import KeyTable

_NONE: Final[Positions] = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Hits:
    """fresh: ascending positions of newly dead rows. dead: the earlier ones. rows: in the file, all of them."""

    file: LiveFile
    fresh: Positions
    dead: Positions
    rows: int

    @property
    def live_after(self) -> int:
        return self.rows - len(self.dead) - len(self.fresh)

    @property
    def dead_after(self) -> Positions:
        if not len(self.dead):
            return self.fresh
        both = np.concatenate([self.dead, self.fresh])
        both.sort(kind="stable")  # two runs: merged in one pass
        return both


@dataclass(frozen=True, slots=True)
class Earlier:
    """Knowledge of silver's files from earlier windows. It grows.

    groups: a file without a row group for any key isn't opened again. indexes: of files that are looked through often.
    """

    groups: KnownGroups
    indexes: KeyIndexes


def probe_file(
    lake: LakeFiles, table_path: str, file: LiveFile, table: KeyTable, earlier: Earlier | None = None
) -> Hits:
    """Raises SchemaMismatch, SilverDamaged or LakeUnavailable when the file can't be read for certain."""
    name = file_name(table_path, file, table)
    groups = earlier.groups.of(name) if earlier is not None else None
    to_read = file.rows if groups is None else groups.rows_that_may_hold(table)
    if groups is not None and not to_read:
        return Hits(file, _NONE, _NONE, groups.total_rows)
    index = earlier.indexes.of(table_path, file, table, to_read) if earlier is not None and to_read else None
    if index is not None:
        return _live(lake, table_path, file, index.find(table.hashes), index.rows)
    with KeyColumns(lake, table_path, file, table.key_schema) as columns:
        if groups is None:
            groups = columns.groups(table)
            if earlier is not None:
                earlier.groups.keep(name, groups)
        parts = [at + table.probe(Cells(arrays)) for at, arrays in columns.batches(groups, table)]
        rows = columns.rows
    if earlier is not None:
        earlier.indexes.looked_through(table_path, file, table, groups.rows_that_may_hold(table))
    return _live(lake, table_path, file, np.concatenate([_NONE, *parts]), rows)


def _live(lake: LakeFiles, table_path: str, file: LiveFile, matched: Positions, rows: int) -> Hits:
    """Those of a file's matched rows that its deletion vector doesn't name."""
    if not len(matched) or file.deletion_vector is None:
        return Hits(file, matched, _NONE, rows)
    dead = deletion_vector.read(lake, table_path, file.deletion_vector)
    if len(dead) and dead[-1] >= rows:
        where = f"{table_path}/{file.local_path}"
        raise SilverDamaged(f"a deletion vector names row {dead[-1]} of {rows}", where=where, remedy=DAMAGED)
    return Hits(file, np.setdiff1d(matched, dead, assume_unique=True), dead, rows)
