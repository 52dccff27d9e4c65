"""Parquet files of a silver table, and the `add` actions that adopt them.

In:  rows in a table's layout.
Out: files in the table's folder without a name in a log yet (VACUUM removes those adopted by no
     commit), and their actions.

Plain Parquet for Spark, delta-rs, DuckDB and Polars: no Arrow schema inside, microseconds, optional
columns. There are no dictionaries, since they cost more CPU than they save here. The key has the
encoding that is cheapest to read. Rows are in the order of partition, then key, so row groups and
files have narrow bounds.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.errors import UnsupportedValue
from tidegate.lake.files import LakeFiles
from tidegate.limits import MIB
from tidegate.tables import COMMIT_TS
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.partition_values import folder, partition_text
from tidegate.upsert.files.statistics import Seen

FILE_BYTES: Final = 256 * MIB  # in memory; a Parquet file is usually smaller
ROW_GROUP_BYTES: Final = 32 * MIB
_ROW_GROUP_ROWS: Final = 1 << 17
_RUN_ROWS: Final = 1 << 10  # on average; shorter runs cost less when they are copied
# Against snappy it takes two thirds of the CPU and of the bytes, for rows of text and numbers.
_CODEC: Final = "zstd"
_CODEC_LEVEL: Final = 1


def order(rows: pa.Table, layout: FileLayout) -> npt.NDArray[np.int64] | None:
    """Indices that bring rows into the order of partition, then key; None when they are in it."""
    names = [*layout.partition_columns, *(name for name in layout.key if name not in layout.partition_columns)]
    if not names or rows.num_rows < 2:
        return None
    columns = [rows.column(name) for name in names]
    if len(columns) == 1 and pc.all(pc.less_equal(columns[0][:-1], columns[0][1:])).as_py():
        return None
    keys = pa.table(columns, names=[str(i) for i in range(len(names))])
    sorted_at = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    indices: npt.NDArray[np.int64] = sorted_at.to_numpy().astype(np.int64)
    return indices


def gathered(rows: pa.Table, indices: npt.NDArray[np.int64]) -> pa.Table:
    """The rows at these indices, in their order. Runs of neighbours, as ranges of one table are, are not copied."""
    starts = np.concatenate(([0], np.flatnonzero(np.diff(indices) != 1) + 1))
    if len(starts) * _RUN_ROWS > len(indices):
        return rows.take(pa.array(indices))
    lengths = np.diff(starts, append=len(indices))
    runs = zip(indices[starts].tolist(), lengths.tolist(), strict=True)
    return pa.concat_tables([rows.slice(first, length) for first, length in runs])


def write(
    lake: LakeFiles, table_path: str, rows: pa.Table, layout: FileLayout, *, named: bool = True
) -> list[dict[str, Any]]:
    """Write rows (in order(); of layout.fit()) as files of at most FILE_BYTES each, per partition.

    table_path: relative to the lake. named: False where the caller puts their names on disk before a commit
    (LakeFiles.settle_names). Gives `add` actions whose files hold the rows one after the other.
    """
    actions = []
    for start, stop in _partitions(rows, layout.partition_columns):
        pieces = _pieces(rows.slice(start, stop - start))
        actions += [_write_file(lake, table_path, piece, layout, named=named) for piece in pieces]
    return actions


def _partitions(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Runs of rows with equal partition values."""
    if not rows.num_rows:
        return
    changes = np.zeros(rows.num_rows - 1, np.bool_)
    for name in names:
        codes = rows.column(name).combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
        changes |= codes[1:] != codes[:-1]
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), rows.num_rows]
    yield from pairwise(edges)


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    count = max(1, -(-rows.nbytes // FILE_BYTES))
    step = -(-rows.num_rows // count)
    for at in range(0, rows.num_rows, step):
        yield rows.slice(at, step)


def _write_file(lake: LakeFiles, table_path: str, rows: pa.Table, layout: FileLayout, *, named: bool) -> dict[str, Any]:
    values = {name: partition_text(rows.column(name)[0].as_py()) for name in layout.partition_columns}
    written = write_pieces(lake, table_path, [rows], values, layout, named=named)
    assert written is not None, "there are rows"
    return written


def write_pieces(
    lake: LakeFiles,
    table_path: str,
    pieces: Iterable[pa.Table],
    values: Mapping[str, str | None],
    layout: FileLayout,
    *,
    named: bool = True,
) -> dict[str, Any] | None:
    """One file of rows that come in pieces (of layout.fit()), in their order; None when none come.

    table_path, named: as write's. values: of the partition that all rows are of, as the log has them. Gives the
    file's `add` action. Memory is that of one piece. Raises UnsupportedValue.
    """
    coming = iter(pieces)
    first = next(coming, None)
    if first is None:
        return None
    within = folder(values)
    path = f"{within}part-00000-{uuid.uuid4()}-c000.{_CODEC}.parquet"
    if within:
        lake.make_folder(f"{table_path}/{within}".rstrip("/"))
    seen = Seen(layout.indexed)
    try:
        with lake.filesystem.open_output_stream(lake.local(f"{table_path}/{path}")) as sink:
            with _writer(sink, first.select(layout.stored.names).schema, layout) as writer:
                for rows in chain((first,), coming):
                    stored = rows.select(layout.stored.names)
                    _append(writer, stored)
                    seen.take(stored)
            size = sink.tell()
    except BaseException:
        with suppress(OSError):  # VACUUM takes what stays
            lake.filesystem.delete_file(lake.local(f"{table_path}/{path}"))
        raise
    lake.settle_file(f"{table_path}/{path}")
    if named:
        lake.settle_names(table_path, [path])
    return {
        "path": quote(path, safe="/=-_.~!$&'()*+,;:@"),
        "partitionValues": dict(values),
        "size": size,
        "modificationTime": int(time.time() * 1000),
        "dataChange": True,
        "stats": seen.text(),
    }


def _writer(sink: Any, schema: pa.Schema, layout: FileLayout) -> pq.ParquetWriter:
    packed = [field.name for field in schema if _packs(field, layout)]
    codecs = {field.name: "none" if _is_narrow_key(field, layout) else _CODEC for field in schema}
    return pq.ParquetWriter(
        sink,
        schema,
        compression=codecs,
        compression_level={name: _CODEC_LEVEL for name, codec in codecs.items() if codec == _CODEC},
        use_dictionary=False,
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        write_statistics=[name for name in layout.indexed if not pa.types.is_nested(schema.field(name).type)],
        coerce_timestamps="us",
        store_schema=False,
        store_decimal_as_integer=True,
    )


def _append(writer: pq.ParquetWriter, rows: pa.Table) -> None:
    width = max(1, rows.nbytes // max(1, rows.num_rows))
    try:
        writer.write_table(rows, row_group_size=max(1024, min(_ROW_GROUP_ROWS, ROW_GROUP_BYTES // width)))
    except pa.ArrowInvalid as error:
        raise UnsupportedValue(
            f"rows can't be written as Parquet: {error}", remedy="set apply.writer: merge in the pipeline file"
        ) from None


def _is_narrow_key(field: pa.Field, layout: FileLayout) -> bool:
    """Whether a column is a narrow key column, stored unpacked: every window reads it whole, and to unpack it would
    cost six times the reading.
    """
    textual = pa.types.is_string(field.type) or pa.types.is_binary(field.type)
    return field.name in layout.key and not textual


def _packs(field: pa.Field, layout: FileLayout) -> bool:
    """Whether delta encoding makes the column smaller: integers of the key, which are in order, and commit_ts."""
    fit = pa.types.is_int32(field.type) or pa.types.is_int64(field.type)
    return bool(fit and (field.name in layout.key or field.name == COMMIT_TS))
