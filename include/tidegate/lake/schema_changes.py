"""A table's versions as a person reads them: each statement, and its effect on columns and key.

In:  a lake; physical tables.
Out: SchemaChanges, the newest first; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_rows import table_rows
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.version_changes import changes
from tidegate.table_names import Physical


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One version. effect: a line per changed column; empty if no column and no key changed."""

    version: TableVersion
    effect: tuple[str, ...]


def schema_changes(lake: LakeFiles, tables: Iterable[Physical]) -> list[SchemaChange]:
    """Raises LakeUnavailable."""
    every: list[SchemaChange] = []
    for source, database, table in tables:
        every += with_effects(row for row in table_rows(lake, database, table) if row["source"] == source)
    return sorted(every, key=lambda change: (change.version.commit_ts, change.version.version), reverse=True)


def with_effects(rows: Iterable[Mapping[str, Any]]) -> Iterator[SchemaChange]:
    """Rows of control/schema_history as changes. Those of a physical table stand together, the oldest first."""
    before: TableVersion | None = None
    for row in rows:
        version = TableVersion.from_row(row)
        if before is not None and (before.source, before.name) != (version.source, version.name):
            before = None
        yield SchemaChange(version, tuple(changes(before, version)))
        before = version
