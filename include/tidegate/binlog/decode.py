"""A segment's changes, table by table: raw events in, Arrow batches out.

In:  a Segment, the table versions of schema_history, the windows of commit time that are wanted, per table.
Out: a DecodedSegment. A table that can't be decoded becomes a Problem and its changes are left out; the others go on.
     What no table can be named for (unknown events, INCIDENT, compressed transactions) raises UnknownEvent, and bytes
     that aren't whole events raise StreamCorrupt.

Keys of versions and windows are (database, table), physical names. The version in force for a transaction is the last
one with version.commit_ts <= its commit_ts. Every byte of the payload stands in the ledger: decoded, ignored by a named
rule, or quarantined with its table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate import tables
from tidegate.binlog.batch import Batch, RowsError, decode_batch
from tidegate.binlog.event_index import EventIndex, index_segment
from tidegate.binlog.events import RULE_OF_TYPE, UNREAD_ROWS_TYPES, EventFlag, EventType, type_name
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.kernel import layout as L  # noqa: N812
from tidegate.binlog.plan import Plan, make_plan
from tidegate.binlog.result import DecodedSegment, Ledger, Problem, TableChanges, Window
from tidegate.binlog.segment import Segment
from tidegate.binlog.statements import judge_statements
from tidegate.binlog.transaction_scan import FRAME, ROWS, SAVEPOINT, STATEMENT, XA_ANSWER
from tidegate.errors import SchemaMismatch, StreamCorrupt, Terminal, UnknownEvent, UnsupportedValue
from tidegate.schema.columns import TableVersion, VersionStatus

__all__ = ["DecodedSegment", "Ledger", "Problem", "TableChanges", "Window", "decode_segment"]

Name = tuple[str, str]
Versions = Mapping[Name, Sequence[TableVersion]]
Windows = Mapping[Name, Window]
# data, events (int64[n, EVENT_WORDS]), plan, seq -> Batch; raises RowsError
BatchDecoder = Callable[[npt.NDArray[np.uint8], npt.NDArray[np.int64], Plan, int], Batch]

_OPS: Final = {
    EventType.WRITE_ROWS_V1: L.OP_WRITE,
    EventType.WRITE_ROWS_V2: L.OP_WRITE,
    EventType.UPDATE_ROWS_V1: L.OP_UPDATE,
    EventType.UPDATE_ROWS_V2: L.OP_UPDATE,
    EventType.DELETE_ROWS_V1: L.OP_DELETE,
    EventType.DELETE_ROWS_V2: L.OP_DELETE,
}
_OP_OF_TYPE: Final = np.array([_OPS.get(code, -1) for code in range(256)], np.int64)  # type: ignore[call-overload]


class HeldError(Exception):
    """A table's trouble at an event; becomes its Problem."""

    def __init__(self, event: int, error: Terminal) -> None:
        super().__init__(str(error))
        self.event = event
        self.error = error


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows events of one table in its window: numbers of events, ascending."""

    name: Name
    events: npt.NDArray[np.int64]


def decode_segment(
    segment: Segment,
    versions: Versions,
    windows: Windows,
    *,
    held: Collection[Name] = (),
    verify_checksums: bool = False,
) -> DecodedSegment:
    """Decode what `windows` asks for. Raises StreamCorrupt and UnknownEvent; see the module's docstring.

    held: tables that wait for a person: their rows count as quarantined, bronze keeps them.
    """
    index = index_segment(segment, verify_checksums=verify_checksums)
    return decode_index(index, versions, windows, decode_batch, held)


def decode_index(
    index: EventIndex, versions: Versions, windows: Windows, decode: BatchDecoder, held: Collection[Name] = ()
) -> DecodedSegment:
    """decode_segment behind its first step, with the decoder of rows as an argument: tests bring a slow one too."""
    ledger = Ledger(payload_bytes=len(index.data))
    wanted = account_rows(index, windows, held, ledger)
    problems = account_others(index, windows, ledger)
    changes: list[TableChanges] = []
    for rows in wanted:
        size = int(index.events[rows.events, K.SIZE].sum())
        if rows.name in problems:
            ledger.quarantined_bytes += size
            continue
        try:
            found, null_dates = _decode_table(index, rows, versions.get(rows.name, ()), decode)
        except HeldError as trouble:
            problems[rows.name] = problem_of(index, rows.name, trouble)
            ledger.quarantined_bytes += size
            continue
        changes += found
        ledger.decoded_bytes += size
        ledger.rows += sum(change.batch.num_rows for change in found)
        ledger.null_dates += null_dates
    ledger.check()
    return DecodedSegment(tuple(changes), tuple(problems[name] for name in sorted(problems)), ledger)


def problem_of(index: EventIndex, name: Name, held: HeldError) -> Problem:
    """The Problem of a table, with both sides and the place in its message."""
    segment, error = index.segment, held.error
    pos = index.position(held.event)
    placed = type(error)(error.what, where=f"{name[0]}.{name[1]} at {segment.file}:{pos}", remedy=error.remedy)
    commit_ts = int(index.events[held.event, K.COMMIT_TS])
    return Problem(name[0], name[1], type(error).__name__, str(placed), commit_ts, segment.file, pos)


def account_rows(index: EventIndex, windows: Windows, held: Collection[Name], ledger: Ledger) -> list[TableRows]:
    """Rows events per wanted table, in order of name; the bytes of all others into the ledger."""
    events = index.events
    numbers = np.flatnonzero(events[:, K.BITS] & ROWS)
    contents = events[numbers, K.CONTENT]
    if len(numbers) and int(contents.min()) < 0:
        event = int(numbers[np.flatnonzero(contents < 0)[0]])
        raise StreamCorrupt(
            f"event {type_name(int(events[event, K.TYPE]))} follows no TABLE_MAP of its table",
            where=f"{index.segment.source} at {index.segment.file}:{index.position(event)}",
            remedy="capture the segment again from the source",
        )
    by_name: dict[Name, list[npt.NDArray[np.int64]]] = {}
    order = np.argsort(contents, kind="stable")
    starts = np.searchsorted(contents[order], np.arange(len(index.bodies) + 1))
    for content, name in enumerate(index.names()):
        mine = numbers[order[starts[content] : starts[content + 1]]]
        window = windows.get(name)
        if window is None:
            size = int(events[mine, K.SIZE].sum())
            if name in held:
                ledger.quarantined_bytes += size
            else:
                ledger.ignore("table not asked for", size)
            continue
        commit_ts = events[mine, K.COMMIT_TS]
        inside = (commit_ts > window.after_ts) & (commit_ts <= window.upto_ts)
        ledger.ignore("outside the window", int(events[mine[~inside], K.SIZE].sum()))
        if inside.any():
            by_name.setdefault(name, []).append(mine[inside])
    return [TableRows(name, np.sort(np.concatenate(by_name[name]))) for name in sorted(by_name)]


def account_others(index: EventIndex, windows: Windows, ledger: Ledger) -> dict[Name, Problem]:
    """Everything but rows events into the ledger; Problems of tables that statements name. Raises UnknownEvent."""
    events = index.events
    others = events[(events[:, K.BITS] & ROWS) == 0]
    sizes = np.bincount(others[:, K.TYPE], weights=others[:, K.SIZE], minlength=256).astype(np.int64)
    for code in np.flatnonzero(sizes).tolist():
        rule = RULE_OF_TYPE.get(code)
        if rule is not None:
            ledger.ignore(rule, int(sizes[code]))
        elif code != EventType.QUERY:
            _unknown(index, windows, code, ledger)
    queries = np.flatnonzero(events[:, K.TYPE] == EventType.QUERY)
    bits, query_sizes = events[queries, K.BITS], events[queries, K.SIZE]
    for rule, bit in (("savepoint", SAVEPOINT), ("xa answer", XA_ANSWER)):
        ledger.ignore(rule, int(query_sizes[(bits & bit) != 0].sum()))
    frame = ((bits & FRAME) != 0) | ((bits & (STATEMENT | SAVEPOINT | XA_ANSWER | FRAME)) == 0)
    ledger.ignore("transaction frame", int(query_sizes[frame].sum()))
    problems: dict[Name, Problem] = {}
    for judged in judge_statements(index, queries[(bits & STATEMENT) != 0].tolist(), windows):
        size = int(events[judged.event, K.SIZE])
        for name in judged.tables:
            problems.setdefault(name, problem_of(index, name, HeldError(judged.event, judged.error)))
        if judged.tables:
            ledger.quarantined_bytes += size
        else:
            ledger.ignore(judged.rule, size)
    return problems


def _unknown(index: EventIndex, windows: Windows, code: int, ledger: Ledger) -> None:
    """Events of a kind without a rule: fail closed, unless flagged ignorable or outside all windows."""
    for event in np.flatnonzero(index.events[:, K.TYPE] == code).tolist():
        row = index.events[event]
        flags = int.from_bytes(index.data[row[K.OFFSET] + 17 : row[K.OFFSET] + 19].tobytes(), "little")
        if flags & EventFlag.IGNORABLE:
            ledger.ignore("ignorable", int(row[K.SIZE]))
        elif any(int(row[K.COMMIT_TS]) in window for window in windows.values()):
            raise UnknownEvent(
                f"event {type_name(code)} can't be decoded",
                where=f"{index.segment.source} at {index.segment.file}:{index.position(event)}",
                remedy=_REMEDIES.get(code, "report it; bronze keeps its bytes"),
            )
        else:
            ledger.ignore("outside the window", int(row[K.SIZE]))


_REMEDIES: Final = {
    int(EventType.TRANSACTION_PAYLOAD): "set binlog_transaction_compression=OFF at the source",
    int(EventType.MARIADB_QUERY_COMPRESSED): "set log_bin_compress=OFF at the source",
    int(EventType.INCIDENT): "the source lost events: take new snapshots of its tables",
}


def _decode_table(
    index: EventIndex, rows: TableRows, versions: Sequence[TableVersion], decode: BatchDecoder
) -> tuple[list[TableChanges], int]:
    """All changes of one table. Raises HeldError."""
    changes, null_dates = [], 0
    for version, events in _by_version(index, rows, versions):
        batches = []
        contents = index.events[events, K.CONTENT]
        for content in np.unique(contents).tolist():
            mine = events[contents == content]
            try:
                plan = make_plan(index.bodies[content], version)
                batch = decode(index.data, _kernel_events(index, mine), plan, index.segment.seq)
            except RowsError as error:
                raise HeldError(int(mine[error.event]), error.error) from None
            except Terminal as error:
                raise HeldError(int(mine[0]), error) from None
            batches.append(batch.rows)
            null_dates += batch.null_dates
        changes.append(TableChanges(*rows.name, version.version, _in_order(batches)))
    return changes, null_dates


def _by_version(
    index: EventIndex, rows: TableRows, versions: Sequence[TableVersion]
) -> Iterator[tuple[TableVersion, npt.NDArray[np.int64]]]:
    """The table's rows events under each version in force. Raises HeldError for what can't be decoded under any."""
    events = index.events[rows.events]
    refused = np.flatnonzero((events[:, K.BITS] & K.XA_BIT) | np.isin(events[:, K.TYPE], list(UNREAD_ROWS_TYPES)))
    if len(refused):
        raise HeldError(int(rows.events[refused[0]]), _refusal(events[refused[0]]))
    in_order = sorted(versions, key=lambda version: version.commit_ts)
    starts = np.array([version.commit_ts for version in in_order], np.int64)
    which = np.searchsorted(starts, events[:, K.COMMIT_TS], side="right") - 1
    for at in np.unique(which).tolist():
        mine = rows.events[which == at]
        if at < 0:
            first = in_order[0].commit_ts if in_order else None
            known = "no version" if first is None else f"its first version at commit_ts {first}"
            raise HeldError(
                int(mine[0]),
                SchemaMismatch(
                    f"rows at commit_ts {int(index.events[mine[0], K.COMMIT_TS])}, but schema_history has {known}",
                    remedy="take a baseline of the table and snapshot it",
                ),
            )
        if in_order[at].status is VersionStatus.DROPPED:
            error = SchemaMismatch(
                f"rows of a table that schema_history version {in_order[at].version} says was dropped",
                remedy="a CREATE TABLE was missed: take a new baseline of the table",
            )
            raise HeldError(int(mine[0]), error)
        yield in_order[at], mine


def _refusal(event: npt.NDArray[np.int64]) -> Terminal:
    code = int(event[K.TYPE])
    if code == EventType.PARTIAL_UPDATE_ROWS:
        return UnsupportedValue(
            "partial JSON updates (PARTIAL_UPDATE_ROWS) lack the whole value",
            remedy="set binlog_row_value_options='' and binlog_row_image=FULL at the source",
        )
    if code in UNREAD_ROWS_TYPES:
        remedy = "set log_bin_compress=OFF at the source" if code > EventType.MARIADB_GTID else "upgrade the source"
        return UnsupportedValue(f"rows events of type {type_name(code)} can't be decoded", remedy=remedy)
    return UnsupportedValue(
        "rows of an XA transaction, which may yet be rolled back", remedy="don't use XA on this table, or leave it out"
    )


def _kernel_events(index: EventIndex, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    rows = index.events[numbers]
    made = np.empty((len(rows), L.EVENT_WORDS), np.int64)
    made[:, L.EVENT_START] = rows[:, K.START]
    made[:, L.EVENT_END] = rows[:, K.END]
    made[:, L.EVENT_OP] = _OP_OF_TYPE[rows[:, K.TYPE]]
    made[:, L.EVENT_COMMIT_TS] = rows[:, K.COMMIT_TS]
    return made


def _in_order(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch in log order; several only when a table was mapped in two ways under one version."""
    if len(batches) == 1:
        return batches[0]
    whole = pa.Table.from_batches(batches).combine_chunks().sort_by(tables.ORDINAL)
    return whole.to_batches()[0]
