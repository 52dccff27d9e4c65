"""A table's versions for a person: each statement, and its effect on columns and key.

In:  a lake; physical tables.
Out: SchemaChanges, the newest first, of these tables or of all; nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate.lake.files import LakeFiles
from tidegate.lake.schema_history.schema_rows import newest_rows, table_rows
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.version_changes import changes
from tidegate.table_names import Physical

# Kinds of versions to show: statements at the source, and what else changed the known columns.
_SHOWN: Final = frozenset({"create", "alter", "drop", "truncate", "rename", "healed", "refreshed", "unfollowed"})
# A statement about many shards is one change, so more versions are looked at than are shown.
_LOOKED_AT: Final = 64


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
    """Rows of control/schema_history as changes. rows: those of a physical table together, the
    oldest first.
    """
    before: TableVersion | None = None
    for row in rows:
        version = TableVersion.from_row(row)
        if before is not None and (before.source, before.name) != (version.source, version.name):
            before = None
        yield SchemaChange(version, tuple(changes(before, version)))
        before = version


def recent_changes(
    lake: LakeFiles, logical: Callable[[tuple[str, str]], str], count: int
) -> list[tuple[str, SchemaChange]]:
    """(logical table, change): the newest ones, without baselines and snapshots.

    logical: physical table -> logical table, "" if it isn't kept. Raises LakeUnavailable.
    """
    recent: dict[tuple[str, str, str], tuple[str, SchemaChange]] = {}
    for before, row in newest_rows(lake, _SHOWN, _LOOKED_AT):
        version = TableVersion.from_row(row)
        name = logical(version.physical.pair)
        if name and version.table:
            was = None if before is None else TableVersion.from_row(before)
            recent.setdefault(
                (name, version.kind, version.ddl), (name, SchemaChange(version, tuple(changes(was, version))))
            )
    return [*recent.values()][:count]
