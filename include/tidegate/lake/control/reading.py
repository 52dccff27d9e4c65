"""Rows of a control table's files, piece by piece, with the columns of tables/, whichever release
wrote them.

In:  a lake, a table of tables/, a state of its log.
Out: Arrow tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.lake.control.files import Filters, chosen
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.layout import Layout, layout_of
from tidegate.tables import Table

_PART_ROWS: Final = 1 << 13


def parts(
    lake: LakeFiles,
    table: Table,
    state: TableState,
    schema: pa.Schema,
    filters: Filters = (),
    files: Sequence[LiveFile] | None = None,
) -> Iterator[pa.Table]:
    """Rows of one state, in pieces; parameters as rows_of (rows.py). The caller filters the rows."""
    layout = layout_of(state, table)
    wanted = pq.filters_to_expression(list(filters)) if filters else None
    needed = list(dict.fromkeys([*schema.names, *(name for name, _, _ in filters)]))
    if files is None:  # an older table's statistics are about other columns
        files = chosen(state, () if layout.steps else filters)
    for live_file in files:
        with lake.open(f"{table.path}/{live_file.local_path}") as file:
            for rows in _rows(pq.ParquetFile(file), table, layout, needed):
                kept = rows if wanted is None else rows.filter(wanted)
                yield kept.select(schema.names).cast(schema)


def _rows(file: pq.ParquetFile, table: Table, layout: Layout, needed: Sequence[str]) -> Iterator[pa.Table]:
    """A file's rows with the needed columns; of an older table all columns are read, and converted."""
    columns = layout.stored.names if layout.steps else needed
    named = [name for name in columns if name in file.schema_arrow.names]
    for batch in file.iter_batches(_PART_ROWS, columns=named, use_threads=False):
        rows = pa.Table.from_batches([batch])
        if layout.steps:
            rows = layout.upgraded(rows, nullable(table.schema))
        for name in needed:
            if name not in rows.column_names:  # another writer may leave out what is null
                rows = rows.append_column(name, pa.nulls(rows.num_rows, table.schema.field(name).type))
        yield rows


def nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])
