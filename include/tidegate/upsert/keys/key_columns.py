"""The key columns of a Parquet file, row group by row group, and which groups can't hold a changed key.

In:  a live file of silver, the key's columns as silver has them.
Out: arrays of the key's columns with the position of their first row. Memory is bounded by a row
     group's key columns, and by _BATCH_ROWS where a row group is larger than that.

Files come from Spark, delta-rs and tidegate, so a column's type may be another form of silver's. A
form with a possible wrong comparison, or a missing column, is an error: a missed key would leave
two rows of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from tidegate.delta.table.live_file import LiveFile
from tidegate.errors import SchemaMismatch, SilverDamaged
from tidegate.lake.files import LakeFiles
from tidegate.remedy import DAMAGED, REFILL
from tidegate.upsert.files.open_file import opened
from tidegate.upsert.files.partition_values import partition_value
from tidegate.upsert.keys.bounds import Groups
from tidegate.upsert.keys.candidates import lead_bounds
from tidegate.upsert.keys.probe_table import WHOLE, KeyTable

_BATCH_ROWS: Final = 1 << 20


class KeyColumns:
    """An open data file. rows: in the file, dead ones included."""

    def __init__(self, lake: LakeFiles, table_path: str, file: LiveFile, key_schema: pa.Schema) -> None:
        self.where = f"{table_path}/{file.local_path}"
        self._file, self._key_schema = file, key_schema
        self._stored = [field for field in key_schema if field.name not in file.partition_values]
        self._parquet = opened(lake, self.where)
        self.rows = int(self._parquet.metadata.num_rows)
        if file.rows is not None and file.rows != self.rows:
            raise SilverDamaged(
                f"a data file has {self.rows} rows, the log says {file.rows}", where=self.where, remedy=DAMAGED
            )
        self._indices = self._find()

    def close(self) -> None:
        self._parquet.close(force=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find(self) -> list[int]:
        """Indices of the key's leaf columns. A nested column of that name has another path."""
        schema = self._parquet.metadata.schema
        leaves = {schema.column(i).path: i for i in range(len(schema)) if schema.column(i).max_repetition_level == 0}
        arrow = self._parquet.schema_arrow
        for field in self._stored:
            if field.name not in leaves or arrow.get_field_index(field.name) < 0:
                raise SchemaMismatch(
                    f"a data file has no key column {field.name}",
                    where=self.where,
                    remedy=REFILL,
                )
            in_file = arrow.field(field.name).type
            if not _fits(in_file, field.type):
                raise SchemaMismatch(
                    f"key column {field.name} is {in_file} in a data file, {field.type} in the table",
                    where=self.where,
                    remedy=REFILL,
                )
        return [leaves[field.name] for field in self._stored]

    def groups(self, table: KeyTable) -> Groups:
        """Bounds of every row group's leads, from the file's own statistics."""
        count = self._parquet.metadata.num_row_groups
        rows = [self._parquet.metadata.row_group(group).num_rows for group in range(count)]
        boxes = [self._box(group, table) for group in range(count)]
        shape = (count, len(table.lead_names), 2)
        return Groups(np.array(rows, np.int64), np.array(boxes, np.int64).reshape(shape))

    def batches(self, groups: Groups, table: KeyTable) -> Iterator[tuple[int, list[pa.Array]]]:
        """(position of the first row, arrays of the key's columns in the key's order) of what table can't rule out."""
        for group, rows, at in groups.that_may_hold(table):
            yield from self._group(group, rows, at)

    def every_batch(self) -> Iterator[tuple[int, list[pa.Array]]]:
        """As batches, of the whole file."""
        at = 0
        for group in range(self._parquet.metadata.num_row_groups):
            rows = self._parquet.metadata.row_group(group).num_rows
            yield from self._group(group, rows, at)
            at += rows

    def _group(self, group: int, rows: int, at: int) -> Iterator[tuple[int, list[pa.Array]]]:
        if rows <= _BATCH_ROWS:
            read = self._parquet.reader.read_row_group(group, column_indices=self._indices, use_threads=False)
            yield at, self._in_order(read, rows)
            return
        names = [field.name for field in self._stored]
        for batch in self._parquet.iter_batches(_BATCH_ROWS, [group], columns=names, use_threads=False):
            yield at, self._in_order(batch, batch.num_rows)
            at += batch.num_rows

    def _in_order(self, read: Any, rows: int) -> list[pa.Array]:
        values = self._file.partition_values
        columns = []
        for field in self._key_schema:
            if field.name in values:
                columns.append(pa.repeat(partition_value(values[field.name], field.type), rows))
            else:
                columns.append(_as_declared(read.column(field.name), field.type))
        return columns

    def _box(self, group: int, table: KeyTable) -> list[tuple[int, int]]:
        described = self._parquet.metadata.row_group(group)
        stored = dict(zip((field.name for field in self._stored), self._indices, strict=True))
        return [
            _lead_bounds(described.column(stored[name]).statistics, table.key_schema.field(name).type)
            if name in stored
            else WHOLE
            for name in table.lead_names
        ]


def _lead_bounds(statistics: Any, kind: pa.DataType) -> tuple[int, int]:
    if statistics is None or not statistics.has_min_max:
        return WHOLE
    try:
        return lead_bounds(statistics.min, statistics.max, kind)
    except (ValueError, OverflowError, pa.ArrowException):
        return WHOLE


def _as_declared(column: Any, kind: pa.DataType) -> Any:
    """Only a decimal's scale could make equal values differ in form; _fits has seen to it that scales agree."""
    return column.cast(kind) if pa.types.is_decimal(kind) and column.type != kind else column


_FAMILIES: Final = (
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_floating,
)

# delta-rs stores views.
_TEXTS: Final = (
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
)


def _fits(in_file: pa.DataType, declared: pa.DataType) -> bool:
    """Whether a file's type is a form of the declared one that compares the same."""
    types = pa.types
    if types.is_dictionary(in_file):
        return _fits(in_file.value_type, declared)
    if in_file == declared:
        return True
    if types.is_integer(declared):
        return bool(types.is_signed_integer(in_file) and in_file.bit_width <= declared.bit_width)
    if types.is_decimal(declared):
        return bool(
            types.is_decimal(in_file) and in_file.scale == declared.scale and in_file.precision <= declared.precision
        )
    if types.is_timestamp(declared):
        return bool(types.is_timestamp(in_file))
    if _textual(declared):
        return _textual(in_file)
    return any(family(declared) and family(in_file) for family in _FAMILIES)


def _textual(kind: pa.DataType) -> bool:
    return kind in _TEXTS or pa.types.is_fixed_size_binary(kind)
