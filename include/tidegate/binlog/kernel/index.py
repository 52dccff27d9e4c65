"""One walk over raw events: where each lies, its transaction's commit_ts, and for rows which TABLE_MAP they follow.

In:  whole events, the state of transaction_scan, and `maps`: what has been mapped so far.
Out: one row per event in index; TABLE_MAP bodies, each distinct one once, in store.

A TABLE_MAP lives until its statement ends (rows event with STMT_END_F) or its transaction does: the generation counts
these, and a table id mapped in an older generation is unknown. Table ids are reused, so bodies are compared whole.
"""

from __future__ import annotations

from typing import Any, Final

import numba
import numpy as np

from tidegate.binlog.kernel.memory import (
    BYTES_IN,
    BYTES_OUT,
    WORDS,
    I,
    copy_bytes,
    little_endian,
    load8,
    load16,
    load32,
    load64,
)
from tidegate.binlog.transaction_scan import (
    ABORTED,
    BEGINS,
    CURRENT,
    ENDS,
    MALFORMED,
    ROWS,
    STATEMENT_END,
    TABLE_MAP,
    XA,
    scan_event,
)
from tidegate.binlog.transaction_scan import CHECKSUM as SCAN_CHECKSUM

# --- index: int64[n, INDEX_WORDS] -------------------------------------------------------------------
OFFSET: Final = 0
SIZE: Final = 1
TYPE: Final = 2
BITS: Final = 3  # transaction_scan's; and XA_BIT
COMMIT_TS: Final = 4
CONTENT: Final = 5  # rows events: number of the TABLE_MAP body, or -1
START: Final = 6  # rows events: offset behind the post-header
END: Final = 7  # offset behind the event without its checksum
INDEX_WORDS: Final = 8
XA_BIT: Final = 1 << 20  # inside an XA branch, which isn't committed when its events come

# --- maps: int64[MAPS_WORDS] ---------------------------------------------------------------------------
CONTENTS: Final = 0  # how many distinct bodies
STORED: Final = 1  # bytes used of store
GENERATION: Final = 2
REACHED: Final = 3  # offset of the event at which the walk stopped
ID_SLOTS: Final = 1 << 14
HASH_SLOTS: Final = 1 << 14
CONTENTS_MAX: Final = 1 << 13
_IDS: Final = 8  # table id + 1, content, generation
_HASHES: Final = _IDS + 3 * ID_SLOTS  # content + 1
BODIES: Final = _HASHES + HASH_SLOTS  # offset in store, length, hash
MAPS_WORDS: Final = BODIES + 3 * CONTENTS_MAX

CUT: Final = -1  # the bytes aren't whole events
MALFORMED_EVENT: Final = -2
ABORTED_TRANSACTION: Final = -3
FULL: Final = -4  # no room in index, store or maps

_FAST: Final = {"cache": True, "nogil": True, "boundscheck": False, "error_model": "numpy"}
_INDEX: Final = numba.types.int64[:, ::1]


@numba.njit(I(BYTES_IN, I, I), **_FAST)
def _hash(data: Any, at: int, end: int) -> int:
    value = np.uint64(1469598103934665603)
    while at + 8 <= end:
        value = (value ^ np.uint64(load64(data, at))) * np.uint64(1099511628211)
        value ^= value >> np.uint64(29)
        at += 8
    while at < end:
        value = (value ^ np.uint64(load8(data, at))) * np.uint64(1099511628211)
        at += 1
    half: Any = np.int64(value >> np.uint64(1))
    return half


@numba.njit(I(BYTES_IN, I, I, WORDS, BYTES_OUT), **_FAST)
def _content(data: Any, at: int, end: int, maps: Any, store: Any) -> int:
    """Number of the body data[at:end], stored when new; FULL."""
    size = end - at
    digest = _hash(data, at, end)
    slot = digest & (HASH_SLOTS - 1)
    while maps[_HASHES + slot] != 0:
        content = maps[_HASHES + slot] - 1
        body = BODIES + 3 * content
        if maps[body + 2] == digest and maps[body + 1] == size:
            same = True
            for i in range(size):
                if store[maps[body] + i] != data[at + i]:
                    same = False
                    break
            if same:
                return content
        slot = (slot + 1) & (HASH_SLOTS - 1)
    content = maps[CONTENTS]
    if content == CONTENTS_MAX or maps[STORED] + size > store.shape[0]:
        return FULL
    copy_bytes(store, maps[STORED], data, at, size)
    body = BODIES + 3 * content
    maps[body], maps[body + 1], maps[body + 2] = maps[STORED], size, digest
    maps[_HASHES + slot] = content + 1
    maps[CONTENTS] += 1
    maps[STORED] += size
    return content


@numba.njit(I(I, WORDS), **_FAST)
def _slot(table_id: int, maps: Any) -> int:
    """Slot of a table id, or the free one where it belongs; FULL."""
    slot = (table_id * 2654435761) & (ID_SLOTS - 1)
    for _ in range(ID_SLOTS):
        at = _IDS + 3 * slot
        # what an older generation mapped is free; ids are looked up only in the generation that mapped them
        if maps[at] == 0 or maps[at + 2] != maps[GENERATION] or maps[at] == table_id + 1:
            return at
        slot = (slot + 1) & (ID_SLOTS - 1)
    return FULL


@numba.njit(I(BYTES_IN, I, I, WORDS, BYTES_OUT), **_FAST)
def _map_table(data: Any, body: int, end: int, maps: Any, store: Any) -> int:
    if body + 8 > end:
        return MALFORMED_EVENT
    content = _content(data, body + 8, end, maps, store)
    at = _slot(little_endian(data, body, 6), maps)
    if content < 0 or at < 0:
        return FULL
    maps[at], maps[at + 1], maps[at + 2] = little_endian(data, body, 6) + 1, content, maps[GENERATION]
    return content


@numba.njit(I(BYTES_IN, I, I, I, _INDEX, WORDS), **_FAST)
def _rows_event(data: Any, kind: int, body: int, n: int, index: Any, maps: Any) -> int:
    """Note content and start of a rows event: table id 6, flags 2, and from version 2 on extra data with its length."""
    end = index[n, END]
    if body + 8 > end:
        return MALFORMED_EVENT
    table_id = little_endian(data, body, 6)
    at = _slot(table_id, maps)
    if at >= 0 and maps[at] == table_id + 1 and maps[at + 2] == maps[GENERATION]:
        index[n, CONTENT] = maps[at + 1]
    start = body + 8
    if 30 <= kind <= 32 or kind == 39:
        if start + 2 > end:
            return MALFORMED_EVENT
        start += max(load16(data, start), 2)
    if start > end:
        return MALFORMED_EVENT
    index[n, START] = start
    return 0


@numba.njit(I(BYTES_IN, _INDEX, WORDS, WORDS, BYTES_OUT), **_FAST)
def index_events(data: Any, index: Any, scan: Any, maps: Any, store: Any) -> int:
    """Walk all of data; gives the number of events, or a negative code with the place in maps[REACHED]."""
    at, n, total = 0, 0, data.shape[0]
    while at < total:
        maps[REACHED] = at
        size: Any = load32(data, at + 9) if at + 19 <= total else np.int64(0)
        if size < 19 or at + size > total:
            return CUT
        if n == index.shape[0]:
            return FULL
        bits = scan_event(data, at, size, size, scan)
        kind = load8(data, at + 4)
        if bits & MALFORMED or size < 19 + scan[SCAN_CHECKSUM]:
            return MALFORMED_EVENT
        if bits & ABORTED:
            return ABORTED_TRANSACTION
        if bits & BEGINS:
            maps[GENERATION] += 1
        index[n, OFFSET], index[n, SIZE], index[n, TYPE] = at, size, kind
        index[n, BITS] = bits | (XA_BIT if scan[XA] else 0)
        index[n, COMMIT_TS] = scan[CURRENT]
        index[n, CONTENT], index[n, START] = -1, 0
        index[n, END] = at + size - scan[SCAN_CHECKSUM]
        if bits & TABLE_MAP:
            code = _map_table(data, at + 19, index[n, END], maps, store)
            if code < 0:
                return code
        elif bits & ROWS and _rows_event(data, kind, at + 19, n, index, maps) < 0:
            return MALFORMED_EVENT
        if bits & (ENDS | STATEMENT_END):
            maps[GENERATION] += 1
        at += size
        n += 1
    return n


@numba.njit(I(BYTES_IN), **_FAST)
def count_events(data: Any) -> int:
    """Events in data by their sizes alone; stops where the bytes aren't whole events."""
    at, n, total = 0, 0, data.shape[0]
    while at + 19 <= total:
        size = load32(data, at + 9)
        if size < 19 or at + size > total:
            break
        at += size
        n += 1
    return n + 1
