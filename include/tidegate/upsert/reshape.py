"""Rewrite a silver table's files with other columns, in this process: the effect of an ALTER on existing rows.

In:  a state of the table, and what becomes of its columns.
Out: Reshaping: the files that are to be written anew, and each one's `add` action; nothing is
     committed here.

Each file becomes one file, with the same partition values and the rows in the same order. Bounds then
stay narrow, and clustered files stay clustered. Dead rows are left out, so a new file has no
deletion vector, and tight bounds. No reader gives a default to rows without a column (Delta's own
defaults are for new rows), so the value must be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import Action, TableState
from tidegate.errors import SchemaMismatch, UnsupportedValue
from tidegate.lake.files import LakeFiles
from tidegate.tables import ROW_HASH, SYSTEM_PREFIX
from tidegate.upsert.files import data_file
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import live_rows
from tidegate.upsert.fitness import why_not
from tidegate.upsert.group import Group
from tidegate.upsert.row_hash import row_hashes


@dataclass(frozen=True, slots=True)
class Reshape:
    """The new form of a table's columns.

    facts: of a state, the actions that say so but for the files. key: the names that rows are in the order of.
    renamed: new name -> old. added: new columns -> what rows get there; None: what they have under that name, or NULL.
    own: column -> text that rows must have to get those; {}: all rows. It is only right where nothing else changes.
    hashed: of a table without a key, the columns of a row's hash, when they changed.
    """

    facts: Callable[[TableState], Sequence[Action]]
    key: tuple[str, ...]
    renamed: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, pa.Scalar | None] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)
    hashed: tuple[str, ...] = ()


class Reshaping:
    """A reshape of one state. facts: its actions but for the files.

    Raises SchemaMismatch and UnsupportedValue for columns that silver can't have.
    """

    def __init__(self, reshape: Reshape, state: TableState) -> None:
        self.state = state
        self.facts = list(reshape.facts(state))
        self._reshape = reshape
        self._behind = state.after(state.version + 1, self.facts)
        self._held = FileLayout.of(state, ())
        self.after = FileLayout.of(self._behind, reshape.key)
        self._read = self._layout_read()

    def why_not(self) -> str | None:
        """Why it can't be done here, in one phrase; None when it can."""
        if reason := why_not(self.state):
            return reason
        before, after = set(self._held.schema.names), set(self.after.schema.names)
        if not self.state.files:
            return None
        lost = sorted(name for name in after if self._source(name) is None and name not in self._reshape.added)
        if lost:
            return f"nobody says what rows have in column {lost[0]}"
        gone = before - {self._source(name) for name in after}
        if any(name.startswith(SYSTEM_PREFIX) for name in gone):
            return "a system column goes"
        if "delta.dataSkippingStatsColumns" in self.state.configuration and (gone or self._reshape.renamed):
            return "its properties name columns that have statistics"
        return self._why_not_partitions()

    def _why_not_partitions(self) -> str | None:
        names = self.state.partition_columns
        kept = self._behind.partition_columns == names and all(
            self._source(name) == name
            and self._reshape.added.get(name) is None
            and self._held.schema.field(name).type == self.after.schema.field(name).type
            for name in names
        )
        return None if kept else "a partition column changes"

    @cached_property
    def files(self) -> list[LiveFile]:
        """The live files to rewrite: without those that certainly hold no row with a new value."""
        if not self._reshape.own:
            return list(self.state.files)
        return Group(self._reshape.own).files(self.state.files)

    @property
    def columns(self) -> tuple[pa.Schema, pa.Schema]:
        """Before and after: what one state's new file needs to fit another state's table."""
        return self._held.schema, self.after.schema

    def written(self, lake: LakeFiles, path: str, file: LiveFile) -> dict[str, Any] | None:
        """A live file's `add` action, once it is written anew; None when it has no live row.

        path: of the table, relative to the lake. Raises SchemaMismatch and UnsupportedValue when values don't fit,
        LakeRefused and LakeUnavailable when the file can't be read.
        """
        pieces = (self._changed(rows) for rows in self._pieces(live_rows(lake, path, file, self._read)))
        return data_file.write_pieces(lake, path, pieces, file.partition_values, self.after)

    # --- one file ------------------------------------------------------------------------------------

    def _source(self, name: str) -> str | None:
        """The column that rows have the values of a new one in; None: they have none."""
        old = self._reshape.renamed.get(name, name)
        return old if old in self._held.schema.names else None

    def _layout_read(self) -> FileLayout:
        """Columns that go are not even read."""
        wanted = {self._source(name) for name in self.after.schema.names}
        wanted.update(self._reshape.own, self.state.partition_columns)
        fields = [column for column in self._held.schema if column.name in wanted]
        return FileLayout(pa.schema(fields), (), self.state.partition_columns, ())

    def _pieces(self, rows: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """As they come, or smaller, where a long text is given to each row."""
        width = sum(_bytes(value) for value in self._reshape.added.values() if value is not None)
        most = max(1, data_file.ROW_GROUP_BYTES // max(1, width))
        for table in rows:
            for at in range(0, table.num_rows, most):
                yield table.slice(at, most)

    def _changed(self, rows: pa.Table) -> pa.Table:
        own = self._own(rows)
        columns = {column.name: self._column(rows, column, own) for column in self.after.schema}
        shaped = self.after.fit(pa.table(columns))
        if not self._reshape.hashed:
            return shaped
        hashes = row_hashes({name: shaped.column(name) for name in self._reshape.hashed})
        at = shaped.schema.get_field_index(ROW_HASH)
        return shaped.set_column(at, shaped.schema.field(at), hashes)

    def _column(self, rows: pa.Table, column: pa.Field, own: pa.ChunkedArray | None) -> Any:
        value, source = self._reshape.added.get(column.name), self._source(column.name)
        if value is not None:
            filled = pa.repeat(_cast(value, column), rows.num_rows)
            if own is None:
                return filled
            held = pa.nulls(rows.num_rows, column.type) if source is None else rows.column(source).cast(column.type)
            return pc.if_else(own, filled, held)
        return pa.nulls(rows.num_rows, column.type) if source is None else rows.column(source)

    def _own(self, rows: pa.Table) -> pa.ChunkedArray | None:
        """Which rows get values; None: all."""
        own = None
        for name, text in self._reshape.own.items():
            matches = pc.fill_null(pc.equal(rows.column(name), text), fill_value=False)
            own = matches if own is None else pc.and_(own, matches)
        return own


def value_of(value: Any, kind: pa.DataType) -> pa.Scalar:
    """A value for added columns. Raises UnsupportedValue when it isn't one of the type."""
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise UnsupportedValue(
            f"{value!r} is no {kind}: {error}", remedy="set apply.writer: merge in the pipeline file"
        ) from None


def _cast(value: pa.Scalar, column: pa.Field) -> pa.Scalar:
    try:
        return value.cast(column.type)
    except (pa.ArrowException, ValueError) as error:
        raise SchemaMismatch(
            f"column {column.name} is {column.type}, and gets {value}: {error}",
            remedy="set apply.writer: merge in the pipeline file",
        ) from None


def _bytes(value: pa.Scalar) -> int:
    content = value.as_py()
    return len(content.encode()) if isinstance(content, str) else len(content) if isinstance(content, bytes) else 16
