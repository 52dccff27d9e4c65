"""The layout of a silver table's data files: columns, partitions, key, columns with statistics.

In:  a snapshot's schema, partition columns and properties; the names of the key.
Out: FileLayout, small and picklable: workers write files by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from tidegate.delta.table.arrow_types import arrow_schema
from tidegate.delta.table.state import TableState
from tidegate.errors import SchemaMismatch
from tidegate.merge.silver_sql import STATISTICS_COLUMNS
from tidegate.remedy import REFILL
from tidegate.tables import SYSTEM_PREFIX

_OFFSET_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class FileLayout:
    """schema: all columns in table order with declared nullability. key: names, in the key's order.

    indexed: columns with statistics, in table order. Partition columns lie in a file's path, not in the file.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    partition_columns: tuple[str, ...]
    indexed: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: TableState, key: Sequence[str]) -> FileLayout:
        """Raises SchemaMismatch when a key column isn't in the table."""
        schema = arrow_schema(snapshot.schema)
        missing = [name for name in key if name not in schema.names]
        if missing:
            raise SchemaMismatch(
                f"key column {missing[0]} is not in the silver table",
                where=snapshot.place,
                remedy=REFILL,
            )
        partitions = snapshot.partition_columns
        indexed = _indexed(schema, key, partitions, snapshot.configuration)
        return cls(schema, tuple(key), partitions, indexed)

    @classmethod
    def planned(cls, snapshot: TableState, columns: Mapping[str, pa.DataType], key: Sequence[str]) -> FileLayout:
        """The layout that the table will have once it has these columns: those of the snapshot first, in its order."""
        held = [field["name"] for field in snapshot.schema["fields"] if field["name"] in columns]
        names = [*held, *(name for name in columns if name not in held)]
        schema = pa.schema([(name, columns[name]) for name in names])
        partitions = snapshot.partition_columns
        return cls(schema, tuple(key), partitions, _indexed(schema, key, partitions, snapshot.configuration))

    @property
    def key_schema(self) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in self.key])

    @property
    def row_bytes_min(self) -> int:
        """The least bytes of a row in memory: a text or list of no length takes its offset."""
        return sum(_bits(field.type) for field in self.schema) // 8

    @property
    def stored(self) -> pa.Schema:
        """The content of a Parquet file: optional columns, as Spark writes them."""
        fields = [field.with_nullable(True) for field in self.schema if field.name not in self.partition_columns]
        return pa.schema(fields)

    def fit(self, rows: pa.Table) -> pa.Table:
        """Rows with the layout's columns, order and types; nothing changes a value.

        Raises SchemaMismatch when a column is missing, unknown, of a type that doesn't fit, or wrongly NULL.
        """
        if set(rows.column_names) != set(self.schema.names):
            odd = sorted(set(rows.column_names) ^ set(self.schema.names))
            raise SchemaMismatch(f"the rows and the silver table differ in column {odd[0]}", remedy="apply it again")
        columns = []
        for field in self.schema:
            column = rows.column(field.name)
            if column.null_count and not field.nullable:
                raise SchemaMismatch(
                    f"column {field.name} is NULL but silver says NOT NULL",
                    remedy="drop NOT NULL from the column in silver (ALTER TABLE by Spark), then `tidegate release`",
                )
            columns.append(column if column.type == field.type else _cast(column, field))
        fields = [field.with_nullable(True) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _bits(kind: pa.DataType) -> int:
    """The least bits of a cell."""
    try:
        return int(kind.bit_width)
    except ValueError:
        return _OFFSET_BITS


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(
            f"column {field.name} is {column.type}, silver has {field.type}: {error}", remedy=REFILL
        ) from None


def _indexed(
    schema: pa.Schema, key: Sequence[str], partitions: Sequence[str], configuration: Mapping[str, str]
) -> tuple[str, ...]:
    """The columns with statistics: Delta's choice (its first 32 columns, or by the properties), the key and the system
    columns.
    """
    names = [name for name in schema.names if name not in partitions]
    chosen = configuration.get("delta.dataSkippingStatsColumns")
    if chosen is not None:
        by_delta = {name.strip().strip("`") for name in chosen.split(",")}
    else:
        count = int(configuration.get("delta.dataSkippingNumIndexedCols", STATISTICS_COLUMNS))
        by_delta = set(names if count < 0 else names[:count])
    wanted = by_delta | set(key)
    return tuple(name for name in names if name in wanted or name.startswith(SYSTEM_PREFIX))
