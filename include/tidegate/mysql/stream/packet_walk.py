"""Walk received packets event by event, compiled: check, measure, and lay the events out as in a
binlog file.

In:  bytes from the socket: packets of a 4-byte header, one status byte and one event each (MySQL
     source docs, "COM_BINLOG_DUMP", "Protocol::Packet"). On a semi-synchronous stream two bytes
     come before each event: 0xEF, and whether the server waits for our reply (mysql-server
     plugin/semisync/semisync.h).
Out: events back to back in `payload`, exactly a slice of the server's binlog file; the walk's
     state; and a WalkStop, the reason why it stopped.

It must hold: every event's length fits its packet, its CRC32 is right, and it starts where the one
before it ended (64-bit positions are added up here, and compared with the 32 bits in the header).
An event that needs a decision (ROTATE, DDL, heartbeats, artificial or unknown events) goes to
Python unconsumed, one at a time: it is rare. Nothing in Python runs once per event.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numba
import numpy as np
from numba import types

from tidegate.binlog import transaction_scan as scan
from tidegate.binlog.crc32 import crc32_at
from tidegate.binlog.transaction_scan import classify_at, scan_at
from tidegate.columnar.kernel.memory import (
    FAST,
    I,
    address,
    copy_bytes,
    equal_bytes,
    load8,
    load32,
    load64,
    set_word,
    word,
)
from tidegate.compiled import compiled
from tidegate.limits.formats import PACKET_BYTES_MAX, SEGMENT_TABLES_MAX


class WalkStop(IntEnum):
    """Why the walk stopped."""

    MORE = 0  # the next packet isn't complete
    CUT = 1  # a transaction ended past the soft bound, or `stop_at` is reached
    FULL = 2  # the next event would pass the hard bound
    NOTABLE = 3  # the event needs Python; not consumed
    SERVER = 4  # the packet at `read` is EOF or ERR
    BIG = 5  # the packet at `read` is larger than what one receive buffer holds
    BAD_CHECKSUM = 6
    BAD_POSITION = 7
    BAD_LENGTH = 8  # or no mark of semi-synchronous replication where one must be
    FLUSH = 9  # the arrays of runs, frames or live TABLE_MAPs are full


RUNS_MAX: Final = 4096
LIVE_MAX: Final = 4096
_SLOTS: Final = 4 * SEGMENT_TABLES_MAX
HEADER_BYTES: Final = 19
CHECKSUM_BYTES: Final = 4
# A payload array is this much longer than the hard bound, so that a name is never read outside of it.
PAYLOAD_SLACK_BYTES: Final = 1024

# Everything that the walk knows between two calls, beside the transaction's state. All int64.
_FIELDS: Final = (
    "lead",  # bytes of a packet before its event, LEAD or LEAD_SEMI_SYNC; 0: the first packet tells
    "asked",  # 1: the server waits for our reply to the event at hand
    "asked_at",  # the newest of those events taken ends at this position; 0: nothing to reply to
    "read",  # offset in received of the next packet
    "have",  # end of the bytes in received
    "length",  # bytes in payload
    "position",  # 64-bit offset in the binlog file after the last event in payload
    "stop_at",  # stop exactly at this position; 0: never
    "soft",  # cut at the first transaction end at or past this many bytes
    "hard",  # payload never grows past this
    "take",  # 1: consume the next event though it is notable (set by Python, reset here)
    "event_at",  # the event that stopped the walk: offset in received
    "event_length",
    "event_count",
    "statement_ended",  # 1: TABLE_MAPs of earlier segments are dead
    "opened_here",  # 1: the open transaction began in payload
    "open_position",  # file offset of the newest transaction's first event
    "frames",  # FRAME events of the open transaction in payload
    "maps",  # live TABLE_MAPs in payload
    "tables",  # different table names in payload
    "payloads",  # TRANSACTION_PAYLOAD events in payload
    "runs",  # GTID runs of transactions that ended in payload
    "gtid_kind",  # of the open transaction: 0 none, 1 MySQL, 2 MariaDB, 3 MySQL with a tag
    "gtid_high",  # uuid halves (MySQL), domain and server_id (MariaDB), index (tagged)
    "gtid_low",
    "gtid_number",
    "tagged_index",  # of the GTID_TAGGED event about to be taken, parsed by Python
    "tagged_number",
)
LEAD, LEAD_SEMI_SYNC = 5, 7
SEMI_SYNC_MARK: Final = 0xEF
WALK_DTYPE: Final = np.dtype([(name, np.int64) for name in _FIELDS])
RUN_DTYPE: Final = np.dtype([(name, np.int64) for name in ("kind", "high", "low", "first", "last")])
_RUN_BYTES: Final = RUN_DTYPE.itemsize
MYSQL_GTID, MARIADB_GTID, TAGGED_GTID = 1, 2, 3

_QUERY: Final = 2
_PAYLOAD: Final = 40
# Events that need no decision: STOP, INTVAR, RAND, USER_VAR, XID, TABLE_MAP, rows, ROWS_QUERY, GTID, ANONYMOUS_GTID,
# TRANSACTION_PAYLOAD, which is looked into when the segment is cut, and MariaDB's annotations, checkpoints, GTID and
# compressed rows, which follow a plain TABLE_MAP. Everything else, the unknown above all, goes to Python.
_PLAIN: Final = np.zeros(256, np.bool_)
_PLAIN[[3, 5, 13, 14, 16, 19, 23, 24, 25, 29, 30, 31, 32, 33, 34, 39, 40, 160, 161, 162]] = True
_PLAIN[166:172] = True

_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_WORDS = types.Array(types.int64, 1, "C")
_SPACE = types.Tuple(
    (
        types.Array(numba.from_dtype(WALK_DTYPE), 1, "C"),
        _WORDS,
        types.Array(types.uint8, 1, "C"),
        _WORDS,
        _WORDS,
        _WORDS,
        _WORDS,
        types.Array(numba.from_dtype(RUN_DTYPE), 1, "C"),
    )
)
_inlined = numba.njit(inline="always", **FAST)


class Workspace:
    """The arrays that the walk works on; `payload` is exchanged when a segment is cut."""

    def __init__(self, prev_commit_ts: int) -> None:
        self.walk = np.zeros(1, WALK_DTYPE)
        self.walk["lead"] = LEAD
        self.transaction = scan.new_state(prev_commit_ts)
        self.payload: np.ndarray[Any, np.dtype[np.uint8]] = np.zeros(0, np.uint8)
        self.slots = np.full(_SLOTS, -1, np.int64)
        self.tables = np.zeros(SEGMENT_TABLES_MAX, np.int64)
        self.maps = np.zeros(LIVE_MAX, np.int64)
        self.frames = np.zeros(LIVE_MAX, np.int64)
        self.runs = np.zeros(RUNS_MAX, RUN_DTYPE)

    @property
    def arrays(self) -> tuple[Any, ...]:
        return (self.walk, self.transaction, self.payload, self.slots, self.tables, self.maps, self.frames, self.runs)

    def begin_segment(self, payload: np.ndarray[Any, np.dtype[np.uint8]], hard: int) -> None:
        """Empty payload and what is counted per segment; the open transaction goes on."""
        state = self.walk[0]
        if state["tables"]:
            self.slots.fill(-1)
        for name in (
            "length",
            "event_count",
            "statement_ended",
            "opened_here",
            "frames",
            "maps",
            "tables",
            "payloads",
            "runs",
        ):
            state[name] = 0
        self.payload = payload
        state["hard"] = hard
        self.transaction[[scan.TXN_ENDED, scan.MIN_BEGUN, scan.MAX_BEGUN, scan.LOWERED]] = 0


# Arrays are arguments at the door alone; inside all goes by addresses. numba counts references for each array that a
# function is given, and with eight of them these atomic operations were a fifth of the time of small events.


@_inlined
def _name_transaction(s: Any, event: Any) -> None:
    """A transaction begins at the event of this address: where, and under which GTID."""
    s.open_position = s.position - s.event_length
    s.opened_here, s.statement_ended = 1, 1
    s.frames, s.maps, s.gtid_kind = 0, 0, 0
    kind = load8(event + 4)
    body = event + HEADER_BYTES
    if kind == 162:  # sequence 8, domain 4
        s.gtid_kind, s.gtid_high, s.gtid_low = MARIADB_GTID, load32(body + 8), load32(event + 5)
        s.gtid_number = load64(body)
    elif kind == 33:  # flags 1, uuid 16, number 8
        s.gtid_kind, s.gtid_high, s.gtid_low = MYSQL_GTID, load64(body + 1), load64(body + 9)
        s.gtid_number = load64(body + 17)
    elif kind == 42:
        s.gtid_kind, s.gtid_high, s.gtid_low, s.gtid_number = TAGGED_GTID, s.tagged_index, 0, s.tagged_number


@_inlined
def _executed(s: Any, runs: Any) -> None:
    """The open transaction ended: its GTID joins the last run, or begins one."""
    s.opened_here, s.frames, s.maps = 0, 0, 0
    kind, high, low, number = s.gtid_kind, s.gtid_high, s.gtid_low, s.gtid_number
    joins = False
    if s.runs > 0:
        last = runs + _RUN_BYTES * (s.runs - 1)
        same = word(last, 0) == kind and word(last, 1) == high and word(last, 2) == low
        end = word(last, 4)
        joins = same and (end + 1 == number or (kind == MARIADB_GTID and end < number))
        if joins:
            set_word(last, 4, number)
    if kind != 0 and not joins:
        run = runs + _RUN_BYTES * s.runs
        set_word(run, 0, kind)
        set_word(run, 1, high)
        set_word(run, 2, low)
        set_word(run, 3, number)
        set_word(run, 4, number)
        s.runs += 1


@compiled(I(I, I, I, I, I), **FAST)
def _note_table(payload: int, slots: int, tables: int, count: int, at: int) -> Any:
    """Remember the database and table of a TABLE_MAP at offset `at` of payload, once per segment; how many there are.

    Its body: table id 6, flags 2, database length 1, database, NUL, table length 1, table.
    """
    name = at + HEADER_BYTES + 8
    table = name + 2 + load8(payload + name)
    size = table + 1 + load8(payload + table) - name
    # Most maps are of the table that was new last.
    if count > 0 and equal_bytes(payload + word(tables, count - 1), payload + name, size):
        return count
    mixed = np.uint64(0xCBF29CE484222325)  # FNV-1a
    for i in range(size):
        mixed = (mixed ^ np.uint64(load8(payload + name + i))) * np.uint64(0x100000001B3)
    slot = np.int64(mixed & np.uint64(_SLOTS - 1))
    while word(slots, slot) >= 0:
        if equal_bytes(payload + word(slots, slot), payload + name, size):
            return count
        slot = (slot + 1) & (_SLOTS - 1)
    set_word(slots, slot, name)
    set_word(tables, count, name)
    return count + 1


@_inlined
def _verified(s: Any, event: Any, checksum: Any, is_open: Any) -> Any:
    """WalkStop.MORE if checksum and position are right."""
    covered = s.event_length - CHECKSUM_BYTES
    said = load32(event + 13)
    stop = np.int64(WalkStop.MORE)
    if checksum == CHECKSUM_BYTES and np.int64(crc32_at(event, covered)) != load32(event + covered):
        stop = np.int64(WalkStop.BAD_CHECKSUM)
    # MariaDB 11 doesn't know it while it fills the transaction; the XID event tells
    elif (said != 0 or not is_open) and (s.position + s.event_length) & 0xFFFFFFFF != said:
        stop = np.int64(WalkStop.BAD_POSITION)
    return stop


@compiled(types.boolean(I, I, I, types.boolean), **FAST)
def _notable(event: int, length: int, checksum: int, is_open: bool) -> bool:
    """Whether Python decides: an odd type, an artificial event, or a statement."""
    kind = load8(event + 4)
    if (load8(event + 17) & 0x20) != 0 or (load32(event + 13) == 0 and not is_open):
        return True
    if kind != _QUERY:
        return not _PLAIN[kind]
    said = classify_at(event, event + length - checksum)
    return said not in (scan.Q_BEGIN, scan.Q_COMMIT)


@_inlined
def _take(event: Any, s: Any, t: Any, at: Any) -> Any:
    """Judge the whole event of s.event_length bytes at an address, and lay it into payload. Returns
    a WalkStop.
    """
    payload, slots, tables, maps, frames, runs = at
    length = s.event_length
    checksum = word(t, scan.CHECKSUM)
    is_open = word(t, scan.PHASE) != scan.IDLE
    if s.take == 0 and _notable(event, length, checksum, is_open):
        return np.int64(WalkStop.NOTABLE)
    if s.length + length > s.hard or s.tables == SEGMENT_TABLES_MAX:
        return np.int64(WalkStop.FULL)
    if s.runs == RUNS_MAX or max(s.maps, s.frames) == LIVE_MAX:
        return np.int64(WalkStop.FLUSH)
    # A FORMAT_DESCRIPTION brings its own algorithm; Python verified it.
    wrong = _verified(s, event, checksum if load8(event + 4) != 15 else 0, is_open)
    if wrong != WalkStop.MORE:
        return wrong
    start = s.length
    bits = scan_at(event, length, length, t)
    if bits & scan.MALFORMED:
        return np.int64(WalkStop.BAD_LENGTH)
    s.take = 0
    copy_bytes(payload + start, event, length)
    s.length, s.position = start + length, s.position + length
    s.event_count += 1
    if s.asked:
        s.asked_at = s.position
    if load8(event + 4) == _PAYLOAD:
        s.payloads += 1
    if bits & scan.BEGINS:
        _name_transaction(s, event)
    if bits & scan.FRAME:
        set_word(frames, s.frames, start)
        s.frames += 1
    if bits & scan.TABLE_MAP:
        s.tables = _note_table(payload, slots, tables, s.tables, start)
        set_word(maps, s.maps, start)
        s.maps += 1
    elif bits & scan.STATEMENT_END:
        s.maps, s.statement_ended = 0, 1
    if bits & scan.ENDS:
        _executed(s, runs)
    if (word(t, scan.PHASE) == scan.IDLE and s.length >= s.soft) or s.position == s.stop_at:
        return np.int64(WalkStop.CUT)
    return np.int64(WalkStop.MORE)


@_inlined
def _addresses(payload: Any, slots: Any, tables: Any, maps: Any, frames: Any, runs: Any) -> Any:
    return (address(payload), address(slots), address(tables), address(maps), address(frames), address(runs))


@compiled(types.int64(_BYTES, types.int64, _SPACE), cache=True, nogil=True, boundscheck=False)
def take_event(data: Any, at: int, space: Any) -> Any:
    """Judge the whole event of walk.event_length bytes at data[at:], and lay it into payload.
    Returns a WalkStop.

    MORE: it is taken. Any other but MORE and CUT: nothing was changed.
    """
    walk_state, transaction, payload, slots, tables, maps, frames, runs = space
    places = _addresses(payload, slots, tables, maps, frames, runs)
    return _take(address(data) + at, walk_state[0], address(transaction), places)


@compiled(types.int64(_BYTES, _SPACE), cache=True, nogil=True, boundscheck=False)
def walk(received: Any, space: Any) -> Any:
    """Take events from received into payload until something stops it. Returns a WalkStop.

    An unconsumed packet stays at walk.read; at CUT this is after the last event taken.
    """
    walk_state, transaction, payload, slots, tables, maps, frames, runs = space
    places = _addresses(payload, slots, tables, maps, frames, runs)
    state, s = address(transaction), walk_state[0]
    base, room = address(received), received.size
    while True:
        have = s.have - s.read
        if have < 4:
            return np.int64(WalkStop.MORE)
        packet = base + s.read
        size = load32(packet) & 0xFFFFFF
        if size == 0:
            return np.int64(WalkStop.BAD_LENGTH)
        if have < 5:
            return np.int64(WalkStop.MORE)
        if load8(packet + 4) != 0:
            return np.int64(WalkStop.SERVER if have >= 4 + size else WalkStop.MORE)
        if have < LEAD_SEMI_SYNC:
            return np.int64(WalkStop.MORE)
        if s.lead == 0:  # a stream begins with an artificial ROTATE, whose first byte, of its time, is 0
            s.lead = LEAD_SEMI_SYNC if load8(packet + 5) == SEMI_SYNC_MARK else LEAD
        lead = s.lead
        if lead == LEAD_SEMI_SYNC:
            if load8(packet + 5) != SEMI_SYNC_MARK:
                s.event_at, s.event_length = s.read, min(size, have)
                return np.int64(WalkStop.BAD_LENGTH)
            s.asked = load8(packet + 6) & 1
        if size == PACKET_BYTES_MAX or 4 + size > room:
            return np.int64(WalkStop.BIG)
        if have < 4 + size:
            return np.int64(WalkStop.MORE)
        event, length = packet + lead, size - (lead - 4)
        s.event_at, s.event_length = s.read + lead, length
        if length < HEADER_BYTES or load32(event + 9) != length:
            return np.int64(WalkStop.BAD_LENGTH)
        stop = _take(event, s, state, places)
        if stop in (WalkStop.MORE, WalkStop.CUT):
            s.read += 4 + size
        if stop != WalkStop.MORE:
            return stop
