"""The differences of a lake's control table from tables/, and the conversion of its rows.

In:  the schema in a table's log, a table of tables/, MIGRATIONS.
Out: Layout: the changes for its rows, the missing columns, or why it can't be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tidegate import __version__
from tidegate.delta.table.arrow_types import arrow_schema, delta_schema
from tidegate.delta.table.state import TableState
from tidegate.lake.format import migrations
from tidegate.lake.format.migrations import Migration
from tidegate.tables.form import Table


@dataclass(frozen=True, slots=True)
class Layout:
    """stored: the columns in the log. steps: the migrations of its rows, in order. added: nullable
    columns to add after these. differs: why it can't be read; "" if it can. unknown: it differs by
    unknown columns.
    """

    stored: pa.Schema
    steps: tuple[Migration, ...] = ()
    added: tuple[str, ...] = ()
    differs: str = ""
    unknown: bool = False

    @property
    def is_current(self) -> bool:
        return not (self.steps or self.added or self.differs)

    @property
    def told(self) -> str:
        """The changes of an upgrade, in a line; "" for nothing."""
        steps = [f"migration {step.number}: {step.what}" for step in self.steps]
        return "; ".join([*steps, *([f"columns added: {', '.join(self.added)}"] if self.added else [])])

    def upgraded(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """Rows with the stored columns (a file may lack some), as rows with the columns of the
        schema.
        """
        rows = _filled(rows, self.stored)
        for step in self.steps:
            rows = step.converted(rows)
        return _filled(rows, schema)


def layout_of(state: TableState, table: Table) -> Layout:
    """The layout of an existing table."""
    return _layout(str(state.metadata["schemaString"]), table, migrations.MIGRATIONS)


@lru_cache(maxsize=64)
def _layout(text: str, table: Table, known: tuple[Migration, ...]) -> Layout:
    schema = json.loads(text)
    stored = pa.schema([field.with_nullable(True) for field in arrow_schema(schema)])
    kinds = {column["name"]: (column["type"], column["nullable"]) for column in schema["fields"]}
    if kinds.keys() == set(table.schema.names):
        return Layout(stored, differs=_other_kind(kinds, table))
    rows, steps = stored.empty_table(), list[Migration]()
    own_steps = sorted(
        (step for step in known if step.path == table.path and step.convert), key=lambda step: step.number
    )
    for step in own_steps:
        if step.is_of(rows.column_names):
            rows = step.converted(rows)
            steps.append(step)
    names, ours = set(rows.column_names), set(table.schema.names)
    if more := sorted(names - ours):
        return Layout(stored, differs=f"it has {', '.join(more)}, too", unknown=True)
    lacking = [field for field in table.schema if field.name not in names]
    if must := sorted(field.name for field in lacking if not field.nullable):
        return Layout(stored, differs=f"it lacks {', '.join(must)}")
    added = tuple(field.name for field in lacking)
    if steps:
        return Layout(stored, tuple(steps), added, differs=_other_type(rows, table))
    return Layout(stored, (), added, differs=_other_kind(kinds, table))


def _other_kind(kinds: Mapping[str, tuple[Any, bool]], table: Table) -> str:
    """The difference between columns in the log and ours, in Delta's names; "" when there is none."""
    ours = {column["name"]: (column["type"], column["nullable"]) for column in delta_schema(table.schema)["fields"]}
    return _named(name for name, kind in kinds.items() if kind != ours[name])


def _other_type(rows: pa.Table, table: Table) -> str:
    """The difference of types in a migration's columns."""
    return _named(name for name in rows.column_names if rows[name].type != table.schema.field(name).type)


def _named(names: Iterable[str]) -> str:
    first = min(names, default="")
    return f"{first} is another type" if first else ""


def _filled(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with exactly these columns. A missing column is null: another writer may have left it
    out.
    """
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)


def refusal(layout: Layout) -> tuple[str, str]:
    """Why a table can't be read, and the way out."""
    if layout.unknown:
        what = f"its columns aren't those of this tidegate ({__version__}): {layout.differs}"
        way = "install that release or a newer one, and start this again"
        by_hand = "what a person added goes by Delta's RESTORE TABLE, to the version before it"
        return f"{what}; a newer tidegate or another writer has added it", f"{way}; {by_hand}"
    return f"its columns aren't those of this tidegate: {layout.differs}", "give the pipeline a new lake path"
