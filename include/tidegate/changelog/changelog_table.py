"""A changelog's Delta table: its columns, its end, and the one commit that appends a window.

In:  a lake, a logical table, rows in order.
Out: a commit; up to which commit_ts the changelog goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import add
from tidegate.delta.table.state import TableState
from tidegate.errors import Overtaken
from tidegate.lake.control.files import PROPERTIES, added, check, creation, write_file
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.as_published import was_restored
from tidegate.limits import CHANGELOG_GROUP_BYTES
from tidegate.table_names import Physical
from tidegate.tables.form import Table, field

FOLDER: Final = "changelog"
INSERT, UPDATE, DELETE = "insert", "update", "delete"
BEGIN, GAP, SNAPSHOT, ERASED = "begin", "gap", "snapshot", "erased"
ROW_OPS: Final = (INSERT, UPDATE, DELETE)
# The place of a row. All rows of a changelog are in this order, and no two have the same place.
PLACE: Final = ("commit_ts", "source", "seq", "ordinal")
# The seq of a statement: it comes before the rows of its own commit_ts (CREATE TABLE ... SELECT).
STATEMENT_SEQ: Final = -1
BY_A_FOREIGN_KEY: Final = "by a foreign key: the log has the parent's change alone"
# In a window with such rows all ordinals of a table are shifted by this many bits: so made rows fit between the log's.
FINER_BITS: Final = 20

SCHEMA: Final = pa.schema(
    [
        field(
            "op",
            pa.string(),
            "insert | update | delete; a statement: create | alter | truncate | drop | rename | ...; begin (changes up"
            " to here aren't in it), gap (changes up to here may be missing: note says which), snapshot (rows were"
            " read from the table: they are in silver alone), erased (a change whose row `tidegate erase` took)",
        ),
        field("before", pa.string(), "JSON object: the row before; the columns that the log has", nullable=True),
        field("after", pa.string(), "JSON object: the row after; the columns that the log has", nullable=True),
        field("commit_ts", pa.int64(), "of the transaction; with source it names the transaction"),
        field("source", pa.string(), "name of the source"),
        field("database", pa.string(), "physical table's"),
        field("table", pa.string(), "physical table's"),
        field("file", pa.string(), "binlog file"),
        field("pos", pa.int64(), "where the rows event starts in it, the statement's event ends"),
        field(
            "gtid",
            pa.string(),
            "the transaction's GTID (start_ts); null where it has none, or a tag",
            nullable=True,
        ),
        field("seq", pa.int64(), "segment in bronze; -1: a statement, or a word about the changelog"),
        field("ordinal", pa.int64(), "place in the segment"),
        field("version", pa.int64(), "version of the table's columns in control/schema_history", nullable=True),
        field("note", pa.string(), "the statement; why changes are missing; whose a change is", nullable=True),
    ]
)


def changelog(database: str, table: str) -> Table:
    """The changelog of a logical table."""
    return _at(tables.silver_path(database, table).replace("silver", FOLDER, 1))


def _at(path: str) -> Table:
    return Table(path, f"Every change of a table, in order of {', '.join(PLACE)}.", SCHEMA, PLACE)


def app_id(pipeline: str, name: str) -> str:
    """Delta application id under which a changelog records its end, a commit_ts."""
    return f"tidegate/{pipeline}/changelog/{name}"


def changelog_file(lake: LakeFiles, table: Table, parts: Sequence[pa.Table]) -> dict[str, Any]:
    """A new file with these rows in order, in row groups of which a reader has a few in memory; its `add` body."""
    rows = pa.concat_tables(parts).sort_by([(name, "ascending") for name in PLACE])
    return write_file(lake, table, rows, group_rows=1 + rows.num_rows * CHANGELOG_GROUP_BYTES // max(1, rows.nbytes))


class Appending:
    """A window's rows of one changelog, for one commit. The caller decides when rows become a file.

    There is nothing to append where upto_ts is recorded already. from_ts: None for a new changelog.
    was_restored: whether somebody took rows from before it back.
    """

    def __init__(self, lake: LakeFiles, table: Table, transaction: str) -> None:
        self._lake, self._table, self._transaction = lake, table, transaction
        self._log: DeltaLog = lake.log(table.path)
        state = self._log.state()
        check(state, table)
        self.from_ts = state.transactions.get(transaction)
        self._version = state.version
        restored = was_restored(self._log, transaction, state.version)
        # The log of a quiet changelog is cleaned up after its last rows. That alone isn't a gap.
        self.was_restored = self.from_ts is not None and bool(restored)
        self._parts: list[pa.Table] = []
        self.pending_bytes = 0  # of rows in memory
        self._files: list[Mapping[str, Any]] = []

    def add(self, rows: pa.Table) -> None:
        """Rows of the window; in any order within one file."""
        self._parts.append(rows)
        self.pending_bytes += rows.nbytes

    def write(self) -> None:
        """The rows in memory as a file, which no commit names yet."""
        if self._parts:
            self._files.append(changelog_file(self._lake, self._table, self._parts))
            self._parts, self.pending_bytes = [], 0

    def commit(self, upto_ts: int, *, reaches: bool = False) -> None:
        """All that was added. reaches: the changelog's end becomes upto_ts even if nothing was added.
        Raises Overtaken, LakeUnavailable, LakeRefused.
        """
        self.write()
        if not self._files and not reaches:
            return

        def decide(state: TableState) -> Change:
            if state.transactions.get(self._transaction) != self.from_ts:
                raise Overtaken(
                    "another apply of this pipeline has appended to this changelog meanwhile",
                    where=state.place,
                    remedy="run one apply of a pipeline at a time; this window is tried again",
                )
            if self.from_ts is not None and was_restored(self._log, self._transaction, state.version, self._version):
                raise Overtaken(
                    "somebody took this changelog back (RESTORE) while a window was written",
                    where=state.place,
                    remedy="the window is tried again, and says which changes may be missing",
                )
            made = added(state, self._table) if state.created else creation(self._table, PROPERTIES)
            adds = [add(body, data_change=True) for body in self._files]
            return Change([*made, *adds], "WRITE", {self._transaction: upto_ts}, {"mode": "Append"})

        self._log.update(decide)


def told(op: str, place: Physical, commit_ts: int, **more: Any) -> dict[str, Any]:
    """A row that is no row change. place: (source, database, table)."""
    source, database, table = place
    row = dict.fromkeys(SCHEMA.names) | {"file": "", "pos": 0, "seq": STATEMENT_SEQ, "ordinal": 0}
    named = {"op": op, "source": source, "database": database, "table": table, "commit_ts": commit_ts}
    return row | named | more


def as_rows(told_rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of told(), each at a place of its own."""
    numbered = [dict(row) | {"ordinal": number} for number, row in enumerate(told_rows)]
    return pa.Table.from_pylist(numbered, schema=SCHEMA)


def finer(rows: pa.Table) -> pa.Table:
    """Logged rows, with ordinals that leave room between them."""
    at = rows.schema.get_field_index("ordinal")
    return rows.set_column(at, rows.schema.field(at), pc.shift_left(rows["ordinal"], FINER_BITS))


def changelogs(lake: LakeFiles) -> list[Table]:
    """Those that a lake has, by path."""
    logs = [info.path for info in lake.listed(FOLDER, recursive=True) if info.base_name == "_delta_log"]
    names = sorted(path.split("/")[-3:-1] for path in logs)
    return [_at(f"{FOLDER}/{database}/{table}") for database, table in names]
