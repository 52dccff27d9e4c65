"""Rows of a changelog's files in order, however many files overlap and however large a transaction is.

In:  live files of one state; from one commit_ts on, up to another.
Out: Arrow tables of changelog_table.SCHEMA, in order.

Each file is in order, and so are its row groups. A file is opened when the reading reaches its
first possible place, by the bounds in the Delta log. One row group of each open file is in memory.
Rows below the ends of all these row groups come next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.changelog.changelog_table import PLACE, SCHEMA
from tidegate.delta.table.live_file import LiveFile
from tidegate.lake.files import LakeFiles
from tidegate.tables.form import Table

Placed = tuple[int, str, int, int]  # a row's values of PLACE
FIRST: Final = -(1 << 62)
_SCHEMA: Final = pa.schema([column.with_nullable(True) for column in SCHEMA])
_ORDER: Final = [(name, "ascending") for name in PLACE]


@dataclass(frozen=True, slots=True)
class CommitRange:
    """commit_ts that are wanted, both ends included."""

    from_ts: int = FIRST
    upto_ts: int = 1 << 62


def merged(lake: LakeFiles, table: Table, files: Sequence[LiveFile], span: CommitRange) -> Iterator[pa.Table]:
    """Raises FileNotFoundError when a file has left the lake meanwhile."""
    waiting = sorted(files, key=first_place, reverse=True)
    heads = list[_Head]()
    while waiting or heads:
        end = min((head.end for head in heads), default=None)
        while waiting and (end is None or first_place(waiting[-1]) <= end):
            opened = _Head(_groups(lake, table, waiting.pop(), span))
            if opened.rows.num_rows:
                heads.append(opened)
                end = opened.end if end is None else min(end, opened.end)
        if end is None:
            return
        parts = [head.take(end) for head in heads]
        heads = [head for head in heads if head.rows.num_rows]
        rows = pa.concat_tables(parts)
        yield (rows if sum(part.num_rows > 0 for part in parts) == 1 else rows.sort_by(_ORDER)).combine_chunks()


def first_place(file: LiveFile) -> Placed:
    """No row of the file is before it."""
    commit_ts, source, seq, ordinal = (file.bounds(name) for name in PLACE)
    return (
        int(commit_ts[0]) if commit_ts else FIRST,
        str(source[0]) if source else "",
        int(seq[0]) if seq else FIRST,
        int(ordinal[0]) if ordinal else FIRST,
    )


def placed(rows: pa.Table, at: int) -> Placed:
    """The place of a row."""
    commit_ts, source, seq, ordinal = (rows[name][at].as_py() for name in PLACE)
    return commit_ts, source, seq, ordinal


def behind(rows: pa.Table, place: Placed) -> pa.ChunkedArray:
    """Mask of the rows after a place, column by column from the last."""
    mask = pc.greater(rows[PLACE[-1]], place[-1])
    for name, value in zip(PLACE[-2::-1], place[-2::-1], strict=True):
        mask = pc.or_(pc.greater(rows[name], value), pc.and_(pc.equal(rows[name], value), mask))
    return mask


class _Head:
    """The next rows of a file; rows are empty after its end."""

    def __init__(self, groups: Iterator[pa.Table]) -> None:
        self._groups = groups
        self._next()

    def _next(self) -> None:
        self.rows: pa.Table = next(self._groups, None) or _SCHEMA.empty_table()
        if self.rows.num_rows:
            self.end = placed(self.rows, self.rows.num_rows - 1)

    def take(self, end: Placed) -> pa.Table:
        """The rows up to a place."""
        count = self.rows.num_rows - (pc.sum(behind(self.rows, end)).as_py() or 0)
        taken, self.rows = self.rows.slice(0, count), self.rows.slice(count)
        if not self.rows.num_rows:
            self._next()
        return taken


def _groups(lake: LakeFiles, table: Table, file: LiveFile, span: CommitRange) -> Iterator[pa.Table]:
    """Its row groups in order; all at once where the file isn't in order, as those that others have packed."""
    with lake.open(f"{table.path}/{file.local_path}") as opened:
        parquet = pq.ParquetFile(opened)
        bounds = [_stamps(parquet.metadata.row_group(number)) for number in range(parquet.num_row_groups)]
        needed = [at for at, (low, high) in enumerate(bounds) if high >= span.from_ts and low <= span.upto_ts]
        is_ordered = all(_follows(parquet, before, at, bounds) for before, at in pairwise(needed))
        names = [name for name in _SCHEMA.names if name in parquet.schema_arrow.names]
        for numbers in [[number] for number in needed] if is_ordered else [needed]:
            rows = parquet.read_row_groups(numbers, columns=names, use_threads=False)
            for column in _SCHEMA:
                if column.name not in names:  # another writer may leave out what is null
                    rows = rows.append_column(column, pa.nulls(rows.num_rows, column.type))
            stamps = rows["commit_ts"]
            wanted = pc.and_(pc.greater_equal(stamps, span.from_ts), pc.less_equal(stamps, span.upto_ts))
            rows = rows.select(_SCHEMA.names).cast(_SCHEMA).filter(wanted)
            if rows.num_rows:
                yield rows.sort_by(_ORDER)


def _follows(parquet: pq.ParquetFile, before: int, at: int, bounds: Sequence[tuple[int, int]]) -> bool:
    """Whether all rows of a row group are after those of another. Within one commit its stamps don't tell."""
    if bounds[before][1] != bounds[at][0]:
        return bounds[before][1] < bounds[at][0]
    ends = [
        parquet.read_row_group(number, columns=list(PLACE), use_threads=False).sort_by(_ORDER)
        for number in (before, at)
    ]
    return placed(ends[0], ends[0].num_rows - 1) < placed(ends[1], 0)


def _stamps(group: Any) -> tuple[int, int]:
    """Bounds of a row group's commit_ts; the widest where the file doesn't say."""
    for at in range(group.num_columns):
        column = group.column(at)
        if column.path_in_schema == "commit_ts" and column.statistics is not None and column.statistics.has_min_max:
            return column.statistics.min, column.statistics.max
    return FIRST, 1 << 62
