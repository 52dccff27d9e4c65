"""One walk over raw events of a file: sizes, checksums, transactions.

In:  bytes of a binlog file from an event's start on, the state of transaction_scan.
Out: one row per whole event in `found`; why the walk stopped. Nothing is read outside data[:total].

The walk stops before a FORMAT_DESCRIPTION and before a START_ENCRYPTION. The caller reads it, then
lets it pass.
"""

from __future__ import annotations

from typing import Any, Final

from numba import types

from tidegate.binlog.crc32 import crc32_at
from tidegate.binlog.transaction_scan import ABORTED, CHECKSUM, CURRENT, MALFORMED, READ_ONLY, STATE, scan_at
from tidegate.columnar.kernel.memory import FAST, I, address, load8, load32, word
from tidegate.compiled import compiled

# --- found: int64[n, FOUND_WORDS] ---------------------------------------------------------------------
OFFSET: Final = 0
SIZE: Final = 1
TYPE: Final = 2
BITS: Final = 3  # transaction_scan's
COMMIT_TS: Final = 4
FOUND_WORDS: Final = 5

# --- why the walk stopped; place: int64[2], the offset reached and how many rows of found are filled ---
END: Final = 0  # the rest isn't a whole event
FULL: Final = 1  # no room in found
LOOK: Final = 2  # an event that the caller must read first
BAD_LENGTH: Final = 3
BAD_CHECKSUM: Final = 4
BAD_EVENT: Final = 5  # too short for what its type says
BAD_BEGIN: Final = 6  # a transaction begins inside another

_HEADER: Final = 19


@compiled(I(READ_ONLY, I, I, STATE, types.int64[:, ::1], STATE), **FAST)
def walk_file(data: Any, total: int, seen: int, scan: Any, events: Any, place: Any) -> int:
    """Walk data[place[0]:total]. seen: offset of the event the caller has read, or -1."""
    base, state = address(data), address(scan)
    at, n = place[0], place[1]
    stopped = END
    while at + _HEADER <= total:
        event = base + at
        size: Any = load32(event + 9)
        kind = load8(event + 4)
        if size < _HEADER:
            stopped = BAD_LENGTH
            break
        if at + size > total:
            break
        if n == events.shape[0]:
            stopped = FULL
            break
        if kind in (15, 164) and at != seen:
            stopped = LOOK
            break
        checksum = word(state, CHECKSUM)
        if size < _HEADER + checksum:
            stopped = BAD_LENGTH
            break
        if kind != 15 and checksum and crc32_at(event, size - 4) != load32(event + size - 4):
            stopped = BAD_CHECKSUM
            break
        bits = scan_at(event, size, size, state)
        if bits & (MALFORMED | ABORTED):
            stopped = BAD_EVENT if bits & MALFORMED else BAD_BEGIN
            break
        events[n, OFFSET] = at
        events[n, SIZE] = size
        events[n, TYPE] = kind
        events[n, BITS] = bits
        events[n, COMMIT_TS] = word(state, CURRENT)
        at += size
        n += 1
    place[0] = at
    place[1] = n
    return stopped
