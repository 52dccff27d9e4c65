"""Pack a changelog's small files into few, in order, so that old changes can go as whole files.

In:  a changelog, one state of it.
Out: commits that change no row.

Small files that follow one another become files of about CHANGELOG_PACKED_BYTES; large ones stay as
they are. In memory is a file as it will lie on the disk, and a row group of each of the files that
overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tidegate.changelog.merged import CommitRange, first_place, merged
from tidegate.delta.exchange import exchange
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.lake.control.files import write_pieces
from tidegate.lake.files import LakeFiles
from tidegate.limits import CHANGELOG_GROUP_BYTES, CHANGELOG_PACKED_BYTES, CONTROL_PACKED_FILES_MIN
from tidegate.tables.form import Table


def pack_in_order(lake: LakeFiles, table: Table, state: TableState) -> None:
    """Nothing where few files are small. Raises CommitConflict when another commit took one of them first."""
    if sum(file.size < CHANGELOG_PACKED_BYTES // 2 for file in state.files) < CONTROL_PACKED_FILES_MIN:
        return
    for run in _runs(state.files):
        exchange(
            lake.log(table.path),
            run,
            [write_pieces(lake, table, pieces_in_order(lake, table, run))],
            operation="OPTIMIZE",
        )


def _runs(files: Sequence[LiveFile]) -> Iterator[list[LiveFile]]:
    """Small files with no large one between them, in pieces of about a packed file."""
    run = list[LiveFile]()
    for file in sorted(files, key=first_place):
        is_large = file.size >= CHANGELOG_PACKED_BYTES // 2
        if is_large or sum(small.size for small in run) >= CHANGELOG_PACKED_BYTES:
            if len(run) > 1:
                yield run
            run = []
        if not is_large:
            run.append(file)
    if len(run) > 1:
        yield run


def pieces_in_order(lake: LakeFiles, table: Table, run: Sequence[LiveFile]) -> Iterator[pa.Table]:
    """All rows of files in order, a row group at a time."""
    parts, size = list[pa.Table](), 0
    for rows in merged(lake, table, run, CommitRange()):
        parts.append(rows)
        size += rows.nbytes
        if size >= CHANGELOG_GROUP_BYTES:
            yield pa.concat_tables(parts)
            parts, size = [], 0
    if parts:
        yield pa.concat_tables(parts)
