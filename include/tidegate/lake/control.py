"""Control tables by delta-rs: created from tables.py, appended to, read.

In:  a lake, a table of tables.py, rows as dicts.
Out: commits; Arrow tables.

An append may carry an application transaction (id, version). delta-rs records it without enforcing it, so the
same protocol as for bronze holds: load, skip when the version is there, commit through that snapshot.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from tidegate.errors import CommitConflict, LakeRefused, LakeUnavailable, Overtaken
from tidegate.lake.bronze_file import created
from tidegate.lake.delta_log import DeltaLog, delta_log
from tidegate.lake.files import LakeFiles
from tidegate.lake.replace_files import removed, replace_files
from tidegate.limits import COMMIT_ATTEMPTS_MAX
from tidegate.tables import Table

log = logging.getLogger(__name__)

_BACKOFF_SECONDS: Final = 0.05
# After this many appends a table's small files become one. A larger file stays as it is: rewriting it each time would
# cost more the longer the table lives.
_APPENDS_UNTIDY_MAX: Final = 128
_TIDY_BYTES: Final = 4 << 20
_PART_ROWS: Final = 1 << 13
_FOLDED_ROWS: Final = 1 << 16
_AT: Final = "_at"  # the place of a row; no control table has such a column

Row = Mapping[str, Any]
Filters = Sequence[tuple[str, str, Any]]


def load(lake: LakeFiles, table: Table) -> DeltaTable | None:
    """Its newest snapshot; None before it exists. Raises LakeUnavailable."""
    url = lake.uri(table.path)
    try:
        return DeltaTable(url, storage_options=dict(lake.storage_options))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise LakeUnavailable(f"can't be read: {error}", where=url, remedy="check the lake's store") from error


def exists(lake: LakeFiles, table: Table) -> bool:
    """Whether the table was ever written."""
    return load(lake, table) is not None


def version(lake: LakeFiles, table: Table) -> int:
    """Its Delta version; -1 before it exists."""
    found = load(lake, table)
    return -1 if found is None else int(found.version())


def application_version(lake: LakeFiles, table: Table, app_id: str) -> int | None:
    """The version recorded under an application id; None when there is none."""
    found = load(lake, table)
    return None if found is None else found.transaction_version(app_id)


def read(
    lake: LakeFiles, table: Table, *, columns: Sequence[str] | None = None, filters: Filters | None = None
) -> pa.Table:
    """Its rows; an empty table with the right schema before it exists. filters: (column, operator, value)."""
    found = load(lake, table)
    schema = table.schema if columns is None else pa.schema([table.schema.field(name) for name in columns])
    if found is None:
        return _nullable(schema).empty_table()
    return rows_of(lake, table, found, schema, filters or ())


def rows_of(
    lake: LakeFiles,
    table: Table,
    found: DeltaTable,
    schema: pa.Schema | None = None,
    filters: Filters = (),
    paths: Sequence[str] | None = None,
) -> pa.Table:
    """The rows of one snapshot. schema: the columns wanted, all when left out; filters as read's; paths: of these files
    alone.
    """
    schema = _nullable(schema or table.schema)
    parts = list(_parts(lake, table, found, schema, filters, paths))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _parts(
    lake: LakeFiles,
    table: Table,
    found: DeltaTable,
    schema: pa.Schema,
    filters: Filters,
    paths: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """The same in pieces, of which a reader may keep less."""
    needed = list(dict.fromkeys([*schema.names, *(name for name, _, _ in filters)]))
    wanted = pq.filters_to_expression(list(filters)) if filters else None
    # File by file through Arrow's own file system: delta-rs's dataset calls back into Python from Arrow's threads,
    # which now and then aborts a process that ends.
    for path in _files(found, filters) if paths is None else paths:
        with lake.open(f"{table.path}/{unquote(path)}") as file:
            there = pq.ParquetFile(file)
            named = [name for name in needed if name in there.schema_arrow.names]
            for batch in there.iter_batches(_PART_ROWS, columns=named, use_threads=False):
                rows = pa.Table.from_batches([batch])
                for name in needed:
                    if name not in named:  # of a version of tidegate that had no such column yet
                        rows = rows.append_column(name, pa.nulls(rows.num_rows, table.schema.field(name).type))
                if wanted is not None:
                    rows = rows.filter(wanted)
                yield rows.select(schema.names).cast(schema)


def pieces(lake: LakeFiles, table: Table, *, filters: Filters | None = None) -> Iterator[pa.Table]:
    """As read, of a table that may be too long for the memory: some rows of one snapshot after the other."""
    found = load(lake, table)
    if found is not None:
        yield from _parts(lake, table, found, _nullable(table.schema), filters or ())


def newest(
    lake: LakeFiles,
    table: Table,
    *,
    by: Sequence[str],
    order: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
) -> pa.Table:
    """Of the rows with the same `by`, the last one in `order`. In memory is what is returned, and a piece more."""
    found = load(lake, table)
    names = table.schema.names if columns is None else list(dict.fromkeys([*columns, *by, *order]))
    schema = _nullable(pa.schema([table.schema.field(name) for name in names]))
    parts, rows = [schema.empty_table()], 0
    for part in () if found is None else _parts(lake, table, found, schema, filters or ()):
        parts.append(part)
        rows += part.num_rows
        if rows >= _FOLDED_ROWS:  # files of one row each are not worth a look at all the others
            parts, rows = [last_of(pa.concat_tables(parts), by, order)], 0
    kept = last_of(pa.concat_tables(parts), by, order)
    return kept if columns is None else kept.select(list(columns))


def last_of(rows: pa.Table, by: Sequence[str], order: Sequence[str]) -> pa.Table:
    """Of the rows with the same `by`, the last one in `order`; they come in this order."""
    if order:
        rows = rows.sort_by([(name, "ascending") for name in order])
    keys = rows.select(list(by)).append_column(_AT, pa.array(np.arange(rows.num_rows)))
    last = keys.group_by(list(by), use_threads=False).aggregate([(_AT, "max")])[f"{_AT}_max"]
    return rows.take(np.sort(last.to_numpy()))


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def append(lake: LakeFiles, table: Table, rows: Sequence[Row], app_transaction: tuple[str, int] | None = None) -> int:
    """Append rows in one commit and return the table's version; creates the table when need be.

    With app_transaction = (id, version): nothing is done when the table has that version or a larger one.
    Raises LakeUnavailable, LakeRefused.
    """
    return ControlTables(lake).append(table, rows, app_transaction)


def pack(lake: LakeFiles, table: Table, found: DeltaTable, *, smaller_bytes: int) -> None:
    """One file of those that are smaller. Raises CommitConflict when another commit rewrote the table first.

    Not by delta-rs's own optimize: of two that run side by side it makes both, and the rows are there twice.
    """
    actions = pa.table(found.get_add_actions(flatten=True))
    sizes = dict(zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True))
    small = {path: size for path, size in sorted(sizes.items()) if size < smaller_bytes}
    if len(small) > 1:
        exchange(lake, table, found, small, rows_of(lake, table, found, paths=list(small)), data_change=False)


def exchange(
    lake: LakeFiles, table: Table, found: DeltaTable, sizes: Mapping[str, int], rows: pa.Table, *, data_change: bool
) -> None:
    """One file with these rows in the place of files (path -> size) of a loaded snapshot. Raises CommitConflict."""
    rows = rows.select([name for name in table.schema.names if name in {one.name for one in found.schema().fields}])
    path = f"part-{uuid.uuid4().hex}.parquet"
    with created(lake, f"{table.path}/{path}") as file:
        pq.write_table(rows, file, compression="zstd")
        size = file.tell()
    bounds = {name: pc.min_max(rows[name]).as_py() for name in rows.column_names if rows[name].type == pa.int64()}
    told = {name: found for name, found in bounds.items() if found["min"] is not None}
    stats = {
        "numRecords": rows.num_rows,
        "minValues": {name: found["min"] for name, found in told.items()},
        "maxValues": {name: found["max"] for name, found in told.items()},
        "nullCount": {name: rows[name].null_count for name in told},
    }
    add = AddAction(path, size, {}, int(time.time() * 1000), data_change, json.dumps(stats))
    gone = [removed(path, size, {}, data_change=data_change) for path, size in sizes.items()]
    replace_files(found, delta_log(lake.uri(table.path), lake.storage_options), gone, [add], [])


def _files(found: DeltaTable, filters: Filters) -> list[str]:
    """Paths of the files whose statistics don't rule them out: of a long table the last minutes are a few files."""
    actions = pa.table(found.get_add_actions(flatten=True))
    keep = np.ones(actions.num_rows, dtype=bool)
    for name, operator, value in filters:
        for bound, operators in (("max", (">", ">=", "=", "==")), ("min", ("<", "<=", "=", "=="))):
            column = f"{bound}.{name}"
            if operator in operators and column in actions.column_names and isinstance(value, int):
                may = (pc.greater_equal if bound == "max" else pc.less_equal)(actions[column], value)
                keep &= pc.fill_null(may, fill_value=True).to_numpy()
    return sorted(actions.filter(pa.array(keep))["path"].to_pylist())


class ControlTables:
    """Control tables kept open between commits, for a job that appends to them every second. For one thread at a time.

    A commit costs what the table's files cost delta-rs to hold (20 microseconds each), so `tidy` makes few of many.
    """

    def __init__(self, lake: LakeFiles) -> None:
        self._lake = lake
        self._open: dict[str, DeltaTable] = {}
        self._logs: dict[str, DeltaLog] = {}
        self._appends: dict[str, int] = {}
        self._tables: dict[str, Table] = {}

    def version(self, table: Table) -> int:
        """The newest Delta version, whoever wrote it; -1 before the table exists. One look at its log."""
        if table.path not in self._logs:
            self._logs[table.path] = delta_log(self._lake.uri(table.path), self._lake.storage_options)
        return self._logs[table.path].latest()

    def claim(self, table: Table, claim_id: str) -> int:
        """A number larger than everybody's before: who held one until now is told so by its next look or append."""
        nothing = pa.Table.from_pylist([], schema=table.schema)
        for attempt in range(COMMIT_ATTEMPTS_MAX):
            try:
                found = load(self._lake, table) or _create(self._lake, table)
                number = (found.transaction_version(claim_id) or 0) + 1
                properties = CommitProperties(app_transactions=[Transaction(claim_id, number)])
                write_deltalake(found, nothing, mode="append", schema_mode="merge", commit_properties=properties)
            except (CommitFailedError, DeltaError, OSError) as error:
                _wait(self._lake, table, attempt, error)
            else:
                self._open[table.path], self._tables[table.path] = found, table
                return number
        raise AssertionError("unreachable")

    def check(self, table: Table, claim: tuple[str, int]) -> None:
        """Raises Overtaken when somebody has claimed the table since. One look at its log, while nobody wrote to it."""
        found = self._open.get(table.path)
        if found is None or self.version(table) != found.version():
            found = load(self._lake, table)
            if found is not None:
                self._open[table.path], self._tables[table.path] = found, table
        self._check(table, found, claim)

    def _check(self, table: Table, found: DeltaTable | None, claim: tuple[str, int]) -> None:
        there = 0 if found is None else found.transaction_version(claim[0]) or 0
        if there != claim[1]:
            raise Overtaken(
                "another apply of this pipeline has started since this one did",
                where=self._lake.uri(table.path),
                remedy="leave the pipeline to the other one; run one at a time",
            )

    def append(
        self,
        table: Table,
        rows: Sequence[Row],
        app_transaction: tuple[str, int] | None = None,
        claim: tuple[str, int] | None = None,
    ) -> int:
        """As the function `append`. With a claim: only as long as nobody else has claimed the table, else Overtaken.

        What is held open may be old: then delta-rs refuses a commit under an application id that has moved, as it
        does in bronze, and all is looked at again.
        """
        data = pa.Table.from_pylist([dict(row) for row in rows], schema=table.schema)
        for attempt in range(COMMIT_ATTEMPTS_MAX):
            try:
                found = self._open.pop(table.path, None) or load(self._lake, table) or _create(self._lake, table)
                if claim is not None:
                    self._check(table, found, claim)
                if app_transaction is not None:
                    there = found.transaction_version(app_transaction[0])
                    if there is not None and there >= app_transaction[1]:
                        return int(found.version())
                marks = [Transaction(*mark) for mark in (app_transaction, claim) if mark is not None]
                properties = CommitProperties(app_transactions=marks)
                # merge: a table that an older version of tidegate made gets the columns that are new
                write_deltalake(found, data, mode="append", schema_mode="merge", commit_properties=properties)
            except (CommitFailedError, DeltaError, OSError) as error:
                _wait(self._lake, table, attempt, error)
            else:
                self._open[table.path], self._tables[table.path] = found, table
                self._appends[table.path] = self._appends.get(table.path, 0) + 1
                return int(found.version())
        raise AssertionError("unreachable")

    def tidy(self) -> None:
        """Make one file of the small ones of a table that was appended to often. Readers keep what they have open."""
        for path in [path for path, appends in self._appends.items() if appends >= _APPENDS_UNTIDY_MAX]:
            self._appends[path] = 0
            found = self._open.pop(path, None)
            if found is None:
                continue
            try:
                found.update_incremental()
                pack(self._lake, self._tables[path], found, smaller_bytes=_TIDY_BYTES)
            except (CommitConflict, LakeUnavailable, CommitFailedError, DeltaError, OSError) as error:
                # Somebody else rewrote it, or the store had enough: there is a next time, and nothing depends on it.
                log.warning("%s was not compacted: %s", path, error)


def _wait(lake: LakeFiles, table: Table, attempt: int, error: Exception) -> None:
    """Before a commit's next attempt. Raises LakeUnavailable after the last one."""
    if attempt + 1 == COMMIT_ATTEMPTS_MAX:
        raise LakeUnavailable(
            f"commit failed {attempt + 1} times: {error}", where=lake.uri(table.path), remedy="check the lake's store"
        ) from error
    time.sleep(_BACKOFF_SECONDS * 2**attempt)


def _create(lake: LakeFiles, table: Table) -> DeltaTable:
    try:
        return DeltaTable.create(
            lake.uri(table.path),
            schema=Schema.from_arrow(table.schema),
            mode="ignore",
            partition_by=list(table.partition_by) or None,
            description=table.doc,
            storage_options=dict(lake.storage_options),
        )
    except OSError as error:
        raise LakeRefused(f"can't be created: {error}", where=lake.uri(table.path), remedy="check lake.path") from error
