"""A recorded stream replayed, and its tables as SELECT shows them.

In:  a Recording.
Out: tables at a TSO: {"db", "table", "table_id", "columns", "rows" (sorted), "row_count", "sha256"} each.

Rows are sorted as lists of texts, NULL after all of them; sha256 is of their compact ASCII JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.kit.tidb.replay.catalog import Catalog, CatalogTable
from tests.kit.tidb.replay.recording import Recording
from tidegate.errors import StreamCorrupt, UnsupportedValue
from tidegate.tidb.codec.datum import Value
from tidegate.tidb.jobs import ROWID, ROWID_NAME, ColumnInfo, Tp
from tidegate.tidb.records.pairing import ROLLED_BACK, Pairing
from tidegate.tidb.records.payload import Binlog, BinlogType, binlog_of
from tidegate.tidb.values.cells import cell_text
from tidegate.tidb.values.stored import computed


@dataclass(frozen=True, slots=True)
class Replayed:
    """resolved_ts: how far all is known. unanswered: start_ts of prewrites that nobody knows the fate of. unknown: of
    tables whose rows can't be told, why.
    """

    tables: list[dict[str, Any]]
    resolved_ts: int
    unanswered: tuple[int, ...]
    transactions: int
    rows: int
    unknown: dict[str, str] = field(default_factory=dict)


class RecordedStream:
    """A paired recording. discard: orphans count as rolled back, wrong for most: a question."""

    def __init__(self, recording: Recording, *, discard: bool = False) -> None:
        self._recording = recording
        pumps = {pump for pump, _ in recording.payloads()}
        pairing = Pairing[Binlog](pumps)
        last: dict[int, int] = {}

        def note(binlog: Binlog) -> None:
            if binlog.ddl_job_id:
                last[binlog.ddl_job_id] = max(last.get(binlog.ddl_job_id, 0), binlog.start_ts)

        for pump, payload in recording.payloads():
            binlog = binlog_of(payload)
            pairing.take(binlog, pump, binlog)
            if binlog.tp is BinlogType.COMMIT:
                note(binlog)
        for prewrite in pairing.unanswered:
            answer = ROLLED_BACK if discard else recording.orphans.get(prewrite.start_ts)
            if answer is not None:
                pairing.answer(prewrite.start_ts, answer)
            if answer != ROLLED_BACK:
                note(prewrite.place)
        pairing.end()
        self._job_ends = last
        self._pairing = pairing
        self.unanswered = tuple(prewrite.start_ts for prewrite in pairing.unanswered)
        self.transactions = list(pairing.committed(pairing.resolved_ts))
        self.resolved_ts = pairing.resolved_ts

    def at(self, tso: int | None = None) -> Replayed:
        """Tables after all commits at or below tso; by default, after all resolved ones."""
        if tso is not None and tso > self.resolved_ts:
            raise StreamCorrupt(
                f"TSO {tso} isn't resolved: all is known up to {self.resolved_ts}",
                remedy=f"{len(self.unanswered)} prewrites have no answer; ask TiDB of them, or name an earlier TSO",
            )
        upto = self.resolved_ts if tso is None else tso
        catalog, count, rows = Catalog(self._first_id()), 0, 0
        for transaction in self.transactions:
            if transaction.commit_ts > upto:
                break
            binlog = transaction.place
            count += 1
            if not binlog.ddl_job_id:
                rows += catalog.change(binlog.prewrite_value, transaction.commit_ts)
                continue
            job = self._recording.jobs.get(binlog.ddl_job_id)
            # Of a job with several binlogs the last one says that it is done; SETVAL and the like have no job at all.
            if job is not None and binlog.start_ts == self._job_ends[job.id]:
                catalog.run(job)
        shown, unknown = list[dict[str, Any]](), dict[str, str]()
        for database, table in catalog:
            try:
                shown.append(table_shown(database, table))
            except UnsupportedValue as error:
                unknown[f"{database}.{table.info.name}"] = str(error)
        return Replayed(shown, upto, self.unanswered, count, rows, unknown)

    def _first_id(self) -> int:
        ids = [id_ for job in self._recording.jobs.values() for id_ in (job.schema_id, job.table_id) if id_ > 1]
        return min(ids, default=0)


def _is_hex(column: ColumnInfo) -> bool:
    """Whether its cells are shown as HEX() shows them."""
    return column.is_binary or column.tp is Tp.BIT


def table_shown(database: str, table: CatalogTable) -> dict[str, Any]:
    info = table.info
    columns: list[dict[str, Any]] = [
        {"name": column.name, "column_type": column.type_text, "enc": "hex" if _is_hex(column) else "text"}
        for column in info.shown
    ]
    if not info.handle:
        columns.append({"name": ROWID_NAME, "column_type": "bigint", "enc": "text", "hidden": True})
    rows = sorted(_rows(table), key=lambda row: [(cell is None, cell or "") for cell in row])
    return {
        "db": database,
        "table": info.name,
        "table_id": info.id,
        "columns": columns,
        "row_count": len(rows),
        "sha256": rows_hash(rows),
        "rows": rows,
    }


def _rows(table: CatalogTable) -> Iterator[list[str | None]]:
    """Raises UnsupportedValue."""
    info = table.info
    if table.unknown is not None:
        raise table.unknown
    for cells in table.rows:
        values = computed(info, cells)
        row = [_shown(column, values[column.id]) for column in info.shown]
        if not info.handle:
            rowid = cells.get(ROWID)
            row.append(None if rowid is None else str(rowid))
        yield row


def rows_hash(rows: list[list[str | None]]) -> str:
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()


def differences(replayed: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """How a replayed table differs from a recorded one; "" when it doesn't."""
    names = [[column["name"] for column in side["columns"]] for side in (replayed, expected)]
    if names[0] != names[1]:
        return f"columns {names[0]}, recorded {names[1]}"
    if replayed["rows"] == expected["rows"]:
        return ""
    missing = [row for row in expected["rows"] if row not in replayed["rows"]]
    extra = [row for row in replayed["rows"] if row not in expected["rows"]]
    return f"{len(missing)} rows are missing, such as {missing[:1]}; {len(extra)} too many, such as {extra[:1]}"


def _shown(column: ColumnInfo, value: Value | str) -> str | None:
    """A cell as SELECT shows it, also one that was made here."""
    return value if isinstance(value, str) else cell_text(column, value)
