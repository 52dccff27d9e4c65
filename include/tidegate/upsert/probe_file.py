"""Which live rows of a silver file belong to keys of the phase.

In:  a live file, the table of keys.
Out: their positions. Only the key's columns are read; rows that a deletion vector names already
     stay out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.delta.live_file import LiveFile
from tidegate.errors import LakeRefused
from tidegate.lake.files import LakeFiles
from tidegate.remedy import DAMAGED
from tidegate.upsert import deletion_vector
from tidegate.upsert.keys.bounds import KnownGroups, file_name
from tidegate.upsert.keys.columns import KeyColumns
from tidegate.upsert.keys.hash import Cells
from tidegate.upsert.keys.table import KeyTable
from tidegate.upsert.roaring import Positions


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


def probe_file(
    lake: LakeFiles, table_path: str, file: LiveFile, table: KeyTable, known: KnownGroups | None = None
) -> Hits:
    """known: earlier windows' knowledge of files, which grows; a file without a group for any key isn't opened again.
    Raises SchemaMismatch, LakeRefused or LakeUnavailable when the file can't be read for certain.
    """
    none = np.zeros(0, np.int64)
    name = file_name(table_path, file, table)
    groups = known.of(name) if known is not None else None
    if groups is not None and next(groups.that_may_hold(table), None) is None:
        return Hits(file, none, none, groups.total_rows)
    with KeyColumns(lake, table_path, file, table.key_schema) as columns:
        if groups is None:
            groups = columns.groups(table)
            if known is not None:
                known.keep(name, groups)
        parts = [at + table.probe(Cells(arrays)) for at, arrays in columns.batches(groups, table)]
        rows, where = columns.rows, columns.where
    matched = np.concatenate([none, *parts])
    if not len(matched) or file.deletion_vector is None:
        return Hits(file, matched, none, rows)
    dead = deletion_vector.read(lake, table_path, file.deletion_vector)
    if len(dead) and dead[-1] >= rows:
        raise LakeRefused(f"a deletion vector names row {dead[-1]} of {rows}", where=where, remedy=DAMAGED)
    return Hits(file, np.setdiff1d(matched, dead, assume_unique=True), dead, rows)
