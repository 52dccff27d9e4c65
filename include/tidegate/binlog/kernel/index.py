"""One walk over raw events: the place of each, its transaction's commit_ts, and for rows their
TABLE_MAP.

In:  whole events, the state of transaction_scan, and `maps`, the TABLE_MAPs so far; all by address.
Out: one row per event in index; each distinct TABLE_MAP body once, in store.

A TABLE_MAP is valid until its statement ends (rows event with STMT_END_F), or its transaction does.
The generation counts these ends, and a table id from an older generation is unknown. Table ids are
reused: whole bodies are compared.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tidegate.binlog.kernel.compressed import is_compressed
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
    scan_at,
)
from tidegate.binlog.transaction_scan import CHECKSUM as SCAN_CHECKSUM
from tidegate.columnar.kernel.memory import (
    FAST,
    I,
    copy_bytes,
    equal_bytes,
    little_endian,
    load8,
    load16,
    load32,
    load64,
    set_word,
    word,
)
from tidegate.compiled import compiled

# --- index: int64[n, INDEX_WORDS] -------------------------------------------------------------------
OFFSET: Final = 0
SIZE: Final = 1
TYPE: Final = 2
BITS: Final = 3  # of transaction_scan, and XA_BIT
COMMIT_TS: Final = 4
CONTENT: Final = 5  # rows events: number of the TABLE_MAP body, or -1
START: Final = 6  # rows events: offset after the post-header
END: Final = 7  # offset after the event without its checksum
ORIGIN: Final = 8  # offset in the captured payload: of the event itself, or of the compressed event that had it
INDEX_WORDS: Final = 9
XA_BIT: Final = 1 << 20  # inside an XA branch, which isn't committed when its events come

# --- maps: int64[MAPS_WORDS] ---------------------------------------------------------------------------
CONTENTS: Final = 0  # how many distinct bodies
STORED: Final = 1  # bytes used of store
GENERATION: Final = 2
REACHED: Final = 3  # offset of the event at which the walk stopped
INDEX_AT: Final = 4  # address of index, and how many rows it has
INDEX_ROWS: Final = 5
STORE_AT: Final = 6  # address of store, and its size
STORE_BYTES: Final = 7
ID_SLOTS: Final = 1 << 13
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
COMPRESSED: Final = -5  # an event that must be expanded first


@compiled(I(I, I), **FAST)
def _hash(at: int, end: int) -> int:
    value = np.uint64(1469598103934665603)
    while at + 8 <= end:
        value = (value ^ np.uint64(load64(at))) * np.uint64(1099511628211)
        value ^= value >> np.uint64(29)
        at += 8
    while at < end:
        value = (value ^ np.uint64(load8(at))) * np.uint64(1099511628211)
        at += 1
    half: Any = np.int64(value >> np.uint64(1))
    return half


@compiled(I(I, I, I), **FAST)
def _content(at: int, end: int, maps: int) -> int:
    """The number of the body at[:end]. A new body is stored. Or FULL."""
    size = end - at
    digest = _hash(at, end)
    slot = digest & (HASH_SLOTS - 1)
    while word(maps, _HASHES + slot) != 0:
        content = word(maps, _HASHES + slot) - 1
        body = maps + 8 * (BODIES + 3 * content)
        if (
            word(body, 2) == digest
            and word(body, 1) == size
            and equal_bytes(word(maps, STORE_AT) + word(body, 0), at, size)
        ):
            return content
        slot = (slot + 1) & (HASH_SLOTS - 1)
    content = word(maps, CONTENTS)
    stored = word(maps, STORED)
    if content == CONTENTS_MAX or stored + size > word(maps, STORE_BYTES):
        return FULL
    copy_bytes(word(maps, STORE_AT) + stored, at, size)
    body = maps + 8 * (BODIES + 3 * content)
    set_word(body, 0, stored)
    set_word(body, 1, size)
    set_word(body, 2, digest)
    set_word(maps, _HASHES + slot, content + 1)
    set_word(maps, CONTENTS, content + 1)
    set_word(maps, STORED, stored + size)
    return content


@compiled(I(I, I), **FAST)
def _slot(table_id: int, maps: int) -> int:
    """The address of a table id's slot, or of a free one for it; or FULL."""
    slot = (table_id * 2654435761) & (ID_SLOTS - 1)
    for _ in range(ID_SLOTS):
        at = maps + 8 * (_IDS + 3 * slot)
        # slots of an older generation are free: an id is looked up only in the generation that mapped it
        if word(at, 0) == 0 or word(at, 2) != word(maps, GENERATION) or word(at, 0) == table_id + 1:
            return at
        slot = (slot + 1) & (ID_SLOTS - 1)
    return FULL


@compiled(I(I, I, I), **FAST)
def _map_table(body: int, end: int, maps: int) -> int:
    if body + 8 > end:
        return MALFORMED_EVENT
    table_id = little_endian(body, 6)
    content = _content(body + 8, end, maps)
    at = _slot(table_id, maps)
    if content < 0 or at < 0:
        return FULL
    set_word(at, 0, table_id + 1)
    set_word(at, 1, content)
    set_word(at, 2, word(maps, GENERATION))
    return content


@compiled(I(I, I, I, I), **FAST)
def _rows_event(event: int, end: int, row: int, maps: int) -> int:
    """Note body and start of a rows event. Table id 6, flags 2; from version 2 on, extra data with
    its length.
    """
    kind = load8(event + 4)
    body = event + 19
    if body + 8 > end:
        return MALFORMED_EVENT
    table_id = little_endian(body, 6)
    at = _slot(table_id, maps)
    if at >= 0 and word(at, 0) == table_id + 1 and word(at, 2) == word(maps, GENERATION):
        set_word(row, CONTENT, word(at, 1))
    start = body + 8
    if 30 <= kind <= 32 or kind == 39:
        if start + 2 > end:
            return MALFORMED_EVENT
        start += max(load16(start), 2)
    if start > end:
        return MALFORMED_EVENT
    set_word(row, START, word(row, OFFSET) + start - event)
    return 0


@compiled(I(I, I, I, I, I), forceinline=True, **FAST)
def _enter(bits: int, event: int, end: int, row: int, maps: int) -> int:
    """Note an event in maps, and in its row of the index."""
    if bits & BEGINS:
        set_word(maps, GENERATION, word(maps, GENERATION) + 1)
    code: Any = np.int64(0)
    if bits & TABLE_MAP:
        code = _map_table(event + 19, end, maps)
    elif bits & ROWS:
        code = _rows_event(event, end, row, maps)
    if bits & (ENDS | STATEMENT_END):
        set_word(maps, GENERATION, word(maps, GENERATION) + 1)
    return code


@compiled(I(I, I, I, I), **FAST)
def index_events(data: int, total: int, scan: int, maps: int) -> int:
    """Walk total bytes at data. Returns the number of events, or a negative code with the place in
    maps[REACHED].

    All are addresses: data of the payload, scan of transaction_scan's state, maps of an array with
    the addresses of index and store.
    """
    at, n = 0, 0
    while at < total:
        set_word(maps, REACHED, at)
        event = data + at
        size: Any = load32(event + 9) if at + 19 <= total else np.int64(0)
        if size < 19 or at + size > total:
            return CUT
        if n == word(maps, INDEX_ROWS):
            return FULL
        kind = load8(event + 4)
        if is_compressed(kind):
            return COMPRESSED
        bits = scan_at(event, size, size, scan)
        if bits & MALFORMED or size < 19 + word(scan, SCAN_CHECKSUM):
            return MALFORMED_EVENT
        if bits & ABORTED:
            return ABORTED_TRANSACTION
        row = word(maps, INDEX_AT) + 8 * INDEX_WORDS * n
        set_word(row, OFFSET, at)
        set_word(row, SIZE, size)
        set_word(row, TYPE, kind)
        set_word(row, BITS, bits | (XA_BIT if word(scan, XA) else 0))
        set_word(row, COMMIT_TS, word(scan, CURRENT))
        set_word(row, CONTENT, -1)
        set_word(row, START, 0)
        set_word(row, ORIGIN, at)
        end = at + size - word(scan, SCAN_CHECKSUM)
        set_word(row, END, end)
        code = _enter(bits, event, data + end, row, maps)
        if code < 0:
            return code
        at += size
        n += 1
    return n


@compiled(I(I, I), **FAST)
def count_events(data: int, total: int) -> int:
    """Events in total bytes at data, by their sizes alone, plus one. It stops where the bytes
    aren't whole events.
    """
    at, n = 0, 0
    while at + 19 <= total:
        size = load32(data + at + 9)
        if size < 19 or at + size > total:
            break
        at += size
        n += 1
    return n + 1
