"""Control tables: made from tables/, appended to, read; each by its Delta log (tidegate/delta) and its Parquet files.

In:  a lake, a table of tables/, rows as dicts.
Out: commits; Arrow tables.

An append is decided on the newest state of the log, and committed at the version after it. If
another commit has that version, it is decided again. Therefore its conditions are true of the version
directly before it: its application transaction (id, version) isn't there yet, and nobody else has
claimed the table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.delta.exchange import exchange
from tidegate.delta.log import Change
from tidegate.delta.table.actions import add
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict, LakeUnavailable, Overtaken
from tidegate.lake.control.files import Filters, check, chosen, write_file
from tidegate.lake.control.reading import nullable, parts
from tidegate.lake.control.upgrade import Preparation, upgrade_table
from tidegate.lake.files import LakeFiles
from tidegate.lake.format.layout import layout_of
from tidegate.limits import CONTROL_COMMIT_ATTEMPTS_MAX
from tidegate.tables import Table

log = logging.getLogger(__name__)

# After so many appends a table's small files become one. A larger file stays as it is: rewriting it each time would
# cost more the longer the table lives.
_APPENDS_UNTIDY_MAX: Final = 128
_TIDY_BYTES: Final = 4 << 20
_FOLDED_ROWS: Final = 1 << 16
_AT: Final = "_at"  # the place of a row; no control table has such a column

Row = Mapping[str, Any]


def load(lake: LakeFiles, table: Table) -> TableState | None:
    """Its newest state; None before it exists. Raises LakeUnavailable, LakeRefused (we would misread it)."""
    state = lake.log(table.path).state()
    check(state, table)
    if not state.created:
        return None
    lake.tell_format()
    return state


def exists(lake: LakeFiles, table: Table) -> bool:
    """Whether the table was ever written."""
    return load(lake, table) is not None


def version(lake: LakeFiles, table: Table) -> int:
    """Its Delta version; -1 before it exists."""
    return lake.log(table.path).state().version


def application_version(lake: LakeFiles, table: Table, app_id: str) -> int | None:
    """The version recorded under an application id; None when there is none."""
    return lake.log(table.path).state().transactions.get(app_id)


def read(
    lake: LakeFiles, table: Table, *, columns: Sequence[str] | None = None, filters: Filters | None = None
) -> pa.Table:
    """Its rows; an empty table with the right schema before it exists. filters: (column, operator, value)."""
    state = load(lake, table)
    schema = table.schema if columns is None else pa.schema([table.schema.field(name) for name in columns])
    if state is None:
        return nullable(schema).empty_table()
    return rows_of(lake, table, state, schema, filters or ())


def rows_of(
    lake: LakeFiles,
    table: Table,
    state: TableState,
    schema: pa.Schema | None = None,
    filters: Filters = (),
    files: Sequence[LiveFile] | None = None,
) -> pa.Table:
    """The rows of one state. schema: the wanted columns; None for all. filters: as in read. files:
    only these.
    """
    schema = nullable(schema or table.schema)
    read_parts = list(parts(lake, table, state, schema, filters, files))
    return pa.concat_tables(read_parts) if read_parts else schema.empty_table()


def pieces(lake: LakeFiles, table: Table, *, filters: Filters | None = None) -> Iterator[pa.Table]:
    """As read, in pieces of one state, for a table that may be too long for memory."""
    state = load(lake, table)
    if state is not None:
        yield from parts(lake, table, state, nullable(table.schema), filters or ())


def newest(
    lake: LakeFiles,
    table: Table,
    *,
    by: Sequence[str],
    order: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
) -> pa.Table:
    """The last row in `order` among the rows with the same `by`. Memory holds the returned rows and
    one more piece.

    A carrying lake keeps the answer, and the next call reads only newer files; without newer files
    it returns the same table. If a file went, its rows may be gone, so all is read again.
    """
    state = load(lake, table)
    names = table.schema.names if columns is None else list(dict.fromkeys([*columns, *by, *order]))
    schema = nullable(pa.schema([table.schema.field(name) for name in names]))
    live = {} if state is None else {file.path: file for file in state.files}
    question = (table.path, *names, "by", *by, "order", *order, repr(filters))
    known, answer = (lake.carried or {}).get(question, (live.keys(), None))
    read_parts, rows, files = [schema.empty_table()], 0, None
    if answer is not None and known == live.keys():
        return answer if columns is None else answer.select(list(columns))
    if answer is not None and known <= live.keys():
        read_parts, files = [answer], [live[path] for path in sorted(live.keys() - known)]
    for part in () if state is None else parts(lake, table, state, schema, filters or (), files):
        read_parts.append(part)
        rows += part.num_rows
        if rows >= _FOLDED_ROWS:  # not after each file: one row in a file isn't worth a pass over all
            read_parts, rows = [last_of(pa.concat_tables(read_parts), by, order)], 0
    kept = last_of(pa.concat_tables(read_parts), by, order)
    if lake.carried is not None:
        lake.carried[question] = (frozenset(live), kept)
    return kept if columns is None else kept.select(list(columns))


def read_above(
    lake: LakeFiles,
    table: Table,
    above: tuple[str, int],
    *,
    columns: Sequence[str],
    filters: Filters = (),
) -> pa.Table:
    """As read, the rows with a larger value in a column than a bound. above: the column and the
    bound.

    A carrying lake keeps the rows of each file, so it opens a file once for all bounds.
    """
    state, schema = load(lake, table), nullable(pa.schema([table.schema.field(name) for name in columns]))
    if state is None:
        return schema.empty_table()
    question = (table.path, *columns, "above", repr(filters))
    kept = (lake.carried or {}).get(question, {})
    conditions = () if layout_of(state, table).steps else ((above[0], ">", above[1]),)
    for file in chosen(state, conditions):
        if file.path not in kept:
            kept[file.path] = rows_of(lake, table, state, schema, filters, [file])
    read_parts = [kept[file.path] for file in state.files if file.path in kept]
    if lake.carried is not None:
        lake.carried[question] = {file.path: kept[file.path] for file in state.files if file.path in kept}
    rows = pa.concat_tables([schema.empty_table(), *read_parts])
    return rows.filter(pc.greater(rows[above[0]], above[1]))


def last_of(rows: pa.Table, by: Sequence[str], order: Sequence[str]) -> pa.Table:
    """The last row in `order` among rows with the same `by`; they come in this order."""
    if order:
        rows = rows.sort_by([(name, "ascending") for name in order])
    keys = rows.select(list(by)).append_column(_AT, pa.array(np.arange(rows.num_rows)))
    last = keys.group_by(list(by), use_threads=False).aggregate([(_AT, "max")])[f"{_AT}_max"]
    return rows.take(np.sort(last.to_numpy()))


def append(lake: LakeFiles, table: Table, rows: Sequence[Row], app_transaction: tuple[str, int] | None = None) -> int:
    """Append rows in one commit. Returns the table's version. Creates the table if it is missing.

    app_transaction: (id, version); nothing is done if the table has this version or a larger one.
    Without it, nothing is done if there are no rows. Raises LakeUnavailable, LakeRefused,
    CommitConflict.
    """
    return ControlTables(lake).append(table, rows, app_transaction)


def append_once(lake: LakeFiles, table: Table, row: Row, name: str) -> bool:
    """Append a row unless another row has the same value in the column `name`. Returns whether this
    call appended it. If several processes try at once, one of them appends. Raises as `append`.
    """
    schema = pa.schema([table.schema.field(name)])

    def is_new(state: TableState) -> bool:
        return not state.created or not rows_of(lake, table, state, schema, [(name, "=", row[name])]).num_rows

    return append_if(lake, table, row, is_new)


def append_new(lake: LakeFiles, table: Table, rows: Sequence[Row], name: str) -> list[Row]:
    """Append, in one commit, the rows whose value in the column `name` is new. Returns them. Raises
    as `append`.
    """
    preparation, schema = Preparation(lake, table), pa.schema([table.schema.field(name)])
    new, written = list[Row](), list[Mapping[str, Any]]()

    def decide(state: TableState) -> Change | None:
        nonlocal new
        wanted = [(name, "in", [row[name] for row in rows])]
        known = set(rows_of(lake, table, state, schema, wanted)[name].to_pylist()) if state.created else set[Any]()
        before, new = new, [row for row in rows if row[name] not in known]
        if new and (new != before or not written):
            written[:] = [write_file(lake, table, pa.Table.from_pylist([*map(dict, new)], schema=table.schema))]
        adds = [add(body, data_change=True) for body in written]
        return Change([*preparation.actions(state), *adds], "WRITE", {}, {"mode": "Append"}) if new else None

    lake.log(table.path).update(decide, attempts=CONTROL_COMMIT_ATTEMPTS_MAX)
    return new


def append_if(lake: LakeFiles, table: Table, row: Row, is_so: Callable[[TableState], bool]) -> bool:
    """Append a row if is_so of the version directly before it. Returns whether this call did.
    Raises as append.
    """
    preparation, appends = Preparation(lake, table), False
    body = write_file(lake, table, pa.Table.from_pylist([dict(row)], schema=table.schema))

    def decide(state: TableState) -> Change | None:
        nonlocal appends
        made, appends = preparation.actions(state), is_so(state)
        return Change([*made, add(body, data_change=True)], "WRITE", {}, {"mode": "Append"}) if appends else None

    lake.log(table.path).update(decide, attempts=CONTROL_COMMIT_ATTEMPTS_MAX)
    return appends


def current(lake: LakeFiles, table: Table) -> TableState | None:
    """As load, for a writer of files: an older table is upgraded first. Raises CommitConflict, too."""
    if load(lake, table) is not None:
        upgrade_table(lake, table)
    return load(lake, table)


def pack(lake: LakeFiles, table: Table, state: TableState, *, smaller_bytes: int) -> None:
    """Make one file of the files below smaller_bytes, in a table from `current`.

    Raises CommitConflict if another commit took one of them first.
    """
    small = sorted((file for file in state.files if file.size < smaller_bytes), key=lambda file: file.path)
    if len(small) > 1:
        body = write_file(lake, table, rows_of(lake, table, state, files=small))
        exchange(lake.log(table.path), small, [body], operation="OPTIMIZE")


class ControlTables:
    """The control tables of a job that appends every second. Not thread-safe.

    A reader opens every file of a table, so `tidy` makes one file of many small ones.
    """

    def __init__(self, lake: LakeFiles) -> None:
        self.versions: dict[str, int] = {}  # path -> the last version that this object made
        self._lake = lake
        self._appends: dict[str, int] = {}
        self._tables: dict[str, Table] = {}
        self._claims: dict[str, dict[str, int]] = {}  # path -> claim id -> the number of our claim

    def version(self, table: Table) -> int:
        """The newest Delta version, whoever wrote it; -1 before the table exists. Two looks at its log."""
        return version(self._lake, table)

    def claim(self, table: Table, claim_id: str) -> int:
        """From now on only this object appends to the table under claim_id. Returns its number,
        larger than all before.

        An earlier claimer learns of it at its next look or append. The number is in the table's
        log, and an append is decided on a state with the own number, and made at the version
        directly after it.
        """
        number, preparation = 0, Preparation(self._lake, table)

        def decide(state: TableState) -> Change:
            nonlocal number
            number = state.transaction(claim_id) + 1
            return Change(preparation.actions(state), "CLAIM", {claim_id: number})

        self._lake.log(table.path).update(decide, attempts=CONTROL_COMMIT_ATTEMPTS_MAX)
        self._claims.setdefault(table.path, {})[claim_id] = number
        return number

    def check(self, table: Table) -> None:
        """Raises Overtaken when somebody has claimed after us. Two looks at the table's log while nobody writes."""
        self._check(self._lake.log(table.path).state(), table)

    def _check(self, state: TableState, table: Table) -> None:
        for claim_id, number in self._claims.get(table.path, {}).items():
            if state.transaction(claim_id) != number:
                raise Overtaken(
                    f"another run of {claim_id} has started since this one did",
                    where=state.place,
                    remedy="leave the work to the other one; run one at a time",
                )

    def append(self, table: Table, rows: Sequence[Row], app_transaction: tuple[str, int] | None = None) -> int:
        """As the function `append`. A claimed table takes the rows only while nobody else claims
        it.

        Raises Overtaken, and what the function raises.
        """
        marks = dict([app_transaction]) if app_transaction else {}
        written: list[Mapping[str, Any]] = []
        preparation = Preparation(self._lake, table)

        def decide(state: TableState) -> Change | None:
            self._check(state, table)
            if not (rows or marks) or any(state.transactions.get(name, -1) >= mark for name, mark in marks.items()):
                return None
            made = preparation.actions(state)
            if rows and not written:  # once, however often the commit is tried
                data = pa.Table.from_pylist([dict(row) for row in rows], schema=table.schema)
                written.append(write_file(self._lake, table, data))
            adds = [add(body, data_change=True) for body in written]
            return Change([*made, *adds], "WRITE", marks, {"mode": "Append"})

        state = self._lake.log(table.path).update(decide, attempts=CONTROL_COMMIT_ATTEMPTS_MAX)
        if written:
            self._tables[table.path] = table
            self._appends[table.path] = self._appends.get(table.path, 0) + 1
            self.versions[table.path] = state.version
        return state.version

    def tidy(self) -> None:
        """Make one file of the small files of each table with many appends. Readers keep the files
        that they have open.
        """
        for path in [path for path, appends in self._appends.items() if appends >= _APPENDS_UNTIDY_MAX]:
            self._appends[path], table = 0, self._tables[path]
            try:
                if (state := current(self._lake, table)) is not None:
                    pack(self._lake, table, state, smaller_bytes=_TIDY_BYTES)
            except (CommitConflict, LakeUnavailable, OSError) as error:
                # Another writer was first, or the store refused. The next call tries again; nothing depends on it.
                log.warning("%s was not compacted: %s", path, error)
