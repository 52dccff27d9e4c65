"""Few new rows of a table, in one file with the live rows of its small files.

In:  a window's rows that no file has yet, the table's live files, and where rows of them die.
Out: a commit's actions: small files that go, and the file that takes their place.

A window of a quiet table has a few rows. If each window wrote a file of its own, and deletion
vectors for earlier small files, every later window would open all of them, until eight are packed
(worth_rewriting.py). Instead one small file has these rows, and each window reads and writes it
again until it is too large. SMALL_FILE_BYTES bounds the bytes that a window writes beyond its own
rows, and that VACUUM removes later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidegate.delta.table.live_file import LiveFile
from tidegate.lake.files import LakeFiles
from tidegate.limits import MIB
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import UnpacksToTooMuch, live_rows, write_ordered
from tidegate.upsert.keys.probe_file import Hits

# Most bytes of the Parquet files that are joined with one window's rows. Cuts keep each window's files for a week. With
# twice this bound they would take twice the bytes of separate files, and save no more CPU.
SMALL_FILE_BYTES: Final = MIB // 128
# Most bytes in memory of rows that wait for the commit.
_FEW_BYTES: Final = MIB // 16
# Most bytes in memory of a small file's rows: equal rows may be packed a thousandfold.
_UNPACKED_BYTES: Final = MIB // 2


@dataclass(frozen=True, slots=True)
class Together:
    """joined: small files whose live rows go into the new file; the hits of those that have any. others: hits of files
    that stay.
    """

    joined: tuple[LiveFile | Hits, ...]
    others: tuple[Hits, ...]

    @property
    def files(self) -> list[LiveFile]:
        return [part.file if isinstance(part, Hits) else part for part in self.joined]

    @property
    def rows_removed(self) -> int:
        return sum(len(part.fresh) for part in self.joined if isinstance(part, Hits))


def are_few(rows: pa.Table, layout: FileLayout) -> bool:
    """Whether rows are so few that they wait in memory for the commit. Those of several partitions need files."""
    return rows.num_rows > 0 and rows.nbytes <= _FEW_BYTES and not layout.partition_columns


def choose(few: Sequence[pa.Table], files: Iterable[LiveFile], hits: Sequence[Hits]) -> Together:
    """Files with dying rows come first: they would get a deletion vector. Then the smallest."""
    if sum(rows.nbytes for rows in few) > _FEW_BYTES:
        return Together((), tuple(hits))
    of = {id(hit.file): hit for hit in hits}
    small = [file for file in files if file.size <= SMALL_FILE_BYTES]
    small.sort(key=lambda file: (id(file) not in of, file.size, file.path))
    joined, left = list[LiveFile | Hits](), SMALL_FILE_BYTES
    for file in small:
        if file.size <= left:
            joined.append(of.pop(id(file), file))
            left -= file.size
    return Together(tuple(joined), tuple(of.values()))


def read(
    lake: LakeFiles, table_path: str, few: Sequence[pa.Table], together: Together, layout: FileLayout
) -> tuple[list[pa.Table], Together]:
    """The new file's rows, and the files that they come from. Files whose rows take too many bytes
    stay.
    """
    rows, joined, others = list(few), list[LiveFile | Hits](), list(together.others)
    for part in together.joined:
        file, dead = (part.file, part.dead_after) if isinstance(part, Hits) else (part, None)
        try:
            rows += live_rows(lake, table_path, file, layout, dead, _UNPACKED_BYTES)
            joined.append(part)
        except UnpacksToTooMuch:
            others += [part] if isinstance(part, Hits) else []
    return rows, Together(tuple(joined), tuple(others))


def whole(lake: LakeFiles, table_path: str, file: LiveFile, layout: FileLayout) -> pa.Table | None:
    """All rows of a small file, dead ones too; None for a larger file, and for one whose rows take too much memory."""
    if file.size > SMALL_FILE_BYTES:
        return None
    try:
        parts = list(live_rows(lake, table_path, file, layout, np.zeros(0, np.int64), _UNPACKED_BYTES))
    except UnpacksToTooMuch:
        return None
    return pa.concat_tables(parts) if parts else None


def write(
    lake: LakeFiles, table_path: str, rows: Sequence[pa.Table], layout: FileLayout
) -> Sequence[Mapping[str, Any]]:
    """The new file's `add` action; its name isn't on disk yet. None when no row is live."""
    return write_ordered(lake, table_path, rows, layout, named=False)
