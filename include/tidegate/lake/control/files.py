"""The parts of a control table: its first actions, its files with statistics, and what an existing
one must fulfil.

In:  a table of tables/, rows, a state of its log.
Out: actions; Parquet files; the files a filter leaves; LakeRefused for a table we would misread.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.delta.table.actions import metadata, now_ms, protocol
from tidegate.delta.table.arrow_types import delta_schema
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import Action, TableState
from tidegate.errors import LakeRefused
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.layout import layout_of, refusal
from tidegate.limits import CONTROL_PLAIN_BYTES_MAX, CONTROL_REMOVED_KEPT_HOURS
from tidegate.tables import Table

# Nobody reads old versions of a control table, but a reader that has just opened one still needs its files. The log
# reaches further back: VACUUM asks it which files were live when that time began (delta/cleaning/vacuum.py).
PROPERTIES: Final = {
    "delta.logRetentionDuration": "interval 6 hours",
    "delta.deletedFileRetentionDuration": f"interval {CONTROL_REMOVED_KEPT_HOURS} hours",
}
# Up to this a file fits a block of the disk either way, and takes half the time to write and to read unpacked.
_BOUNDED_CHARS_MAX: Final = 32  # longer texts have no bounds in the log: Delta itself cuts them there
_BOUNDED: Final = (pa.int64(), pa.string())

Filters = Sequence[tuple[str, str, Any]]  # (column, operator, value), all of which must hold


def creation(table: Table, properties: Mapping[str, str]) -> list[Action]:
    """The first actions of a new table."""
    schema = delta_schema(table.schema)
    made = metadata(schema, properties, partition_columns=table.partition_by, description=table.doc)
    return [protocol(()), made]


def added(state: TableState, table: Table) -> list[Action]:
    """The actions that give a table our schema; its other metadata stays."""
    if layout_of(state, table).is_current:
        return []
    schema = metadata(delta_schema(table.schema), {})["metaData"]["schemaString"]
    return [{"metaData": {**state.metadata, "schemaString": schema}}]


def check(state: TableState, table: Table) -> None:
    """Raise LakeRefused for a table whose rows we would misread: unknown columns, or a deletion
    vector.
    """
    if state.created and (what := _strange(state, table)):
        raise LakeRefused(what[0], where=state.place, remedy=what[1])


def _strange(state: TableState, table: Table) -> tuple[str, str] | None:
    """The fault of the table, and the way out; None when there is none."""
    if state.maps_columns:
        return "its columns are mapped to other names", "restore it: control tables are tidegate's own"
    if (layout := layout_of(state, table)).differs:
        return refusal(layout)
    if any(file.deletion_vector for file in state.files):
        purge = f"REORG TABLE delta.`{state.place}` APPLY (PURGE) in Spark, once"
        return "rows of it were deleted by deletion vectors, which control tables are read without", purge
    return None


def write_file(lake: LakeFiles, table: Table, rows: pa.Table, *, group_rows: int | None = None) -> dict[str, Any]:
    """One new file with these rows; the body of its `add` action. No commit names it yet. group_rows: a row group's."""
    path, sink = f"part-{uuid.uuid4().hex}.parquet", pa.BufferOutputStream()
    plain = rows.nbytes <= CONTROL_PLAIN_BYTES_MAX
    # A null in a column without nulls fails here. The comments are in the log, so the file doesn't repeat them.
    pq.write_table(
        rows.cast(table.schema),
        sink,
        compression="none" if plain else "zstd",
        use_dictionary=not plain,
        store_schema=False,
        row_group_size=group_rows,
    )
    return _body(lake, table, path, sink, _statistics(rows))


def write_pieces(lake: LakeFiles, table: Table, pieces: Iterable[pa.Table]) -> dict[str, Any]:
    """As write_file, one row group per piece, with one piece at a time in memory. pieces: at least
    one.
    """
    path, sink, statistics = f"part-{uuid.uuid4().hex}.parquet", pa.BufferOutputStream(), list[dict[str, Any]]()
    with pq.ParquetWriter(sink, table.schema.remove_metadata(), compression="zstd", store_schema=False) as writer:
        for rows in pieces:
            writer.write_table(rows.cast(table.schema), row_group_size=max(1, rows.num_rows))
            statistics.append(_statistics(rows))
    return _body(lake, table, path, sink, _folded(statistics))


def _body(
    lake: LakeFiles, table: Table, path: str, sink: pa.BufferOutputStream, statistics: Mapping[str, Any]
) -> dict[str, Any]:
    data = sink.getvalue().to_pybytes()
    lake.store(table.path).create(path, data)
    return {
        "path": path,
        "partitionValues": {},
        "size": len(data),
        "modificationTime": now_ms(),
        "stats": json.dumps(statistics, ensure_ascii=False, separators=(",", ":")),
    }


def _folded(pieces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Statistics of a file from those of its pieces. A column has bounds if it has them in every
    piece.
    """
    bounded = [name for name in pieces[0]["minValues"] if all(name in piece["minValues"] for piece in pieces)]
    return {
        "numRecords": sum(piece["numRecords"] for piece in pieces),
        "minValues": {name: min(piece["minValues"][name] for piece in pieces) for name in bounded},
        "maxValues": {name: max(piece["maxValues"][name] for piece in pieces) for name in bounded},
        "nullCount": {name: sum(piece["nullCount"][name] for piece in pieces) for name in pieces[0]["nullCount"]},
    }


def _statistics(rows: pa.Table) -> dict[str, Any]:
    """PROTOCOL.md, "Per-file Statistics": bounds of numbers and of short texts. Readers skip files
    by them.
    """
    bounds = {name: pc.min_max(rows[name]).as_py() for name in rows.column_names if rows[name].type in _BOUNDED}
    short = {name: bound for name, bound in bounds.items() if _is_short(bound["min"]) and _is_short(bound["max"])}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: bound["min"] for name, bound in short.items()},
        "maxValues": {name: bound["max"] for name, bound in short.items()},
        "nullCount": {name: rows[name].null_count for name in rows.column_names if not _is_nested(rows[name].type)},
    }


def _is_short(bound: int | str | None) -> bool:
    return isinstance(bound, int) or (isinstance(bound, str) and len(bound) <= _BOUNDED_CHARS_MAX)


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def chosen(state: TableState, filters: Filters) -> list[LiveFile]:
    """The files that may have rows passing all filters, by their statistics, in order of their
    paths.

    filters: on the columns in the log; in an older table these are other columns (see `parts`).
    """
    files = [file for file in state.files if all(_may_hold(file, *condition) for condition in filters)]
    return sorted(files, key=lambda file: file.path)


def _may_hold(file: LiveFile, column: str, operator: str, value: Any) -> bool:
    if operator == "in":
        return any(_may_hold(file, column, "=", option) for option in value)
    bounds = file.bounds(column)
    if bounds is None or not all(type(bound) is type(value) for bound in bounds):
        return True
    low, high = bounds
    may: dict[str, bool] = {
        "=": low <= value <= high,
        "==": low <= value <= high,
        ">": high > value,
        ">=": high >= value,
        "<": low < value,
        "<=": low <= value,
    }
    return may.get(operator, True)
