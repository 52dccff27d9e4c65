"""All tables of a cluster, and what DDL jobs do to them and their rows.

In:  jobs and transactions, in order of commit_ts.
Out: tables by name. UnsupportedValue where TiDB changed rows in a way that its binlog doesn't tell and nobody can
     compute.

Unlogged changes of rows: they vanish (TRUNCATE, DROP PARTITION), move (EXCHANGE PARTITION), come back (RECOVER,
FLASHBACK), or are converted (a column type changes: the column has another id then).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from tests.kit.tidb.replay.conversion import converted
from tests.kit.tidb.replay.partitions import Locator
from tests.kit.tidb.replay.rows import ReplayedRows
from tidegate.errors import StreamCorrupt, TidegateError, UnsupportedValue
from tidegate.remedy import REFILL, REPORT
from tidegate.tidb.codec.datum import Cells
from tidegate.tidb.jobs import REFILLING, SYNCED, Action, ColumnInfo, Job, TableInfo
from tidegate.tidb.rows.double_writes import changes_of
from tidegate.tidb.rows.mutation import row_change
from tidegate.tidb.tables.successors import successors
from tidegate.tidb.values.sql_value import Sql, sql_value
from tidegate.tidb.values.stored import cell

_NAME: Final = r"(?:`(?:[^`]|``)*`|[\w$\x80-\U0010ffff]+)"
_PAIR: Final = re.compile(rf"(?:({_NAME})\s*\.\s*)?({_NAME})\s+TO\s+(?:({_NAME})\s*\.\s*)?({_NAME})", re.IGNORECASE)
_CHANGES_ROWS: Final = frozenset({Action.TRUNCATE_PARTITION, Action.DROP_PARTITION})


@dataclass(slots=True)
class CatalogTable:
    """schema_id: of its database. with_schema: it was dropped with its database. unknown: why nobody can tell its rows
    any more; they aren't followed then.
    """

    info: TableInfo
    schema_id: int
    rows: ReplayedRows = field(init=False)
    with_schema: bool = False
    unknown: UnsupportedValue | None = None
    changed_ts: int = 0  # commit_ts of the last row that a transaction told of

    def __post_init__(self) -> None:
        self.rows = ReplayedRows(self.info)

    def lose(self, why: UnsupportedValue) -> None:
        self.unknown, self.rows = why, ReplayedRows(self.info)


class Catalog:
    """first_id: ids below it are of tables from before, which nothing is known of."""

    def __init__(self, first_id: int = 0) -> None:
        self._schemas: dict[int, str] = {}
        self._tables: dict[int, CatalogTable] = {}
        self._dropped: dict[int, CatalogTable] = {}
        self._renumbered: dict[int, int] = {}  # ids of tables before their rows went into other partitions -> since
        self._first_id = first_id

    def __iter__(self) -> Iterator[tuple[str, CatalogTable]]:
        """(database, table), in order of names; no views and no sequences."""
        named = [(self._schemas.get(table.schema_id, ""), table) for table in self._tables.values()]
        return iter(
            sorted(
                (entry for entry in named if entry[1].info.is_base), key=lambda entry: (entry[0], entry[1].info.name)
            )
        )

    def change(self, prewrite_value: bytes, commit_ts: int = 0) -> int:
        """Do a transaction's changes. Returns how many rows changed."""
        count = 0
        for table_id, kind, data in changes_of(prewrite_value):
            # A transaction that began before DROP or TRUNCATE may commit after it, into the table that is gone. One
            # that began before PARTITION BY, into the table that is there.
            table_id = self._renumbered.get(table_id, table_id)  # noqa: PLW2901
            table = self._tables.get(table_id) or self._dropped.get(table_id)
            if table is None:
                if table_id < self._first_id:
                    continue
                raise StreamCorrupt(
                    f"rows of table id {table_id}, which no DDL job made", remedy="the DDL history lacks a job"
                )
            if table.unknown is not None:
                continue
            table.changed_ts = commit_ts
            try:
                before, after = row_change(kind, data, table.info)
                if before is not None:
                    table.rows.delete(before)
                if after is not None:
                    table.rows.insert(after)
            except UnsupportedValue as error:
                table.lose(error)
            count += 1
        return count

    # --- jobs --------------------------------------------------------------------------------------

    def run(self, job: Job) -> None:
        """The changes of a finished job; one that was rolled back changes nothing, but TiDB may have told twice of
        rows.

        A table whose rows can't be told any more is unknown from here on, and the others go on. Raises UnsupportedValue
        where that can't be said of single tables.
        """
        if job.state != SYNCED:
            table = self._tables.get(job.table_id)
            if table is not None and _was_told_twice(table, job):
                table.lose(_told_twice(table, job))
            return
        try:
            self._run(job)
        except TidegateError as error:
            error.where = error.where or _where(job)
            raise

    def _run(self, job: Job) -> None:
        match job.type:
            case Action.FLASHBACK_CLUSTER:
                raise UnsupportedValue("FLASHBACK CLUSTER takes back commits", remedy=REFILL)
            case Action.DROP_SCHEMA:
                for table_id in [id_ for id_, table in self._tables.items() if table.schema_id == job.schema_id]:
                    self._drop(table_id, with_schema=True)
            case Action.RECOVER_SCHEMA:
                self._schemas[job.schema_id] = job.database
                for table_id, table in list(self._dropped.items()):
                    if table.with_schema and table.schema_id == job.schema_id:
                        self._tables[table_id] = self._dropped.pop(table_id)
            case Action.DROP_TABLE | Action.DROP_VIEW | Action.DROP_SEQUENCE:
                self._drop(job.table_id)
            case Action.RENAME_TABLES:
                self._rename_all(job)
            case Action.EXCHANGE_PARTITION:
                self._exchange(job)
            case _:
                self._redefine(job)

    def _drop(self, table_id: int, *, with_schema: bool = False) -> None:
        table = self._tables.pop(table_id, None)
        if table is not None:
            table.with_schema = with_schema
            self._dropped[table_id] = table

    def _redefine(self, job: Job) -> None:
        """A job whose TableInfo says what the table is now."""
        if job.table is None and not job.tables:
            if job.database and job.schema_id and not job.table_id:
                self._schemas[job.schema_id] = job.database
            return
        for info in job.tables or (job.table,):
            assert info is not None
            old = self._tables.get(info.id if job.tables else job.table_id)
            if job.type == Action.RECOVER_TABLE:
                self._recover(info, job)
            elif job.type == Action.TRUNCATE_TABLE:
                self._drop(job.table_id)
                self._tables[info.id] = CatalogTable(info, job.schema_id)
            elif old is None:
                self._create(info, job)
            else:
                self._become(old, info, job)

    def _create(self, info: TableInfo, job: Job) -> None:
        made = (Action.CREATE_TABLE, Action.CREATE_TABLES, Action.CREATE_VIEW, Action.CREATE_SEQUENCE)
        self._tables[info.id] = CatalogTable(info, job.schema_id)
        if job.type not in made and info.is_base:
            what = f"table {info.name} has rows from before the stream"
            self._tables[info.id].lose(UnsupportedValue(what, where=_where(job), remedy=REFILL))

    def _recover(self, info: TableInfo, job: Job) -> None:
        table = self._dropped.pop(info.id, None)
        if table is None:
            table = CatalogTable(info, job.schema_id)
            what = f"table {info.name} comes back with rows from before"
            table.lose(UnsupportedValue(what, where=_where(job), remedy=REFILL))
        table.schema_id, table.info = job.schema_id, info
        table.rows.describe(info)
        self._tables[info.id] = table

    def _become(self, table: CatalogTable, info: TableInfo, job: Job) -> None:
        was = table.info
        try:
            _follow(table, info, job)
        except UnsupportedValue as error:
            error.where = error.where or _where(job)
            table.lose(error)
        table.info, table.schema_id = info, job.schema_id or table.schema_id
        table.rows.describe(info)
        if was.id != info.id:
            self._tables[info.id] = self._tables.pop(was.id)
            self._renumbered[was.id] = info.id

    def _exchange(self, job: Job) -> None:
        """The plain table goes on under the id that the partition had; their rows swap places."""
        info, plain = job.table, self._tables.get(job.table_id)
        table = self._tables.get(info.id) if info is not None else None
        if info is None or plain is None or table is None:
            raise UnsupportedValue("one of the tables has rows from before", remedy=REFILL)
        gone = _gone(table.info, info)
        if len(gone) != 1:
            raise StreamCorrupt(f"{len(gone)} partitions are exchanged for one table", remedy=REPORT)
        leaving, coming = self._swapped(table, plain, gone, job)
        table.info = info
        table.rows.describe(info)
        plain.info = replace(plain.info, id=next(iter(gone)))
        plain.rows.describe(plain.info)
        for rows, cells in ((table.rows, coming), (plain.rows, leaving)):
            for row in cells:
                rows.insert(row)
        self._tables[plain.info.id] = self._tables.pop(job.table_id)

    def _swapped(
        self, table: CatalogTable, plain: CatalogTable, gone: set[int], job: Job
    ) -> tuple[list[Cells], list[Cells]]:
        """The rows leaving the partition, and those coming into it; none where one side's aren't known."""
        try:
            for side in (table, plain):
                if side.unknown is not None:
                    raise side.unknown
            return table.rows.take_where(_lies_in(table.info, gone)), plain.rows.take_where(_every_row)
        except UnsupportedValue as error:
            error.where = error.where or _where(job)
            for side in (table, plain):
                side.lose(error)
            return [], []

    def _rename_all(self, job: Job) -> None:
        """RENAME TABLE a TO b, c TO d: the job names the tables in this order, and only its text their databases."""
        ids = {name.lower(): id_ for id_, name in self._schemas.items()}
        pairs = [[_bare(part).lower() for part in pair] for pair in _PAIR.findall(job.query)]
        if len(pairs) != len(job.tables) or any(info.id not in self._tables for info in job.tables):
            raise UnsupportedValue("its tables have rows from before, or its text isn't understood", remedy=REFILL)
        # What a name without a database means: the database of the first table that was called so.
        session = ids.get(job.database.lower(), job.schema_id)
        seen = set[int]()
        for (schema, *_), info in zip(pairs, job.tables, strict=True):
            if not schema and info.id not in seen:
                session = self._tables[info.id].schema_id
                break
            seen.add(info.id)
        for (*_, schema, _name), info in zip(pairs, job.tables, strict=True):
            table = self._tables[info.id]
            table.info, table.schema_id = info, ids.get(schema, session) if schema else session


def _where(job: Job) -> str:
    return f"DDL job {job.id}: {job.query[:120]}"


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _gone(was: TableInfo, info: TableInfo) -> set[int]:
    """Ids of partitions that the table has no more."""
    old, new = (
        {definition.id for definition in side.partition.definitions} if side.partition else set()
        for side in (was, info)
    )
    return old - new


def _was_told_twice(table: CatalogTable, job: Job) -> bool:
    return job.type in REFILLING and not table.info.handle and table.changed_ts > job.start_ts


def _told_twice(table: CatalogTable, job: Job) -> UnsupportedValue:
    what = (
        f"table {table.info.name} without a clustered key was written to while its rows were put into other partitions"
    )
    return UnsupportedValue(what, where=_where(job), remedy=REFILL)


def _follow(table: CatalogTable, info: TableInfo, job: Job) -> None:
    """The effect of a job that makes `info` of a table on its rows. Raises UnsupportedValue."""
    was = table.info
    gone = _gone(was, info)
    if _was_told_twice(table, job):
        raise _told_twice(table, job)
    if gone and job.type in _CHANGES_ROWS:
        table.rows.take_where(_lies_in(was, gone))
    elif was.partition != info.partition and not was.handle and len(table.rows):
        # New partitions are filled by copying; only where none of the old ones went do rows stay as they are.
        moved = _lies_in(was, gone) if was.partition is not None and gone else _every_row
        if gone or was.id != info.id:
            table.rows.forget_rowids(moved)
    renewed = successors(was, info, job)
    if renewed:
        _convert(table.rows, was.by_id(), renewed, job)


def _lies_in(table: TableInfo, ids: set[int]) -> Callable[[Cells], bool]:
    assert table.partition is not None
    places = {at for at, definition in enumerate(table.partition.definitions) if definition.id in ids}
    locator = Locator(table)

    def test(cells: Cells) -> bool:
        row = _row_of(table, cells)
        return locator.of(row.__getitem__) in places

    return test


def _every_row(_: Cells) -> bool:
    return True


def _convert(rows: ReplayedRows, was: dict[int, ColumnInfo], renewed: dict[int, ColumnInfo], job: Job) -> None:
    """Rows that were there get the new column from the old one, unless a write during the job gave it to them."""
    for cells in rows:
        for old_id, column in renewed.items():
            if column.id not in cells:
                cells[column.id] = converted(was[old_id], column, cells, job)  # type: ignore[assignment]
            cells.pop(old_id, None)


def _row_of(table: TableInfo, cells: Cells) -> dict[str, Sql]:
    """The SQL value of each column that is stored, by name in small letters."""
    return {
        column.name.lower(): sql_value(column, cell(column, cells)) for column in table.columns if not column.is_virtual
    }
