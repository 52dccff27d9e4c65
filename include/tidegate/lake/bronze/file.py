"""One Parquet file of bronze/segments: written by pyarrow, and its entry in the log.

In:  segments of one day.
Out: a file with few segments per row group, so a worker reads only its own; statistics for readers.

pyarrow compresses a payload 1.5 times as fast as delta-rs's own writer. Payload and context get no
dictionary and no statistics: both would cost CPU and help nobody.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.delta.stores.store import make_folder, sync
from tidegate.errors import StreamCorrupt
from tidegate.lake.files import LakeFiles
from tidegate.lake.storage.store_error import StoreError
from tidegate.limits import PUT_BYTES_MAX, SEGMENT_BYTES_MAX
from tidegate.segments.segment import Segment
from tidegate.tables import SEGMENTS

_BULKY: Final = ("context", "payload")
_PACKED: Final = (*_BULKY, "gtid_executed")  # the GTID set of an old topology has kilobytes, in each row
FILE_SCHEMA: Final = pa.schema([field for field in SEGMENTS.schema if field.name not in SEGMENTS.partition_by])
_KINDS: Final = (
    lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    pa.types.is_timestamp,
)
ROW_GROUP_BYTES: Final = SEGMENT_BYTES_MAX
STATISTICS: Final = ("seq", "start_pos", "end_pos", "prev_commit_ts", "min_commit_ts", "max_commit_ts", "resolved_ts")


def store_file(lake: LakeFiles, path: str, segments: Sequence[Segment], compression: str) -> int:
    """Write segments to a new file at a path within the lake. Returns its bytes. The name must be
    unused.

    A small file goes to an object store in one request: a stream takes three.
    """
    if lake.is_local or sum(len(segment.payload) for segment in segments) > PUT_BYTES_MAX:
        with created(lake, path) as file:
            write_file(file, segments, compression)
            return int(file.tell())
    sink = pa.BufferOutputStream()
    write_file(sink, segments, compression)
    data = sink.getvalue().to_pybytes()
    folder, _, name = path.rpartition("/")
    lake.store(folder).create(name, data)  # if the name is taken, this request was sent twice: the file is ours
    return len(data)


def write_file(sink: Any, segments: Sequence[Segment], compression: str) -> None:
    """Write segments to an open binary file. compression: "none", "lz4", "zstd"."""
    with opened(sink, compression) as writer:
        for group in _groups(segments):
            writer.write_table(_table(group), row_group_size=len(group))


def opened(sink: Any, compression: str) -> pq.ParquetWriter:
    """A writer of bronze's Parquet files. Write each row group as one table."""
    return pq.ParquetWriter(
        sink,
        FILE_SCHEMA,
        use_dictionary=False,
        compression={name: compression if name in _PACKED else "none" for name in FILE_SCHEMA.names},
        compression_level=dict.fromkeys(_PACKED, 1) if compression == "zstd" else None,
        write_statistics=[name for name in FILE_SCHEMA.names if name not in (*_PACKED, "tables")],
        data_page_size=ROW_GROUP_BYTES,
        write_batch_size=1,
        write_page_checksum=True,
    )


@contextmanager
def reading(lake: LakeFiles, path: str) -> Iterator[pq.ParquetFile]:
    """One of bronze's files, by its path in the Delta log. Raises StreamCorrupt if its bytes have
    changed.

    Each page has a checksum: without it, a changed column beside the payload would go unnoticed.
    (The payload has a checksum of its own.)
    """
    try:
        with lake.open(f"{SEGMENTS.path}/{unquote(path)}") as handle:
            # Read ahead where a read is a request: the columns of a row group lie side by side.
            file = pq.ParquetFile(handle, pre_buffer=not lake.is_local, page_checksum_verification=True)
            footer = file.schema_arrow  # the footer has no checksum: its columns are compared instead
            if not all(_is_like(footer.field(wanted.name).type, wanted.type) for wanted in FILE_SCHEMA):
                raise pa.ArrowInvalid("its footer names other columns or types than bronze's")
            yield file
    except (pa.ArrowException, ValueError, KeyError, OverflowError, OSError) as error:
        # An error of the store may pass, so it isn't damage. On a disk it has an errno, elsewhere a class of its own.
        if isinstance(error, StoreError | FileNotFoundError) or (isinstance(error, OSError) and error.errno):
            raise
        line = str(error).split("\n", 1)[0]
        raise StreamCorrupt(
            f"a file of bronze can't be read, its bytes were changed after they were written: {line}",
            where=f"{lake.uri(SEGMENTS.path)}/{path}",
            remedy="restore this file from a copy; nothing of it was applied",
        ) from error


def _is_like(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column holds values of the wanted type. Spark's OPTIMIZE writes Arrow's large types as plain ones."""
    if pa.types.is_list(wanted):
        return pa.types.is_list(given) and _is_like(given.value_type, wanted.value_type)
    return given == wanted or any(kind(given) and kind(wanted) for kind in _KINDS)


def as_written(rows: pa.Table) -> pa.Table:
    """A row group with the columns, types and order of bronze, whoever wrote it."""
    if rows.schema.equals(FILE_SCHEMA):
        return rows
    return rows.select(FILE_SCHEMA.names).cast(FILE_SCHEMA).sort_by("seq")


@contextmanager
def created(lake: LakeFiles, path: str) -> Iterator[Any]:
    """A new file at a path within the lake, to be written; on disk, or in the store, when the block ends well."""
    if not lake.is_local:
        with lake.filesystem.open_output_stream(lake.local(path)) as stream:
            yield stream
        return
    target = lake.uri(path)
    folder = target.rpartition("/")[0]
    if not os.path.isdir(folder):  # noqa: PTH112 - one look; a landing costs little else
        make_folder(folder)
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        # A file of Arrow: into a file of Python, Arrow would copy all that it writes.
        with pa.OSFile(target, "wb") as file:
            yield file
        os.fsync(handle)
    finally:
        os.close(handle)
    sync(folder)


def statistics(segments: Sequence[Segment]) -> str:
    """The `stats` of an add action (Delta protocol, "Per-file Statistics")."""
    columns = {name: [getattr(segment, name) for segment in segments] for name in STATISTICS}
    return statistics_of(len(segments), {name: (min(values), max(values)) for name, values in columns.items()})


def statistics_of(rows: int, bounds: Mapping[str, tuple[int, int]]) -> str:
    """As `statistics`, from the smallest and largest value of each column of STATISTICS."""
    return json.dumps(
        {
            "numRecords": rows,
            "minValues": {name: low for name, (low, _) in bounds.items()},
            "maxValues": {name: high for name, (_, high) in bounds.items()},
            "nullCount": dict.fromkeys(bounds, 0),
        }
    )


def added(path: str, size: int, partition: Mapping[str, str], stats: str) -> dict[str, Any]:
    """The body of an `add` action, without dataChange. path: relative to the table. size: bytes."""
    return {
        "path": quote(path, safe="/="),
        "partitionValues": dict(partition),
        "size": size,
        "modificationTime": int(time.time() * 1000),
        "stats": stats,
    }


def by_day(segments: Sequence[Segment]) -> list[tuple[date, list[Segment]]]:
    """A file for each run of segments with the same day (UTC).

    Never one file per day: a clock set back may make a day come twice, and a file's seqs must have
    no holes.
    """
    return [(day, list(run)) for day, run in groupby(segments, key=lambda segment: segment.captured_at.date())]


def _groups(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Runs of segments of at most ROW_GROUP_BYTES together; a larger segment is alone."""
    groups: list[list[Segment]] = []
    size = 0
    for segment in segments:
        if not groups or size + len(segment.payload) > ROW_GROUP_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(segment)
        size += len(segment.payload)
    return groups


def _table(segments: Sequence[Segment]) -> pa.Table:
    rows = [segment.to_row() for segment in segments]
    columns = []
    for field in FILE_SCHEMA:
        cells = [row[field.name] for row in rows]
        columns.append(_binary(cells) if field.name in _BULKY else pa.array(cells, field.type))
    return pa.Table.from_arrays(columns, schema=FILE_SCHEMA)


def _binary(cells: Sequence[bytes | memoryview]) -> pa.ChunkedArray:
    """large_binary over the cells' own memory."""
    chunks = [
        pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), 1, [None, pa.py_buffer(np.array([0, len(cell)], np.int64)), pa.py_buffer(cell)]
        )
        for cell in cells
    ]
    return pa.chunked_array(chunks, pa.large_binary())
