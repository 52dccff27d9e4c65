"""The present tables, and each DDL job's effect on them: names, definitions, and unlogged rows.

In:  the tables that are there, by table id; finished jobs in order of commit_ts.
Out: TableChanges; the tables afterwards, also as one text (for a Pump that begins on a TiDB with tables).

A job that was rolled back changes nothing. Databases are named as TiDB's jobs name them: in lower
case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from tidegate.errors import StreamCorrupt
from tidegate.remedy import REPORT
from tidegate.tidb.jobs import REFILLING, SYNCED, Action, Job, TableInfo
from tidegate.tidb.tables.partitioning import RowsAction, action_of, exchange_of, partitions_of
from tidegate.tidb.tables.successors import successors

Name: TypeAlias = tuple[str, str]

_NAME: Final = r"(?:`(?:[^`]|``)*`|[\w$\x80-\U0010ffff]+)"
_PAIR: Final = re.compile(rf"(?:({_NAME})\s*\.\s*)?({_NAME})\s+TO\s+(?:({_NAME})\s*\.\s*)?({_NAME})", re.IGNORECASE)
_WITHOUT_KEY: Final = "its rows {} into other partitions, and it has no key"
_MADE: Final = (Action.CREATE_TABLE, Action.CREATE_TABLES)


class VersionKind(StrEnum):
    """The kind of a table's version; schema_history's words."""

    BASELINE = "baseline"
    CREATE = "create"
    DROP = "drop"
    TRUNCATE = "truncate"
    RENAME = "rename"
    ALTER = "alter"


@dataclass(frozen=True, slots=True)
class TableChange:
    """info: the table from then on; of a DROP as it was. was: its name before a RENAME. unknown_rows: why nobody knows
    its rows from then on; "" when they are known. renewed: columns in the place of others -> those. action: its effect
    on rows of partitions.
    """

    change: VersionKind
    name: Name
    info: TableInfo
    was: Name | None = None
    unknown_rows: str = ""
    renewed: Mapping[int, int] = field(default_factory=dict)
    action: RowsAction | None = None


class LiveTables:
    """Base tables by id. No views and no sequences."""

    def __init__(
        self,
        known: Mapping[int, tuple[str, TableInfo]] | None = None,
        dropped: Mapping[int, tuple[str, TableInfo]] | None = None,
    ) -> None:
        """known: table id -> (database, its definition). dropped: of those that went with their database."""
        self._tables = dict(known or {})
        self._dropped = dict(dropped or {})

    def __iter__(self) -> Iterator[tuple[Name, TableInfo]]:
        for database, info in self._tables.values():
            yield (database, info.name), info

    @property
    def text(self) -> str:
        """The text that from_text takes."""
        cells = [[database, json.loads(info.text)] for database, info in self._tables.values()]
        return json.dumps(cells, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str | bytes) -> LiveTables:
        """Raises StreamCorrupt."""
        try:
            listed = [(database, TableInfo.from_json(cells)) for database, cells in json.loads(text)]
        except (KeyError, TypeError, ValueError) as error:
            raise StreamCorrupt(f"a list of tables isn't as a Pump writes it: {error}", remedy=REPORT) from None
        return cls({info.id: (database, info) for database, info in listed})

    def take_in(self, changes: Iterable[TableChange]) -> None:
        """Tables that were there all the time."""
        self._tables |= {change.info.id: (change.name[0], change.info) for change in changes}

    def run(self, job: Job) -> list[TableChange]:
        """Raises StreamCorrupt for a job in contradiction to the tables."""
        if job.state != SYNCED:
            return self._given_up(job)
        database = job.database.lower()
        match job.type:
            case Action.DROP_SCHEMA:
                went = {id_: table for id_, table in self._tables.items() if table[0] == database}
                self._dropped = {id_: table for id_, table in self._dropped.items() if table[0] != database} | went
                return [self._drop(id_) for id_ in went]
            case Action.RECOVER_SCHEMA:
                back = {id_: table for id_, table in self._dropped.items() if table[0] == database}
                self._tables |= back
                why = "its rows came back with FLASHBACK DATABASE"
                return [
                    TableChange(VersionKind.CREATE, (database, info.name), info, unknown_rows=why)
                    for _, info in back.values()
                ]
            case Action.DROP_TABLE:
                return [self._drop(job.table_id)] if job.table_id in self._tables else []
            case Action.RENAME_TABLES:
                return self._rename_all(job)
            case Action.EXCHANGE_PARTITION:
                return self._exchange(job)
            case Action.FLASHBACK_CLUSTER:
                why = "FLASHBACK CLUSTER took back commits"
                return [TableChange(VersionKind.ALTER, name, info, unknown_rows=why) for name, info in self]
        changes = [self._redefined(job, info, database) for info in job.tables or ((job.table,) if job.table else ())]
        return [change for change in changes if change is not None]

    def _given_up(self, job: Job) -> list[TableChange]:
        """A rolled back or cancelled job leaves its table as it was. But TiDB has logged rows twice that were written
        meanwhile.
        """
        if job.type not in REFILLING or job.table_id not in self._tables:
            return []
        database, info = self._tables[job.table_id]
        why = _WITHOUT_KEY.format("were going")
        return [] if info.key else [TableChange(VersionKind.ALTER, (database, info.name), info, unknown_rows=why)]

    def _drop(self, table_id: int) -> TableChange:
        database, info = self._tables.pop(table_id)
        return TableChange(VersionKind.DROP, (database, info.name), info)

    def _redefined(self, job: Job, info: TableInfo, database: str) -> TableChange | None:
        """The change by a job whose TableInfo says what the table is now."""
        if not info.is_base:
            return None
        old = self._tables.pop(info.id if job.tables else job.table_id, None)
        self._tables[info.id] = (database, info)
        name = (database, info.name)
        if job.type in _MADE:
            return TableChange(VersionKind.CREATE, name, info)
        if job.type == Action.TRUNCATE_TABLE:
            return TableChange(VersionKind.TRUNCATE, name, info)
        if old is None:
            came = job.type == Action.RECOVER_TABLE
            why = "its rows came back with it" if came else "nothing is known of it from before"
            return TableChange(VersionKind.CREATE, name, info, unknown_rows=why)
        was, before = (old[0], old[1].name), old[1]
        renewed = {column.id: old_id for old_id, column in successors(before, info, job).items()}
        kind = VersionKind.RENAME if was != name else VersionKind.ALTER
        # TiDB 7.5 logs rows twice that are written meanwhile (double_writes.py), and may have them twice.
        why = _WITHOUT_KEY.format("went") if job.type in REFILLING and not info.key else ""
        return TableChange(
            kind, name, info, was if was != name else None, why, renewed, action=action_of(job, before, info)
        )

    def _exchange(self, job: Job) -> list[TableChange]:
        """The plain table goes on under the id that the partition had; their rows swap places."""
        info = job.table
        if info is None or job.table_id not in self._tables or info.id not in self._tables:
            return []
        (database, table), (other, plain) = self._tables[info.id], self._tables.pop(job.table_id)
        left = partitions_of(table) - partitions_of(info)
        if len(left) != 1:
            raise StreamCorrupt(f"{len(left)} partitions are exchanged for one table", remedy=REPORT)
        plain = plain.with_id(left.pop())
        self._tables |= {info.id: (database, info), plain.id: (other, plain)}
        action = exchange_of(job, table, plain.id, (other, plain.name))
        return [
            TableChange(VersionKind.ALTER, (database, info.name), info, action=action),
            TableChange(VersionKind.ALTER, (other, plain.name), plain),
        ]

    def _rename_all(self, job: Job) -> list[TableChange]:
        """RENAME TABLE a TO b, c TO d: the job names the tables in this order, and only its text their databases."""
        pairs = [[_bare(part) for part in pair] for pair in _PAIR.findall(job.query)]
        if len(pairs) != len(job.tables):
            raise StreamCorrupt(
                f"RENAME of {len(job.tables)} tables isn't understood: {job.query[:120]}", remedy=REPORT
            )
        session = job.database.lower()
        first = set[int]()
        for (schema, *_), info in zip(pairs, job.tables, strict=True):
            if not schema and info.id not in first and info.id in self._tables:
                session = self._tables[info.id][0]  # what a name without a database means
                break
            first.add(info.id)
        before = dict(self._tables)
        for (*_, schema, _name), info in zip(pairs, job.tables, strict=True):
            self._tables[info.id] = (schema or session, info)
        changes = []
        for table_id in dict.fromkeys(info.id for info in job.tables):
            database, info = self._tables[table_id]
            old = before.get(table_id)
            was = (old[0], old[1].name) if old else None
            why = "" if old else "nothing is known of it from before"
            if was != (database, info.name):
                changes.append(TableChange(VersionKind.RENAME, (database, info.name), info, was, why))
        return changes


def fold(jobs: Iterable[Job]) -> LiveTables:
    """The tables that are there after all jobs of a history."""
    tables = LiveTables()
    for job in jobs:
        tables.run(job)
    return tables


def _bare(name: str) -> str:
    return (name[1:-1].replace("``", "`") if name.startswith("`") else name).lower()
