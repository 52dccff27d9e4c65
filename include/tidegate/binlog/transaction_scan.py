"""Which transaction an event belongs to, and its commit_ts: one rule, compiled, for capture and decode alike.

In:  events in binlog order, one call each, and an int64 state array that lives as long as the stream.
Out: bits that say what the event did (BEGINS, ENDS, ...); state[CURRENT] is its transaction's commit_ts.

Capture calls it while it walks packets and stores the value before a segment's first transaction
(prev_commit_ts); decode starts from that value, replays `context`, then `payload`, and gets the same
numbers. What must hold for that:

- Start: `state = new_state(prev_commit_ts, checksum)`. One state per stream; a FORMAT_DESCRIPTION event
  updates its checksum length by itself.
- When a segment is cut inside a transaction (state[PHASE] != IDLE), prev_commit_ts is state[BEFORE], else
  state[PREVIOUS]. Its context is the FORMAT_DESCRIPTION event, then the open transaction's events whose bits
  have FRAME (GTID, BEGIN, XA START), then the TABLE_MAPs since the last STATEMENT_END (older ones are dead:
  every statement maps its tables anew), all in their order.
- To lift the floor (a heartbeat's clock), raise state[PREVIOUS] between two segments only.

A transaction begins at a GTID event; without one, at the first QUERY, TABLE_MAP or rows event after the
last end. It ends at XID, XA PREPARE, a QUERY COMMIT or ROLLBACK, a QUERY outside BEGIN, a compressed
TRANSACTION_PAYLOAD, and with MariaDB's FL_STANDALONE after its one statement.

Layouts: QUERY, XID: MySQL source docs "Replication Protocol"; GTID: mysql-server
libs/mysql/binlog/event/control_events.h (Gtid_event), tagged: libs/mysql/serialization; MariaDB:
sql/log_event.h (Gtid_log_event, is_part_of_group).
"""

from __future__ import annotations

from typing import Any, Final

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from tidegate.commit_ts import next_commit_ts

# --- state --------------------------------------------------------------------------------------
PREVIOUS: Final = 0  # commit_ts of the last transaction that began; the floor of the next
CURRENT: Final = 1  # commit_ts of the open transaction; after an end, of the one that ended
PHASE: Final = 2
CHECKSUM: Final = 3  # bytes at an event's end: 0 or 4
BEFORE: Final = 4  # PREVIOUS as it was before the open transaction
TXN_ENDED: Final = 5  # transactions that ended since new_state
MIN_BEGUN: Final = 6  # smallest and largest commit_ts begun since new_state; 0 when none
MAX_BEGUN: Final = 7
XA: Final = 8  # 1 while the open transaction is an XA branch
STATE_WORDS: Final = 9

IDLE: Final = 0
OPENED: Final = 1  # a MySQL GTID event was seen: what comes next tells a statement from a transaction
BODY: Final = 2  # between BEGIN and its end
STANDALONE: Final = 3  # MariaDB GTID with FL_STANDALONE

# --- what an event did --------------------------------------------------------------------------
BEGINS: Final = 1
ENDS: Final = 2
FRAME: Final = 4  # belongs into the context of a segment that starts inside this transaction
TABLE_MAP: Final = 8
STATEMENT_END: Final = 16  # rows event with STMT_END_F: TABLE_MAPs before it are dead
STATEMENT: Final = 32  # QUERY with a statement of its own: DDL, mostly
PREWRITE: Final = 64  # XA PREPARE
ABORTED: Final = 128  # a transaction began while another was open: the server crashed in it, or the stream is corrupt
MALFORMED: Final = 256  # too short for what it says it is; nothing was changed
ROWS: Final = 512
XA_ANSWER: Final = 1024  # QUERY XA COMMIT or XA ROLLBACK
SAVEPOINT: Final = 2048

READ_ONLY: Final = types.Array(types.uint8, 1, "C", readonly=True)
STATE: Final = types.int64[::1]
_I: Final = types.int64


def new_state(prev_commit_ts: int, checksum_bytes: int = 0) -> npt.NDArray[np.int64]:
    """A state between two transactions; prev_commit_ts as in the segment's row (0 for a new source)."""
    state = np.zeros(STATE_WORDS, np.int64)
    state[PREVIOUS] = prev_commit_ts
    state[CURRENT] = prev_commit_ts
    state[BEFORE] = prev_commit_ts
    state[CHECKSUM] = checksum_bytes
    return state


@numba.njit(_I(READ_ONLY, _I, _I), cache=True, nogil=True, boundscheck=False)
def _little(data: npt.NDArray[np.uint8], offset: int, width: int) -> int:
    value: Any = 0
    for i in range(width):
        value |= np.int64(data[offset + i]) << (8 * i)
    return value


@numba.njit(_I(READ_ONLY, _I, _I, STATE), cache=True, nogil=True, boundscheck=False)
def _varint(data: npt.NDArray[np.uint8], at: int, end: int, cursor: npt.NDArray[np.int64]) -> int:
    """mysql::serialization's integer: the run of low 1 bits of the first byte counts the bytes that follow.

    cursor[0] becomes the offset behind it, or -1 when the bytes don't suffice.
    """
    if at >= end:
        cursor[0] = -1
        return 0
    first = np.int64(data[at])
    more = 0
    while more < 8 and (first >> more) & 1:
        more += 1
    if at + 1 + more > end:
        cursor[0] = -1
        return 0
    cursor[0] = at + 1 + more
    if more >= 7:  # no value bits in the first byte (7: the top bit is one, and 0 by construction)
        return _little(data, at + 1, more)
    return (first >> (more + 1)) | (_little(data, at + 1, more) << (7 - more))


@numba.njit(_I(READ_ONLY, _I, _I), cache=True, nogil=True, boundscheck=False)
def _tagged_commit_us(data: npt.NDArray[np.uint8], body: int, end: int) -> int:
    """immediate_commit_timestamp (field 6) of a GTID_TAGGED event; 0 when it isn't there.

    Fields: 0 flags, 1 uuid (16 integers), 2 gno, 3 tag (length, bytes), 4 last_committed, 5 sequence_number,
    6 immediate_commit_timestamp. Gtid_event::define_fields lists them in this order, and they are written so.
    """
    cursor = np.zeros(1, np.int64)
    at = body
    for _ in range(3):  # version, size, last field that may not be ignored
        _varint(data, at, end, cursor)
        at = cursor[0]
        if at < 0:
            return 0
    while at < end:
        field = _varint(data, at, end, cursor)
        if cursor[0] < 0 or field > 6:
            return 0
        value: Any = np.int64(0)
        for _ in range(16 if field == 1 else 1):
            value = _varint(data, cursor[0], end, cursor)
            if cursor[0] < 0:
                return 0
        at = cursor[0]
        if field == 3:
            at += value
        if field == 6:
            return value
    return 0


@numba.njit(_I(READ_ONLY, _I, _I, _I, _I), cache=True, nogil=True, boundscheck=False)
def commit_ms(data: npt.NDArray[np.uint8], offset: int, available: int, length: int, checksum: int) -> int:
    """Milliseconds since the epoch at which an event's transaction committed, as far as it can tell.

    A MySQL 8 GTID event has immediate_commit_timestamp; anything else has its header's seconds.
    """
    seconds = _little(data, offset, 4)
    kind = data[offset + 4]
    body = offset + 19
    end = min(offset + available, offset + length - checksum)
    if kind in (33, 34):
        # flags 1, uuid 16, gno 8, typecode 1 (2: logical clock), last_committed 8, sequence_number 8, timestamp 7
        if end - body >= 49 and data[body + 25] == 2:
            return (_little(data, body + 42, 7) & 0x7FFFFFFFFFFFFF) // 1000
    elif kind == 42:
        microseconds = _tagged_commit_us(data, body, end)
        if microseconds > 0:
            return microseconds // 1000
    return seconds * 1000


@numba.njit(types.boolean(READ_ONLY, _I, _I, types.Bytes(types.uint8, 1, "C"), types.boolean), cache=True, nogil=True)
def _says(data: npt.NDArray[np.uint8], at: int, end: int, word: bytes, whole: bool) -> bool:
    """Whether the text at `at` is the word (upper case), any case, or begins with it."""
    if end - at < len(word):
        return False
    for i in range(len(word)):
        byte = data[at + i]
        if 97 <= byte <= 122:
            byte -= 32
        if byte != word[i]:
            return False
    return not whole or end - at == len(word)


# What a QUERY event says.
Q_STATEMENT: Final = 0
Q_BEGIN: Final = 1
Q_COMMIT: Final = 2  # or a whole ROLLBACK
Q_SAVEPOINT: Final = 3
Q_XA_START: Final = 4
Q_XA_END: Final = 5
Q_XA_ANSWER: Final = 6
Q_MALFORMED: Final = -1


@numba.njit(_I(READ_ONLY, _I, _I, _I, _I), cache=True, nogil=True, boundscheck=False)
def classify_query(data: npt.NDArray[np.uint8], offset: int, available: int, length: int, checksum: int) -> int:
    """One of Q_*. Post-header: thread 4, seconds 4, database length 1, error 2, status variables' length 2."""
    body = offset + 19
    end = min(offset + available, offset + length - checksum)
    if end - body < 13:
        return Q_MALFORMED
    at = body + 13 + _little(data, body + 11, 2) + np.int64(data[body + 8]) + 1
    if at > end:
        return Q_MALFORMED
    if end - at > 4096:  # the texts below are short, and a text cut by `available` is a long one
        end = at + 4096
    if _says(data, at, end, b"BEGIN", True):
        return Q_BEGIN
    if _says(data, at, end, b"COMMIT", True) or _says(data, at, end, b"ROLLBACK", True):
        return Q_COMMIT
    if (
        _says(data, at, end, b"SAVEPOINT ", False)
        or _says(data, at, end, b"ROLLBACK TO ", False)
        or _says(data, at, end, b"RELEASE SAVEPOINT ", False)
    ):
        return Q_SAVEPOINT
    if _says(data, at, end, b"XA START ", False) or _says(data, at, end, b"XA BEGIN ", False):
        return Q_XA_START
    if _says(data, at, end, b"XA END ", False):
        return Q_XA_END
    if _says(data, at, end, b"XA COMMIT ", False) or _says(data, at, end, b"XA ROLLBACK ", False):
        return Q_XA_ANSWER
    return Q_STATEMENT


@numba.njit(types.void(STATE, _I, _I), cache=True, nogil=True, boundscheck=False)
def _begin(state: npt.NDArray[np.int64], milliseconds: int, phase: int) -> None:
    state[BEFORE] = state[PREVIOUS]
    begun = next_commit_ts(state[PREVIOUS], milliseconds)
    state[PREVIOUS] = begun
    state[CURRENT] = begun
    state[PHASE] = phase
    state[XA] = 0
    if state[MIN_BEGUN] == 0:
        state[MIN_BEGUN] = begun
    state[MAX_BEGUN] = begun


@numba.njit(_I(STATE), cache=True, nogil=True, boundscheck=False)
def _end(state: npt.NDArray[np.int64]) -> int:
    state[PHASE] = IDLE
    state[TXN_ENDED] += 1
    return ENDS


@numba.njit(_I(_I, STATE), cache=True, nogil=True, boundscheck=False)
def _query(said: int, state: npt.NDArray[np.int64]) -> int:
    """The rule for a QUERY event inside a transaction that has begun."""
    phase = state[PHASE]
    if said in (Q_BEGIN, Q_XA_START):
        state[PHASE] = BODY
        state[XA] = 1 if said == Q_XA_START else state[XA]
        return FRAME
    if said == Q_COMMIT:
        return _end(state)
    if said in (Q_SAVEPOINT, Q_XA_END):
        if phase == OPENED:
            state[PHASE] = BODY
        return SAVEPOINT
    if said == Q_XA_ANSWER:
        return XA_ANSWER | _end(state)
    if phase == BODY:
        return STATEMENT
    return STATEMENT | _end(state)


@numba.njit(_I(READ_ONLY, _I, _I, _I, STATE), cache=True, nogil=True, boundscheck=False)
def _gtid(data: npt.NDArray[np.uint8], offset: int, available: int, length: int, state: npt.NDArray[np.int64]) -> int:
    bits = FRAME | BEGINS | (ABORTED if state[PHASE] != IDLE else 0)
    if data[offset + 4] != 162:
        _begin(state, commit_ms(data, offset, available, length, state[CHECKSUM]), OPENED)
        return bits
    # sequence 8, domain 4, flags2 1. Without FL_STANDALONE the GTID event is also the BEGIN.
    if available < 19 + 13:
        return MALFORMED
    flags = data[offset + 19 + 12]
    _begin(state, _little(data, offset, 4) * 1000, STANDALONE if flags & 1 else BODY)
    state[XA] = 1 if flags & 0x40 else 0
    return bits


@numba.njit(_I(_I, _I, types.boolean, STATE), cache=True, nogil=True, boundscheck=False)
def _body(kind: int, said: int, statement_end: bool, state: npt.NDArray[np.int64]) -> int:
    """The rule for an event inside a transaction that has begun."""
    if kind in (2, 165):
        return _query(said, state)
    if kind in (16, 40):
        return _end(state)
    if kind == 38:
        return PREWRITE | _end(state)
    if state[PHASE] == OPENED:
        state[PHASE] = BODY
    if kind == 19:
        return TABLE_MAP
    if kind in (17, 18):
        return 0
    if not statement_end:
        return ROWS
    if state[PHASE] == STANDALONE:
        return ROWS | STATEMENT_END | _end(state)
    return ROWS | STATEMENT_END


@numba.njit(types.boolean(_I), cache=True, nogil=True)
def is_rows(kind: int) -> bool:
    """Whether an event type holds rows, in any of their formats."""
    return 20 <= kind <= 25 or 30 <= kind <= 32 or kind == 39 or 166 <= kind <= 171


@numba.njit(_I(READ_ONLY, _I, _I, _I, STATE), cache=True, nogil=True, boundscheck=False)
def scan_event(
    data: npt.NDArray[np.uint8], offset: int, available: int, length: int, state: npt.NDArray[np.int64]
) -> int:
    """Take one event into the state and return its bits.

    data: uint8; offset: of the event's header; length: the event's size (header and checksum included);
    available: how many of its bytes are in data (an event of several packets may come with its first part
    only; 256 bytes past the status variables suffice, and the whole QUERY when it is shorter). Never reads
    outside data[offset : offset + available].
    """
    if available < 19 or length < available:
        return MALFORMED
    kind = np.int64(data[offset + 4])
    if kind == 15:
        # version 2, server version 50, created 4, header length 1, lengths per type, algorithm 1, checksum 4
        if length < 19 + 57 + 5 or available < length:
            return MALFORMED
        state[CHECKSUM] = 4 if data[offset + length - 5] == 1 else 0
        return 0
    if kind in (33, 34, 42, 162):
        return _gtid(data, offset, available, length, state)
    rows = is_rows(kind)
    if not (rows or kind in (2, 16, 17, 18, 19, 38, 40, 165)):
        return 0
    said = Q_STATEMENT
    if kind == 2:
        said = classify_query(data, offset, available, length, state[CHECKSUM])
        if said == Q_MALFORMED:
            return MALFORMED
    bits = 0
    if state[PHASE] == IDLE:
        if kind == 16 or said == Q_COMMIT:
            return 0  # an end without a transaction ends nothing
        if said == Q_SAVEPOINT:
            return SAVEPOINT
        _begin(state, _little(data, offset, 4) * 1000, BODY if rows or kind == 19 else OPENED)
        bits = BEGINS
    # rows: table id 6, flags 2
    statement_end = rows and available >= 27 and (data[offset + 25] & 1) == 1
    return bits | _body(kind, said, statement_end, state)
