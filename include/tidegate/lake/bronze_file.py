"""One Parquet file of bronze/segments: written by pyarrow, committed by delta-rs.

In:  segments of one day.
Out: a file whose row groups hold few segments each, so that a worker reads just its own; the statistics that
     readers prune by.

pyarrow packs a payload 1.5 times as fast as delta-rs's own writer. Payload and context get no dictionary and
no statistics: both cost CPU and help nobody.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.binlog.segment import Segment
from tidegate.limits import SEGMENT_BYTES_MAX
from tidegate.tables import SEGMENTS

_BULKY: Final = ("context", "payload")
_FILE_SCHEMA: Final = pa.schema([field for field in SEGMENTS.schema if field.name not in SEGMENTS.partition_by])
_ROW_GROUP_BYTES: Final = SEGMENT_BYTES_MAX
_STATISTICS: Final = ("seq", "start_pos", "end_pos", "prev_commit_ts", "min_commit_ts", "max_commit_ts", "resolved_ts")


def write_file(sink: Any, segments: Sequence[Segment], compression: str) -> None:
    """Write segments to an open binary file. compression: "none", "lz4", "zstd"."""
    with pq.ParquetWriter(
        sink,
        _FILE_SCHEMA,
        use_dictionary=False,
        compression={name: compression if name in _BULKY else "none" for name in _FILE_SCHEMA.names},
        compression_level=dict.fromkeys(_BULKY, 1) if compression == "zstd" else None,
        write_statistics=[name for name in _FILE_SCHEMA.names if name not in (*_BULKY, "tables")],
        data_page_size=_ROW_GROUP_BYTES,
        write_batch_size=1,
    ) as writer:
        for group in _groups(segments):
            writer.write_table(_table(group), row_group_size=len(group))


def statistics(segments: Sequence[Segment]) -> str:
    """The `stats` of an add action (Delta protocol, "Per-file Statistics")."""
    found = {name: [getattr(segment, name) for segment in segments] for name in _STATISTICS}
    return json.dumps(
        {
            "numRecords": len(segments),
            "minValues": {name: min(values) for name, values in found.items()},
            "maxValues": {name: max(values) for name, values in found.items()},
            "nullCount": dict.fromkeys(_STATISTICS, 0),
        }
    )


def by_day(segments: Sequence[Segment]) -> dict[date, list[Segment]]:
    """A batch may cross midnight (UTC): one file per day."""
    days: dict[date, list[Segment]] = {}
    for segment in segments:
        days.setdefault(segment.captured_at.date(), []).append(segment)
    return days


def _groups(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Runs of segments of at most _ROW_GROUP_BYTES, or one that is larger."""
    groups: list[list[Segment]] = []
    size = 0
    for segment in segments:
        if not groups or size + len(segment.payload) > _ROW_GROUP_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(segment)
        size += len(segment.payload)
    return groups


def _table(segments: Sequence[Segment]) -> pa.Table:
    rows = [segment.to_row() for segment in segments]
    columns = []
    for field in _FILE_SCHEMA:
        cells = [row[field.name] for row in rows]
        columns.append(_binary(cells) if field.name in _BULKY else pa.array(cells, field.type))
    return pa.Table.from_arrays(columns, schema=_FILE_SCHEMA)


def _binary(cells: Sequence[bytes | memoryview]) -> pa.ChunkedArray:
    """large_binary over the cells' own memory."""
    chunks = [
        pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), 1, [None, pa.py_buffer(np.array([0, len(cell)], np.int64)), pa.py_buffer(cell)]
        )
        for cell in cells
    ]
    return pa.chunked_array(chunks, pa.large_binary())
