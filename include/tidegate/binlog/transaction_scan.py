"""Which transaction an event belongs to, and its commit_ts: one compiled rule for capture and for
decode.

In:  events in binlog order, one call each, and an int64 state array that lives as long as the
     stream.
Out: bits for the event's effects (BEGINS, ENDS, ...); state[CURRENT] is its transaction's
     commit_ts.

Capture calls it while it walks packets. It stores the value before a segment's first transaction
(prev_commit_ts). Decode starts from that value, replays `context`, then `payload`, and gets the
same numbers. For that it must hold:

- Start: `state = new_state(prev_commit_ts, checksum)`. One state per stream; a FORMAT_DESCRIPTION
  event updates its checksum length by itself.
- If a segment is cut inside a transaction (state[PHASE] != IDLE), prev_commit_ts is state[BEFORE],
  else state[PREVIOUS]. Its context is the FORMAT_DESCRIPTION event; then the open transaction's
  events whose bits have FRAME (GTID, BEGIN, XA START); then the TABLE_MAPs since the last
  STATEMENT_END, all in their order. (Older TABLE_MAPs are dead: every statement maps its tables
  anew.)
- Capture walked it under the bound state[CEILING]. The segment's row has the bound if it changed a
  commit_ts. No wrong time of a session or a clock ever dates a transaction after the source's
  clock.
- To lift the floor (a heartbeat's clock), raise state[PREVIOUS] between two segments only.
- Decode scans what compressed events expand to (expand.py); capture scans the events as they are.
  Both get the same. A TRANSACTION_PAYLOAD holds all of its transaction after the GTID: expanding
  checks this. Before a QUERY_COMPRESSED, capture sets state[SAID] = 1 + the meaning of its expanded
  text. This counts for that event only.

A transaction begins at a GTID event; without one, at the first QUERY, TABLE_MAP or rows event after
the last end. It ends at XID, XA PREPARE, a QUERY COMMIT or ROLLBACK, a QUERY outside BEGIN, a
compressed TRANSACTION_PAYLOAD, and with MariaDB's FL_STANDALONE after its one statement.

Layouts: QUERY, XID: MySQL source docs "Replication Protocol"; GTID: mysql-server
libs/mysql/binlog/event/control_events.h (Gtid_event), tagged: libs/mysql/serialization; MariaDB:
sql/log_event.h (Gtid_log_event, is_part_of_group).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import types

from tidegate.columnar.kernel.memory import FAST, I, address, little_endian, load8, load16, load32, set_word, word
from tidegate.compiled import compiled
from tidegate.limits.formats import LOGICAL_BITS

# --- state --------------------------------------------------------------------------------------
PREVIOUS: Final = 0  # commit_ts of the last transaction that began; the floor of the next
CURRENT: Final = 1  # commit_ts of the open transaction; after an end, of the one that ended
PHASE: Final = 2
CHECKSUM: Final = 3  # bytes at an event's end: 0 or 4
BEFORE: Final = 4  # PREVIOUS before the open transaction
TXN_ENDED: Final = 5  # transactions that ended since new_state
MIN_BEGUN: Final = 6  # smallest and largest commit_ts begun since new_state; 0 when none
MAX_BEGUN: Final = 7
XA: Final = 8  # 1 while the open transaction is an XA branch
SAID: Final = 9  # the meaning of the next QUERY_COMPRESSED: Q_* + 1; 0 if nobody has looked
CEILING: Final = 10  # the latest moment, in milliseconds, at which a transaction is dated; 0: no bound
LOWERED: Final = 11  # how many transactions CEILING dated earlier than they say, since new_state
STATE_WORDS: Final = 12

IDLE: Final = 0
OPENED: Final = 1  # after a MySQL GTID event: the next event shows whether it is a statement or a transaction
BODY: Final = 2  # between BEGIN and its end
STANDALONE: Final = 3  # MariaDB GTID with FL_STANDALONE

# --- what an event did --------------------------------------------------------------------------
BEGINS: Final = 1
ENDS: Final = 2
FRAME: Final = 4  # belongs to the context of a segment that starts inside this transaction
TABLE_MAP: Final = 8
STATEMENT_END: Final = 16  # rows event with STMT_END_F: TABLE_MAPs before it are dead
STATEMENT: Final = 32  # QUERY with a statement of its own: DDL, mostly; EXECUTE_LOAD_QUERY
PREWRITE: Final = 64  # XA PREPARE
ABORTED: Final = 128  # a transaction began inside another one: the server crashed in that, or the stream is corrupt
MALFORMED: Final = 256  # too short for its type; nothing was changed
ROWS: Final = 512
XA_ANSWER: Final = 1024  # QUERY XA COMMIT or XA ROLLBACK
SAVEPOINT: Final = 2048

READ_ONLY: Final = types.Array(types.uint8, 1, "C", readonly=True)
STATE: Final = types.int64[::1]


def new_state(prev_commit_ts: int, checksum_bytes: int = 0, ceiling_ms: int = 0) -> npt.NDArray[np.int64]:
    """A state between two transactions. prev_commit_ts (0 for a new source), ceiling_ms: as in the
    segment's row.
    """
    state = np.zeros(STATE_WORDS, np.int64)
    state[PREVIOUS] = prev_commit_ts
    state[CURRENT] = prev_commit_ts
    state[BEFORE] = prev_commit_ts
    state[CHECKSUM] = checksum_bytes
    state[CEILING] = ceiling_ms
    return state


@compiled(I(I, I, I), **FAST)
def _varint(at: int, end: int, cursor: int) -> int:
    """mysql::serialization's integer: as many low bits of the first byte are 1 as bytes follow it.

    The word at cursor becomes the address after it, or -1 if there are too few bytes.
    """
    set_word(cursor, 0, -1)
    if at >= end:
        return 0
    first = load8(at)
    more = 0
    while more < 8 and (first >> more) & 1:
        more += 1
    if at + 1 + more > end:
        return 0
    set_word(cursor, 0, at + 1 + more)
    if more >= 7:  # the first byte holds no bit of the value
        return little_endian(at + 1, more)
    return (first >> (more + 1)) | (little_endian(at + 1, more) << (7 - more))


@compiled(I(I, I), **FAST)
def _tagged_commit_us(body: int, end: int) -> int:
    """immediate_commit_timestamp (field 6) of a GTID_TAGGED event; 0 if it is missing.

    Fields: 0 flags, 1 uuid (16 integers), 2 gno, 3 tag (length, bytes), 4 last_committed, 5 sequence_number,
    6 immediate_commit_timestamp. Gtid_event::define_fields lists them in this order, and they are written so.
    """
    cursor = np.zeros(1, np.int64)
    here = address(cursor)
    at = body
    for _ in range(3):  # version, size, last field that may not be ignored
        _varint(at, end, here)
        at = cursor[0]
        if at < 0:
            return 0
    while at < end:
        field = _varint(at, end, here)
        if cursor[0] < 0 or field > 6:
            return 0
        value: Any = np.int64(0)
        for _ in range(16 if field == 1 else 1):
            value = _varint(cursor[0], end, here)
            if cursor[0] < 0:
                return 0
        at = cursor[0]
        if field == 3:
            if value < 0 or value > end - at:
                return 0
            at += value
        if field == 6:
            return value
    return 0


@compiled(I(I, I), **FAST)
def commit_ms(event: int, end: int) -> int:
    """When the transaction of the event at this address committed, in milliseconds since the epoch,
    as exactly as the event says it. A GTID event of MySQL 8 has immediate_commit_timestamp;
    other events have the seconds in the header.
    """
    kind = load8(event + 4)
    body = event + 19
    if kind in (33, 34):
        # flags 1, uuid 16, gno 8, typecode 1 (2: logical clock), last_committed 8, sequence_number 8, timestamp 7
        if end - body >= 49 and load8(body + 25) == 2:
            return (little_endian(body + 42, 7) & 0x7FFFFFFFFFFFFF) // 1000
    elif kind == 42:
        microseconds = _tagged_commit_us(body, end)
        if microseconds > 0:
            return microseconds // 1000
    return load32(event) * 1000


@compiled(types.boolean(I, I, types.Bytes(types.uint8, 1, "C"), types.boolean), **FAST)
def _says(at: int, end: int, word_: bytes, whole: bool) -> bool:
    """Whether the text at `at` is the word (given in upper case), in any case; or begins with it,
    if not whole.
    """
    if end - at < len(word_):
        return False
    for i in range(len(word_)):
        byte = load8(at + i)
        if 97 <= byte <= 122:
            byte -= 32
        if byte != word_[i]:
            return False
    return not whole or end - at == len(word_)


# What a QUERY event says.
Q_STATEMENT: Final = 0
Q_BEGIN: Final = 1
Q_COMMIT: Final = 2
Q_SAVEPOINT: Final = 3
Q_XA_START: Final = 4
Q_XA_END: Final = 5
Q_XA_ANSWER: Final = 6
Q_ROLLBACK: Final = 7  # a whole one
Q_ROLLBACK_TO: Final = 8
Q_MALFORMED: Final = -1


@compiled(I(I, I), **FAST)
def classify_at(event: int, end: int) -> int:
    """classify_query by addresses: of the event's header, and after its statement.

    Post-header: thread 4, seconds 4, database length 1, error 2, status variables' length 2.
    """
    body = event + 19
    if end - body < 13:
        return Q_MALFORMED
    at = body + 13 + load16(body + 11) + load8(body + 8) + 1
    if at > end:
        return Q_MALFORMED
    if _says(at, end, b"BEGIN", True):
        return Q_BEGIN
    if _says(at, end, b"COMMIT", True):
        return Q_COMMIT
    if _says(at, end, b"ROLLBACK", True):
        return Q_ROLLBACK
    if _says(at, end, b"SAVEPOINT ", False) or _says(at, end, b"RELEASE SAVEPOINT ", False):
        return Q_SAVEPOINT
    if _says(at, end, b"ROLLBACK TO ", False):
        return Q_ROLLBACK_TO
    if _says(at, end, b"XA START ", False) or _says(at, end, b"XA BEGIN ", False):
        return Q_XA_START
    if _says(at, end, b"XA END ", False):
        return Q_XA_END
    if _says(at, end, b"XA COMMIT ", False) or _says(at, end, b"XA ROLLBACK ", False):
        return Q_XA_ANSWER
    return Q_STATEMENT


@compiled(I(I, I), **FAST)
def next_commit_ts(previous: int, physical_ms: int) -> int:
    """max(previous + 1, physical_ms << 18), so it increases even if the clock stands still, only
    has seconds, or jumps back.
    """
    composed = physical_ms << LOGICAL_BITS
    return composed if composed > previous else previous + 1


@compiled(I(I, I, I), **FAST)
def _begin(state: int, milliseconds: int, phase: int) -> int:
    set_word(state, BEFORE, word(state, PREVIOUS))
    ceiling = word(state, CEILING)
    if 0 < ceiling < milliseconds:
        milliseconds = ceiling
        set_word(state, LOWERED, word(state, LOWERED) + 1)
    begun = next_commit_ts(word(state, PREVIOUS), milliseconds)
    set_word(state, PREVIOUS, begun)
    set_word(state, CURRENT, begun)
    set_word(state, PHASE, phase)
    set_word(state, XA, 0)
    if word(state, MIN_BEGUN) == 0:
        set_word(state, MIN_BEGUN, begun)
    return set_word(state, MAX_BEGUN, begun)


@compiled(I(I), **FAST)
def _end(state: int) -> int:
    set_word(state, PHASE, IDLE)
    set_word(state, TXN_ENDED, word(state, TXN_ENDED) + 1)
    return ENDS


@compiled(I(I, I), **FAST)
def _query(said: int, state: int) -> int:
    """The rule for a QUERY event inside a transaction that has begun."""
    phase = word(state, PHASE)
    if said in (Q_BEGIN, Q_XA_START):
        set_word(state, PHASE, BODY)
        if said == Q_XA_START:
            set_word(state, XA, 1)
        return FRAME
    if said in (Q_COMMIT, Q_ROLLBACK):
        return _end(state)
    if said in (Q_SAVEPOINT, Q_ROLLBACK_TO, Q_XA_END):
        if phase == OPENED:
            set_word(state, PHASE, BODY)
        return SAVEPOINT
    if said == Q_XA_ANSWER:
        return XA_ANSWER | _end(state)
    if phase == BODY:
        return STATEMENT
    return STATEMENT | _end(state)


@compiled(I(I, I, I), **FAST)
def _gtid(event: int, end: int, state: int) -> int:
    bits = FRAME | BEGINS | (ABORTED if word(state, PHASE) != IDLE else 0)
    if load8(event + 4) != 162:
        _begin(state, commit_ms(event, end), OPENED)
        return bits
    # sequence 8, domain 4, flags2 1. Without FL_STANDALONE the GTID event is also the BEGIN.
    if end - event < 19 + 13:
        return MALFORMED
    flags = load8(event + 19 + 12)
    _begin(state, load32(event) * 1000, STANDALONE if flags & 1 else BODY)
    set_word(state, XA, 1 if flags & 0x40 else 0)
    return bits


@compiled(I(I, I, types.boolean, I), **FAST)
def _body(kind: int, said: int, statement_end: bool, state: int) -> int:
    """The rule for an event inside a transaction that has begun."""
    if kind in (2, 165):
        return _query(said, state)
    if kind in (16, 40):
        return _end(state)
    if kind == 38:
        return PREWRITE | _end(state)
    if word(state, PHASE) == OPENED:
        set_word(state, PHASE, BODY)
    if kind == 19:
        return TABLE_MAP
    if kind == 17:
        return 0
    if kind == 18:  # LOAD DATA in statement format
        return STATEMENT | (_end(state) if word(state, PHASE) == STANDALONE else 0)
    if not statement_end:
        return ROWS
    if word(state, PHASE) == STANDALONE:
        return ROWS | STATEMENT_END | _end(state)
    return ROWS | STATEMENT_END


@compiled(types.boolean(I), **FAST)
def is_rows(kind: int) -> bool:
    """Whether events of a type hold rows, in any format."""
    return 20 <= kind <= 25 or 30 <= kind <= 32 or kind == 39 or 166 <= kind <= 171


@compiled(I(I, I, I, I), **FAST)
def scan_at(event: int, available: int, length: int, state: int) -> int:
    """Take one event into the state, and return its bits. event, state: the addresses of its header
    and of the words.

    length: the event's size (header and checksum included). available: how many of its bytes are
    there. An event of several packets may come with its first part only: 256 bytes past the status
    variables suffice, and the whole QUERY if it is shorter. It never reads outside of the available
    bytes.
    """
    if available < 19 or length < available:
        return MALFORMED
    kind = load8(event + 4)
    if kind == 15:
        # version 2, server version 50, created 4, header length 1, lengths per type, algorithm 1, checksum 4
        if length < 19 + 57 + 5 or available < length:
            return MALFORMED
        set_word(state, CHECKSUM, 4 if load8(event + length - 5) == 1 else 0)
        return 0
    end = event + min(available, length - word(state, CHECKSUM))
    if kind in (33, 34, 42, 162):
        return _gtid(event, end, state)
    rows = is_rows(kind)
    if not (rows or kind in (2, 16, 17, 18, 19, 38, 40, 165)):
        return 0
    said = Q_STATEMENT
    if kind == 2:
        said = classify_at(event, end)
        if said == Q_MALFORMED:
            return MALFORMED
    elif kind == 165 and word(state, SAID) != 0:
        said = word(state, SAID) - 1
        set_word(state, SAID, 0)
    bits = 0
    if word(state, PHASE) == IDLE:
        if kind == 16 or said in (Q_COMMIT, Q_ROLLBACK):
            return 0  # an end outside of a transaction ends nothing
        if said in (Q_SAVEPOINT, Q_ROLLBACK_TO):
            return SAVEPOINT
        _begin(state, load32(event) * 1000, BODY if rows or kind == 19 else OPENED)
        bits = BEGINS
    # rows: table id 6, flags 2
    statement_end = rows and available >= 27 and (load8(event + 25) & 1) == 1
    return bits | _body(kind, said, statement_end, state)


@compiled(I(READ_ONLY, I, I, I, I), **FAST)
def classify_query(data: Any, offset: int, available: int, length: int, checksum: int) -> int:
    """One of Q_* for the QUERY event at data[offset:], of which `available` bytes of `length` are there.

    checksum: its bytes at the event's end.
    """
    event = address(data) + offset
    return classify_at(event, event + min(available, length - checksum))
