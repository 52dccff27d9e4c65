"""The records that TiDB writes to a Pump: a Prewrite, its Commit or Rollback, or a fake one.

In:  WriteBinlogReq.payload.
Out: Binlog; the mutations of a Prewrite in the order in which the transaction did them. StreamCorrupt for broken bytes.

Numbers of fields: tipb's proto/binlog/binlog.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from tidegate.errors import UnknownEvent
from tidegate.remedy import REPORT
from tidegate.tidb.codec.protobuf import bytes_field, corrupt, fields, number_field, signed, varint


class BinlogType(IntEnum):
    """Binlog.tp; 3 and 4 (PreDDL, PostDDL) are of TiDB before 1.0. TiDB doesn't write JOB and TABLES: tidegate's Pump
    lands them in its stream. Bronze alone then tells the meaning of its rows, without TiDB.
    """

    PREWRITE = 0
    COMMIT = 1
    ROLLBACK = 2
    JOB = 64  # what TiDB's history says of a DDL job, at the commit_ts of its binlog
    TABLES = 65  # the tables that were there at a timestamp, before which nothing is known of them


# Records that tidegate's Pump writes, and TiDB never sends.
NOTES: Final = frozenset({BinlogType.JOB, BinlogType.TABLES})


class Mutation(IntEnum):
    """TableMutation.sequence; 2 and 3 (DeleteID, DeletePK) are of TiDB before 1.0."""

    INSERT = 0
    UPDATE = 1
    DELETE = 4


@dataclass(frozen=True, slots=True)
class Binlog:
    """start_ts pairs a Prewrite with its answer. commit_ts: of a Commit; 0 of a Rollback. prewrite_key: the
    transaction's primary key, for asking TiDB's MVCC. prewrite_value: mutations of a Prewrite without DDL. ddl_job_id:
    0 for rows.
    """

    tp: BinlogType
    start_ts: int
    commit_ts: int = 0
    prewrite_key: bytes = b""
    prewrite_value: bytes = b""
    ddl_query: bytes = b""
    ddl_job_id: int = 0
    ddl_schema_state: int = 0

    @property
    def is_fake(self) -> bool:
        """Written by a Pump as a heartbeat."""
        return self.tp is BinlogType.ROLLBACK and self.start_ts == self.commit_ts


# The lists of TableMutation's rows, by the mutation that takes the next one of them.
_ROWS: Final = {2: Mutation.INSERT, 3: Mutation.UPDATE, 6: Mutation.DELETE}
_NUMBERS: Final = {1: "tp", 2: "start_ts", 3: "commit_ts", 7: "ddl_job_id", 8: "ddl_schema_state"}
_BYTES: Final = {4: "prewrite_key", 5: "prewrite_value", 6: "ddl_query"}


def binlog_of(payload: bytes) -> Binlog:
    """Raises StreamCorrupt, and UnknownEvent for a type of binlog that isn't known."""
    cells: dict[str, Any] = {}
    for number, value in fields(payload):
        name = _NUMBERS.get(number) if isinstance(value, int) else _BYTES.get(number)
        if name:
            cells[name] = signed(value) if isinstance(value, int) else value
        elif number in _NUMBERS or number in _BYTES:
            raise corrupt(f"field {number} isn't what it should be")
    try:
        cells["tp"] = BinlogType(cells.get("tp", 0))
    except ValueError:
        raise UnknownEvent(f"a binlog of type {cells['tp']} isn't known", remedy=REPORT) from None
    binlog = Binlog(**{"start_ts": 0} | cells)
    if binlog.start_ts <= 0 or binlog.commit_ts < 0:
        raise corrupt(f"start_ts {binlog.start_ts}, commit_ts {binlog.commit_ts}")
    if binlog.tp is BinlogType.COMMIT and binlog.commit_ts <= binlog.start_ts:
        raise corrupt(f"commit_ts {binlog.commit_ts} isn't above start_ts {binlog.start_ts}")
    return binlog


def fake_payload(tso: int) -> bytes:
    """A heartbeat as a Pump writes it."""
    return number_field(1, BinlogType.ROLLBACK) + number_field(2, tso) + number_field(3, tso) + number_field(7, 0)


def answer_payload(start_ts: int, commit_ts: int, key: bytes, job_id: int = 0) -> bytes:
    """The Commit that got lost, or with commit_ts 0 the Rollback. job_id: of a DDL's."""
    tp = BinlogType.COMMIT if commit_ts else BinlogType.ROLLBACK
    head = number_field(1, tp) + number_field(2, start_ts) + number_field(3, commit_ts)
    return head + bytes_field(4, key) + number_field(7, job_id)


def committed_payload(prewrite: Binlog, commit_ts: int) -> bytes:
    """A Commit with its Prewrite's rows or DDL, as a Pump gives it to a drainer."""
    head = number_field(1, BinlogType.COMMIT) + number_field(2, prewrite.start_ts) + number_field(3, commit_ts)
    rows = bytes_field(4, prewrite.prewrite_key) + bytes_field(5, prewrite.prewrite_value)
    ddl = bytes_field(6, prewrite.ddl_query) + number_field(7, prewrite.ddl_job_id)
    return head + rows + ddl + number_field(8, prewrite.ddl_schema_state)


def job_payload(job_id: int, commit_ts: int, text: bytes) -> bytes:
    """A finished job's JSON, for the DDL binlog that was committed there."""
    head = number_field(1, BinlogType.JOB) + number_field(2, commit_ts)
    return head + bytes_field(5, text) + number_field(7, job_id)


def tables_payload(tso: int, text: bytes) -> bytes:
    """The tables that were there (live_tables.py)."""
    return number_field(1, BinlogType.TABLES) + number_field(2, tso) + bytes_field(5, text)


def mutations_of(prewrite_value: bytes) -> Iterator[tuple[int, Mutation, bytes]]:
    """(table id, mutation, the row's bytes), each table's in the order in which they were done."""
    for number, value in fields(prewrite_value):
        if number == 2 and isinstance(value, bytes):
            yield from _in_sequence(value)


def table_ids_of(prewrite_value: bytes) -> tuple[int, ...]:
    """Ids of the tables that it has rows of, without a look at the rows: an id is the first field of its table."""
    ids = dict[int, None]()
    for number, value in fields(prewrite_value):
        if number == 2 and isinstance(value, bytes):
            first = next(
                (signed(table_id) for of, table_id in fields(value) if of == 1 and isinstance(table_id, int)), 0
            )
            ids[first] = None
    return tuple(ids)


def _in_sequence(table_mutation: bytes) -> Iterator[tuple[int, Mutation, bytes]]:
    table_id, sequence = 0, list[int]()
    rows: dict[Mutation, list[bytes]] = {kind: [] for kind in Mutation}
    for number, value in fields(table_mutation):
        if number == 1 and isinstance(value, int):
            table_id = signed(value)
        elif number in _ROWS and isinstance(value, bytes):
            rows[_ROWS[number]].append(value)
        elif number == 7:
            sequence += [value] if isinstance(value, int) else _packed(value)
        elif number in (4, 5):
            raise corrupt("deletes in the form of before TiDB 1.0")
    waiting = {kind: iter(rows_of_kind) for kind, rows_of_kind in rows.items()}
    if len(sequence) != sum(map(len, rows.values())):
        raise corrupt(f"{len(sequence)} mutations are announced, {sum(map(len, rows.values()))} rows are there")
    for code in sequence:
        try:
            kind = Mutation(code)
            row = next(waiting[kind])
        except (ValueError, StopIteration):
            raise corrupt(f"no row for a mutation of kind {code}") from None
        yield table_id, kind, row


def _packed(data: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        numbers.append(value)
    return numbers


# --- the requests of binlog.Pump (pump.proto) ------------------------------------------------------


def write_request(message: bytes) -> tuple[int, bytes]:
    """WriteBinlogReq: (cluster id, payload)."""
    cluster, payload = 0, b""
    for number, value in fields(message):
        if number == 1 and isinstance(value, int):
            cluster = value
        elif number == 2 and isinstance(value, bytes):
            payload = value
    return cluster, payload


def write_answer(error: str = "") -> bytes:
    """WriteBinlogResp: empty for what is stored."""
    return bytes_field(1, error.encode()) if error else b""


def pull_request(message: bytes) -> tuple[int, int]:
    """PullBinlogReq: (cluster id, the commit_ts to go on after, from the offset of its Pos)."""
    cluster = after_ts = 0
    for number, value in fields(message):
        if number == 1 and isinstance(value, int):
            cluster = value
        elif number == 2 and isinstance(value, bytes):
            offsets = (signed(offset) for of, offset in fields(value) if of == 2 and isinstance(offset, int))
            after_ts = next(offsets, 0)
    return cluster, max(after_ts, 0)


def pull_answer(start_ts: int, commit_ts: int, payload: bytes) -> bytes:
    """PullBinlogResp: an Entity of a Pos, the payload and its Meta."""
    place = number_field(1, 0) + number_field(2, commit_ts)
    meta = number_field(1, start_ts) + number_field(2, commit_ts)
    return bytes_field(1, bytes_field(1, place) + bytes_field(2, payload) + bytes_field(4, meta))
