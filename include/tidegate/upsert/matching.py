"""Live rows of a silver table that have one of the wanted values in some columns.

In:  a table's state, columns, the wanted values, the conversion of values to their compared form.
Out: whole rows. Statistics rule files out; of the others only these columns are read, and then the
     row groups that have one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.lake.files import LakeFiles
from tidegate.upsert.deletions import deletion_vector
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.open_file import opened
from tidegate.upsert.files.partition_values import partition_value

Form = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class Wanted:
    """columns: in order. forms: the compared form of each column's values. values: of each column
    together; no NULL among them.
    """

    columns: tuple[str, ...]
    forms: tuple[Form | None, ...]
    values: Collection[tuple[Any, ...]]

    def of_column(self, at: int) -> list[Any]:
        """Each value that is looked for in a column, once."""
        return list({value[at] for value in self.values})


def matching_rows(
    lake: LakeFiles, table_path: str, state: TableState, layout: FileLayout, wanted: Wanted
) -> Iterator[pa.Table]:
    """In the layout, some at a time. Errors of the forms pass through."""
    if not wanted.values:
        return
    for file in state.files:
        if _may_have(file, layout, wanted):
            yield from _of_file(lake, table_path, file, layout, wanted)


def matching_of(rows: pa.Table, wanted: Wanted) -> pa.Table:
    """The matches among rows at hand. Errors of the forms pass through."""
    return rows.take(pa.array(_hits(rows, wanted)))


def _may_have(file: LiveFile, layout: FileLayout, wanted: Wanted) -> bool:
    """Bounds of numbers are compared as they are; anything else rules nothing out."""
    for at, name in enumerate(wanted.columns):
        if wanted.forms[at] is not None or not pa.types.is_integer(layout.schema.field(name).type):
            continue
        bounds = file.bounds(name)
        if bounds is None or type(bounds[0]) is not int or type(bounds[1]) is not int:
            continue
        if not any(bounds[0] <= value <= bounds[1] for value in wanted.of_column(at)):
            return False
    return True


def _of_file(
    lake: LakeFiles, table_path: str, file: LiveFile, layout: FileLayout, wanted: Wanted
) -> Iterator[pa.Table]:
    vector = file.deletion_vector
    dead = deletion_vector.read(lake, table_path, vector) if vector else np.zeros(0, np.int64)
    with opened(lake, f"{table_path}/{file.local_path}") as parquet:
        stored_names = set(parquet.schema_arrow.names)
        at = 0
        for number in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(number).num_rows
            looked = [name for name in wanted.columns if name in stored_names]
            narrow = parquet.read_row_group(number, columns=looked, use_threads=False)
            narrow = _whole(narrow, count, file, layout, wanted.columns)
            hits = _hits(narrow, wanted)
            hits = np.setdiff1d(hits, dead - at, assume_unique=True)
            at += count
            if len(hits):
                names = [name for name in layout.schema.names if name in stored_names]
                rows = parquet.read_row_group(number, columns=names, use_threads=False).take(pa.array(hits))
                yield layout.fit(_whole(rows, len(hits), file, layout, layout.schema.names))


def _whole(rows: pa.Table, count: int, file: LiveFile, layout: FileLayout, names: Sequence[str]) -> pa.Table:
    """With the columns in the path, and those added after the file was written."""
    columns = {}
    for name in names:
        kind = layout.schema.field(name).type
        if name in file.partition_values:
            columns[name] = pa.repeat(partition_value(file.partition_values[name], kind), count)
        elif name in rows.column_names:
            columns[name] = rows.column(name)
        else:
            columns[name] = pa.nulls(count, kind)
    return pa.table(columns)


def _hits(rows: pa.Table, wanted: Wanted) -> npt.NDArray[np.int64]:
    matches: pa.Array | None = None
    formed = []
    for at, name in enumerate(wanted.columns):
        cells = rows.column(name).combine_chunks()
        if isinstance(cells, pa.ChunkedArray):
            cells = pa.concat_arrays(cells.chunks) if cells.num_chunks else pa.array([], cells.type)
        form = wanted.forms[at]
        cells = cells if form is None else form(cells)
        formed.append(cells)
        has = pc.is_in(cells, value_set=pa.array(wanted.of_column(at), cells.type), skip_nulls=True)
        matches = has if matches is None else pc.and_(matches, has)
    assert matches is not None, "a key has columns"
    hits = np.flatnonzero(matches.to_numpy(zero_copy_only=False)).astype(np.int64)
    if len(wanted.columns) == 1 or not len(hits):
        return hits
    values = zip(*(cells.take(pa.array(hits)).to_pylist() for cells in formed), strict=True)
    return hits[[value in wanted.values for value in values]]
