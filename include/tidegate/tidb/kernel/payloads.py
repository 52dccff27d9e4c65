"""The payloads of a segment, and the rows of those that are wanted.

In:  a segment's bytes; records of payloads.
Out: records (layout.py), or the number below 0 of a place where bytes aren't as TiDB writes them.

Numbers of fields: tipb's proto/binlog/binlog.proto. A field that comes twice counts as it comes last.
"""

from __future__ import annotations

from typing import Final

from numba import types

from tidegate.columnar.kernel.memory import FAST, I, equal_bytes, load64, set_word, store8, word
from tidegate.compiled import compiled
from tidegate.tidb.kernel import layout as T  # noqa: N812 - a page of constants
from tidegate.tidb.kernel.wire import CUT, PAIR, RUN, VARINT, behind_field, run, varint

_LENGTH_BYTES: Final = 8
_PAYLOAD_BYTES: Final = 8 * T.PAYLOAD_WORDS
_TABLE_BYTES: Final = 8 * T.TABLE_WORDS
_ROW_BYTES: Final = 8 * T.ROW_WORDS
_PREWRITE, _COMMIT, _ROLLBACK, _JOB, _TABLES = 0, 1, 2, 64, 65
_INSERT, _UPDATE, _DELETE = 0, 1, 4
TRIPLE: Final = types.UniTuple(I, 3)


@compiled(I(I, I), **FAST)
def count_payloads(at: int, end: int) -> int:
    count = 0
    while at < end:
        if at + _LENGTH_BYTES > end:
            return CUT
        size = load64(at)
        at += _LENGTH_BYTES
        if size < 0 or size > end - at:
            return CUT
        at += size
        count += 1
    return count


@compiled(I(I, I, I, I), **FAST)
def _payload(at: int, end: int, record: int, data: int) -> int:
    """One Binlog; 0, or CUT."""
    for number in range(T.TP, T.PAYLOAD_WORDS):
        set_word(record, number, 0)
    while at < end:
        tag, at = varint(at, end)
        if at < 0:
            return CUT
        number, wire = tag >> 3, tag & 7
        if number in (1, 2, 3, 7, 8):
            if wire != VARINT:
                return CUT
            value, at = varint(at, end)
            if at < 0:
                return CUT
            if number != 8:
                set_word(record, T.JOB_ID if number == 7 else T.TP + number - 1, value)
        elif number in (4, 5, 6):
            if wire != RUN:
                return CUT
            size, at = run(at, end)
            if at < 0:
                return CUT
            if number == 5:
                set_word(record, T.VALUE_AT, at - data)
                set_word(record, T.VALUE_BYTES, size)
            at += size
        else:
            at = behind_field(wire, at, end) if number > 0 else CUT
            if at < 0:
                return CUT
    tp, start_ts, commit_ts = word(record, T.TP), word(record, T.START_TS), word(record, T.COMMIT_TS)
    if tp not in (_PREWRITE, _COMMIT, _ROLLBACK, _JOB, _TABLES) or start_ts <= 0 or commit_ts < 0:
        return CUT
    return CUT if tp == _COMMIT and commit_ts <= start_ts else 0


@compiled(I(I, I, I), **FAST)
def read_payloads(data: int, size: int, records: int) -> int:
    """All of a segment, of which count_payloads has seen the lengths. 0, or CUT."""
    at, end = data, data + size
    while at < end:
        bytes_ = load64(at) + _LENGTH_BYTES
        set_word(records, T.AT, at - data)
        set_word(records, T.BYTES, bytes_)
        if _payload(at + _LENGTH_BYTES, at + bytes_, records, data) < 0:
            return CUT
        records += _PAYLOAD_BYTES
        at += bytes_
    return 0


@compiled(PAIR(I, I, I), forceinline=True, **FAST)
def _next_run(wanted: int, at: int, end: int) -> tuple[int, int]:
    """The next field of a number that is a run of bytes: how many, and where they begin; 0, CUT at the end, and -1,
    CUT where the bytes are none.
    """
    while at < end:
        tag, at = varint(at, end)
        if at < 0:
            return -1, CUT
        number, wire = tag >> 3, tag & 7
        if number == wanted and wire == RUN:
            size, at = run(at, end)
            return (size, at) if at >= 0 else (-1, CUT)
        at = behind_field(wire, at, end) if number > 0 else CUT
        if at < 0:
            return -1, CUT
    return 0, CUT


@compiled(I(I, I, I), **FAST)
def _first_id(at: int, end: int, table: int) -> int:
    """The first id of a TableMutation, the only wanted part."""
    while at < end:
        tag, at = varint(at, end)
        if at < 0:
            return CUT
        number, wire = tag >> 3, tag & 7
        if number == 1 and wire == VARINT:
            value, at = varint(at, end)
            set_word(table, T.TABLE_ID, value)
            return at
        at = behind_field(wire, at, end) if number > 0 else CUT
        if at < 0:
            return CUT
    return at


@compiled(I(I, I, I, I), **FAST)
def read_tables(data: int, payload: int, number: int, tables: int) -> int:
    """The tables of a prewrite's value: how many; CUT. tables: records, or 0 to count them and check the lengths."""
    at = data + word(payload, T.VALUE_AT)
    end = at + word(payload, T.VALUE_BYTES)
    count = 0
    while at < end:
        tag, at = varint(at, end)
        if at < 0:
            return CUT
        field, wire = tag >> 3, tag & 7
        if field != 2 or wire != RUN:
            at = behind_field(wire, at, end) if field > 0 else CUT
            if at < 0:
                return CUT
            continue
        size, at = run(at, end)
        if at < 0:
            return CUT
        if tables:
            record = tables + count * _TABLE_BYTES
            set_word(record, T.TABLE_PAYLOAD, number)
            set_word(record, T.TABLE_ID, 0)
            if _first_id(at, at + size, record) < 0:
                return CUT
        count += 1
        at += size
    return count


@compiled(I(I, I, I), **FAST)
def _skim(at: int, end: int, table: int) -> int:
    """How many rows one TableMutation announces; its id into `table`. CUT when they aren't there."""
    rows = announced = 0
    while at < end:
        tag, at = varint(at, end)
        if at < 0:
            return CUT
        number, wire = tag >> 3, tag & 7
        if number < 1 or number in (4, 5) or (number in (1, 2, 3, 6) and wire != (VARINT if number == 1 else RUN)):
            return CUT
        if number == 1:
            value, at = varint(at, end)
            set_word(table, T.TABLE_ID, value)
        elif number == 7 and wire == RUN:
            size, at = run(at, end)
            stop = at + size
            while 0 <= at < stop:
                at = varint(at, stop)[1]
                announced += 1
        else:
            announced += number == 7
            rows += number in (2, 3, 6)
            at = behind_field(wire, at, end)
        if at < 0:
            return CUT
    return rows if rows == announced else CUT


@compiled(I(I, I, I), **FAST)
def count_rows(data: int, payload: int, table: int) -> int:
    """Rows of a prewrite's value, or CUT when a table's aren't what its sequence announces. table: a record to use."""
    at = data + word(payload, T.VALUE_AT)
    end = at + word(payload, T.VALUE_BYTES)
    rows = 0
    while at < end:
        size, at = _next_run(2, at, end)
        if at < 0:
            return rows if size == 0 else CUT
        more = _skim(at, at + size, table)
        if more < 0:
            return CUT
        rows += more
        at += size
    return rows


@compiled(I(I, I), **FAST)
def _last_id(at: int, end: int) -> int:
    """The id of a TableMutation that was skimmed; 0 when it has none."""
    table_id = 0
    while 0 <= at < end:
        tag, at = varint(at, end)
        if tag == 8 | VARINT:
            table_id, at = varint(at, end)
        else:
            at = behind_field(tag & 7, at, end)
    return table_id


@compiled(TRIPLE(I, I), **FAST)
def _next_number(at: int, end: int) -> tuple[int, int, int]:
    """The next field 7: its number and the address after, or how many bytes of numbers and where they begin."""
    while 0 <= at < end:
        tag, at = varint(at, end)
        wire = tag & 7
        if tag >> 3 == 7 and wire == VARINT:
            value, at = varint(at, end)
            return value, wire, at
        if tag >> 3 == 7:
            size, at = run(at, end)
            return size, wire, at
        at = behind_field(wire, at, end)
    return 0, 0, CUT


@compiled(I(I, I, I, I), **FAST)
def _in_sequence(at: int, end: int, rows: int, data: int) -> int:
    """One TableMutation that was skimmed: each number of its sequence takes the next row of its list."""
    count = 0
    inserted = updated = deleted = sequence = at
    table_id, packed, packed_end = _last_id(at, end), 0, 0
    while True:
        if packed < packed_end:
            kind, packed = varint(packed, packed_end)
        else:
            kind, wire, sequence = _next_number(sequence, end)
            if sequence < 0:
                break
            if wire == RUN:
                packed, packed_end, sequence = sequence, sequence + kind, sequence + kind
                continue
        if kind == _INSERT:
            size, start = _next_run(2, inserted, end)
            inserted = start + size
        elif kind == _UPDATE:
            size, start = _next_run(3, updated, end)
            updated = start + size
        elif kind == _DELETE:
            size, start = _next_run(6, deleted, end)
            deleted = start + size
        else:
            return CUT
        if start < 0:
            return CUT
        record = rows + count * _ROW_BYTES
        set_word(record, T.ROW_TABLE_ID, table_id)
        set_word(record, T.ROW_KIND, kind)
        set_word(record, T.ROW_START, start - data)
        set_word(record, T.ROW_END, start + size - data)
        count += 1
    return count


@compiled(I(I, I, I, I), **FAST)
def read_rows(data: int, payload: int, number: int, rows: int) -> int:
    """The rows of a prewrite's value, counted by count_rows, in the order of the transaction; how many."""
    at = data + word(payload, T.VALUE_AT)
    end = at + word(payload, T.VALUE_BYTES)
    count = 0
    while at < end:
        size, at = _next_run(2, at, end)
        if at < 0:
            break
        more = _in_sequence(at, at + size, rows + count * _ROW_BYTES, data)
        if more < 0:
            return CUT
        for row in range(count, count + more):
            set_word(rows + row * _ROW_BYTES, T.ROW_PAYLOAD, number)
        count += more
        at += size
    return count


@compiled(I(I, I, I, I, I), **FAST)
def read_all_tables(data: int, payloads: int, numbers: int, count: int, tables: int) -> int:
    """read_tables of several payloads, by number; how many tables, or CUT."""
    tables_read = 0
    for n in range(count):
        number = word(numbers, n)
        more = read_tables(
            data, payloads + number * _PAYLOAD_BYTES, number, tables + tables_read * _TABLE_BYTES if tables else 0
        )
        if more < 0:
            return CUT
        tables_read += more
    return tables_read


@compiled(I(I, I, I, I, I), **FAST)
def count_all_rows(data: int, payloads: int, numbers: int, count: int, counts: int) -> int:
    """count_rows of several payloads, by number, into counts, which has room for one more; 0, or CUT."""
    for n in range(count):
        more = count_rows(data, payloads + word(numbers, n) * _PAYLOAD_BYTES, counts + 8 * n)
        if more < 0:
            return CUT
        set_word(counts, n, more)
    return 0


@compiled(I(I, I, I, I, I), **FAST)
def read_all_rows(data: int, payloads: int, numbers: int, count: int, rows: int) -> int:
    """read_rows of several payloads, by number; how many rows, or CUT."""
    rows_read = 0
    for n in range(count):
        number = word(numbers, n)
        more = read_rows(data, payloads + number * _PAYLOAD_BYTES, number, rows + rows_read * _ROW_BYTES)
        if more < 0:
            return CUT
        rows_read += more
    return rows_read


@compiled(types.boolean(I, I), **FAST)
def _same_table(row: int, last: int) -> bool:
    """Whether two rows are of one transaction and table."""
    same = word(row, T.ROW_PAYLOAD) == word(last, T.ROW_PAYLOAD)
    return same and word(row, T.ROW_TABLE_ID) == word(last, T.ROW_TABLE_ID)


@compiled(I(I, I, I, I), **FAST)
def find_told_twice(data: int, rows: int, count: int, marks: int) -> int:
    """marks: uint8[count], 1 for a row that may be the second writing of one before it (double_writes.py)."""
    suspects = 0
    for number in range(count):
        row = rows + number * _ROW_BYTES
        last = row - _ROW_BYTES
        kind, marked = word(row, T.ROW_KIND), 0
        if number and _same_table(row, last):
            before = word(last, T.ROW_KIND)
            at, to = word(row, T.ROW_START), word(last, T.ROW_START)
            size = word(row, T.ROW_END) - at
            if kind == before:
                marked = 1 if size == word(last, T.ROW_END) - to and equal_bytes(data + at, data + to, size) else 0
            elif kind == _DELETE:
                first = last - _ROW_BYTES
                third = number > 1 and _same_table(first, last) and word(first, T.ROW_KIND) == _UPDATE
                marked = 1 if before == _UPDATE or third else 0
            else:
                marked = 1 if kind == _UPDATE and before == _DELETE else 0
        store8(marks + number, marked)
        suspects += marked
    return suspects
