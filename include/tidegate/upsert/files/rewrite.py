"""Write the live rows of some files as new files: for compaction, and for a staged file whose rows
are mostly dead.

In:  files of one table, with the positions of their dead rows.
Out: `add` actions of files that hold the live rows. Memory is bounded by one new file
     (data_file.FILE_BYTES).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.delta.table.live_file import LiveFile
from tidegate.errors import SilverDamaged
from tidegate.lake.files import LakeFiles
from tidegate.merge.past import past_of
from tidegate.remedy import DAMAGED
from tidegate.upsert.deletions import deletion_vector
from tidegate.upsert.deletions.roaring import Positions
from tidegate.upsert.files import data_file
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.open_file import opened
from tidegate.upsert.files.partition_values import partition_value


def rewrite(
    lake: LakeFiles,
    table_path: str,
    files: Sequence[LiveFile],
    layout: FileLayout,
    *,
    stays: Callable[[pa.Table], pa.Table] | None = None,
    data_change: bool = False,
) -> list[dict[str, Any]]:
    """New files with the live rows of `files`, in order of partition, then key, within each new file. stays: chooses
    among them. Ended versions of rows have files of their own.
    """
    adds: list[dict[str, Any]] = []
    held: list[pa.Table] = []
    size = 0
    for file in files:
        for live in live_rows(lake, table_path, file, layout):
            rows = live if stays is None else stays(live)
            if not rows.num_rows:
                continue
            held.append(rows)
            size += rows.nbytes
            if size >= data_file.FILE_BYTES:
                adds += _write_apart(lake, table_path, held, layout)
                held, size = [], 0
    adds += _write_apart(lake, table_path, held, layout)
    return [{**add, "dataChange": data_change} for add in adds]


def _write_apart(
    lake: LakeFiles, table_path: str, parts: Sequence[pa.Table], layout: FileLayout
) -> list[dict[str, Any]]:
    ended_in = past_of(layout.schema.names).ended_in
    if not ended_in or not parts:
        return write_ordered(lake, table_path, parts, layout)
    rows = pa.concat_tables(parts)
    ends = rows.column(ended_in)
    if ends.null_count in (0, len(ends)):
        return write_ordered(lake, table_path, [rows], layout)
    has_end = pc.is_valid(ends)
    pieces = (rows.filter(has_end), rows.filter(pc.invert(has_end)))
    return [add for piece in pieces for add in write_ordered(lake, table_path, [piece], layout)]


def write_ordered(
    lake: LakeFiles, table_path: str, parts: Sequence[pa.Table], layout: FileLayout, *, named: bool = True
) -> list[dict[str, Any]]:
    """data_file.write of rows in any order. parts: of layout.fit()."""
    if not parts:
        return []
    rows = pa.concat_tables(parts)
    order = data_file.order(rows, layout)
    ordered = rows if order is None else data_file.gathered(rows, order)
    return data_file.write(lake, table_path, ordered, layout, named=named)


class UnpacksToTooMuch(Exception):  # noqa: N818 - the caller leaves the file as it is
    """A file's rows take more memory than the caller has for them."""


def live_rows(
    lake: LakeFiles,
    table_path: str,
    file: LiveFile,
    layout: FileLayout,
    dead: Positions | None = None,
    bytes_max: int | None = None,
) -> Iterator[pa.Table]:
    """A file's live rows in the layout, some at a time; columns that it lacks aren't read.

    dead: instead of the file's own deletion vector. bytes_max: of its rows in memory, live or not.
    Raises UnpacksToTooMuch, before a row is read.
    """
    if dead is None:
        vector = file.deletion_vector
        dead = deletion_vector.read(lake, table_path, vector) if vector else np.zeros(0, np.int64)
    where = f"{table_path}/{file.local_path}"
    with opened(lake, where) as parquet:
        if bytes_max is not None and _unpacked_bytes(parquet, layout) > bytes_max:
            raise UnpacksToTooMuch
        if len(dead) and dead[-1] >= parquet.metadata.num_rows:
            raise SilverDamaged(f"a deletion vector names row {dead[-1]}", where=where, remedy=DAMAGED)
        at = 0
        for piece in _pieces(parquet, _stored(parquet, file, layout)):
            first, last = np.searchsorted(dead, [at, at + piece.num_rows])
            rows = without(piece, dead[first:last] - at)
            at += piece.num_rows
            if rows.num_rows:
                yield layout.fit(_whole(rows, file, layout))


def rows_at(
    lake: LakeFiles, table_path: str, file: LiveFile, layout: FileLayout, positions: Positions
) -> Iterator[pa.Table]:
    """A file's rows at these ascending positions in the layout, in their order; of a piece of the file at a time."""
    with opened(lake, f"{table_path}/{file.local_path}") as parquet:
        at = 0
        for piece in _pieces(parquet, _stored(parquet, file, layout)):
            first, last = np.searchsorted(positions, [at, at + piece.num_rows])
            if first < last:
                yield layout.fit(_whole(piece.take(pa.array(positions[first:last] - at)), file, layout))
            at += piece.num_rows


def _stored(parquet: pq.ParquetFile, file: LiveFile, layout: FileLayout) -> list[str]:
    """The layout's columns that are read from a file. Newer Spark writes those of the path into it, too."""
    wanted = set(layout.schema.names) - file.partition_values.keys()
    return [name for name in parquet.schema_arrow.names if name in wanted]


def _unpacked_bytes(parquet: pq.ParquetFile, layout: FileLayout) -> int:
    """About what a file's rows take in memory: its pages unpacked, 8 bytes a cell at least."""
    described = parquet.metadata
    groups = map(described.row_group, range(described.num_row_groups))
    pages = sum(group.total_byte_size for group in groups)
    return int(max(pages, 8 * described.num_rows * len(layout.schema)))


def without(rows: pa.Table, dead: Positions) -> pa.Table:
    """The rows but for those at these positions."""
    if not len(dead):
        return rows
    keep = np.ones(rows.num_rows, np.bool_)
    keep[dead] = False
    return rows.filter(pa.array(keep))


def _pieces(parquet: pq.ParquetFile, names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows, a row group at a time. A row group that is much larger than ours (Spark's have 128 MB, packed) comes in
    parts.
    """
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        if group.total_byte_size <= 2 * data_file.ROW_GROUP_BYTES:
            yield parquet.read_row_group(number, columns=names, use_threads=False)
            continue
        rows = max(1, group.num_rows * data_file.ROW_GROUP_BYTES // group.total_byte_size)
        for batch in parquet.iter_batches(rows, row_groups=[number], columns=names, use_threads=False):
            yield pa.Table.from_batches([batch])


def _whole(rows: pa.Table, file: LiveFile, layout: FileLayout) -> pa.Table:
    """With the columns in the path, and those added after the file was written."""
    for field in layout.schema:
        if field.name in file.partition_values:
            value = partition_value(file.partition_values[field.name], field.type)
            rows = rows.append_column(field, pa.repeat(value, rows.num_rows))
        elif field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    return rows.select(layout.schema.names)
