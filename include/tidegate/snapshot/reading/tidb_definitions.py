"""TiDB's tables as a reader needs them: columns and keys at the timestamp of its reads.

In:  TiDB's SQL port, a timestamp.
Out: TableVersions with TiDB's own description, as apply makes them of DDL jobs.

They come from TiDB's DDL history, as apply's do, and the history is read as of the same timestamp:
a job is in it from its commit_ts on, its binlog's.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count

from tidegate.pump.cluster import History
from tidegate.schema.model.columns import TableVersion
from tidegate.table_names import folded
from tidegate.tidb.tables.definitions import Stands, versions_of
from tidegate.tidb.tables.live_tables import LiveTables, Name, TableChange, VersionKind


@dataclass(slots=True)
class Definitions:
    """The definitions of one TiDB. The history is folded anew only when there are more jobs in it.
    lower_tables: tables' names are in lower case, too, as of a changefeed.
    """

    history: History
    lower_tables: bool = False
    _jobs: tuple[int, int] = (-1, -1)
    _tables: LiveTables = field(default_factory=LiveTables)

    def at(self, source: str, names: Collection[Name], ts: int) -> dict[Name, TableVersion]:
        """The tables as they were. ts: 0 for now. Raises SourceRefused, SourceUnavailable, StreamCorrupt."""
        jobs = self.history.jobs_at(ts)
        if jobs != self._jobs:
            self._tables, self._jobs = LiveTables.from_text(self.history.tables_at(ts)), jobs
        wanted = set(names)
        listed = ((self._named(*name), info) for name, info in self._tables)
        changes = [TableChange(VersionKind.BASELINE, name, info) for name, info in listed if name in wanted]
        made = versions_of(changes, Stands(ts, "", 0, ""), _Unknown(source))
        return {(version.database, version.table): version for version in made}

    def _named(self, database: str, table: str) -> Name:
        return database, folded(table) if self.lower_tables else table


class _Unknown:
    """A history without any table yet."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._ids = count(1)

    def last(self, name: Name) -> None:
        pass

    def tables(self) -> tuple[Name, ...]:
        return ()

    def keeps(self, database: str, table: str) -> bool:  # noqa: ARG002
        return True

    def new_id(self) -> int:
        return next(self._ids)
