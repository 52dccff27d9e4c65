"""Walks over events as bytes: over captured ones before they are expanded, and over the expanded
ones.

In:  bytes, by address; none of them is trusted.
Out: where each event lies; whole inner events in the layout of their file.

Events inside a compressed transaction have no checksum (mysql-server, sql/binlog: the payload is
written with BINLOG_CHECKSUM_ALG_OFF). In a file with checksums each one is laid out with four more
bytes, so the code that walks events needn't know their origin. The captured event's own checksum
covers them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import types

from tidegate.columnar.kernel.memory import (
    FAST,
    I,
    address,
    big_endian,
    copy_bytes,
    little_endian,
    load8,
    load16,
    load32,
    set_word,
    store8,
    store32,
    word,
)
from tidegate.compiled import compiled

# --- captured events: int64[n, FOUND_WORDS] -----------------------------------------------------------
FOUND_OFFSET: Final = 0
FOUND_SIZE: Final = 1
FOUND_TYPE: Final = 2
FOUND_CHECKSUM: Final = 3  # bytes of checksum at its end
# Of compressed events, filled in by read_fronts: HOW_*; offset of the packed bytes, their count, their unpacked count.
FOUND_HOW: Final = 4
FOUND_FRONT: Final = 5
FOUND_PACKED: Final = 6
FOUND_UNPACKED: Final = 7
FOUND_KEPT: Final = 8  # of MariaDB's events: bytes in front that stay as they are
FOUND_WORDS: Final = 9

HOW_ODD: Final = 0  # unusual: expand.py reads it byte by byte, and says what is wrong
HOW_ZSTD: Final = 1
HOW_ZLIB: Final = 2

# --- spans of expanded data: int64[n, SPAN_WORDS] ------------------------------------------------------
SPAN_START: Final = 0  # in data
SPAN_ORIGIN: Final = 1  # in the captured payload
SPAN_KIND: Final = 2
SPAN_WORDS: Final = 3
PLAIN: Final = 0  # as captured: both offsets advance together
SINGLE: Final = 1  # one event, expanded
NESTED: Final = 2  # events of a transaction payload

# --- state of lay_batch: int64[BATCH_WORDS] -----------------------------------------------------------
TARGET: Final = 0  # addresses of room for the events, for spans (two per event), for ends (one per event)
SPANS: Final = 1
ENDS: Final = 2
DONE: Final = 3  # up to here captured bytes are laid out; updated
BATCH_WRITTEN: Final = 4
BATCH_WORDS: Final = 5

# --- state of lay_inner: int64[INNER_WORDS] -----------------------------------------------------------
CONSUMED: Final = 0  # bytes of whole events read
WRITTEN: Final = 1
REMAINING: Final = 2  # bytes that may still come, with those given: no inner event is longer
NEEDED: Final = 3  # size of the event that isn't whole yet; 0 if its header isn't, either
KIND: Final = 4  # type of the last event that was read
INNER_WORDS: Final = 5

BAD_SIZE: Final = -1
BAD_KIND: Final = -2

# Types that can't be nested: events about the file, names of transactions, compressed events; MariaDB's own types.
_NEVER_INNER: Final = np.zeros(256, np.bool_)
_NEVER_INNER[[0, 1, 3, 4, 15, 27, 33, 34, 35, 37, 40, 41, 42]] = True
_NEVER_INNER[160:172] = True


@compiled(types.boolean(I), **FAST)
def is_compressed(kind: int) -> bool:
    """Whether events of this type must be expanded before they mean anything."""
    return kind == 40 or 165 <= kind <= 171


@compiled(I(I, I, I, I), **FAST)
def list_events(data: int, total: int, checksum: int, listed: int) -> int:
    """List the events in `total` bytes at data, into `listed` (if it isn't 0). Returns how many. It
    stops at the first incomplete one.
    """
    at, n = 0, 0
    while at + 19 <= total:
        size = load32(data + at + 9)
        if size < 19 or at + size > total:
            break
        kind = load8(data + at + 4)
        if kind == 15:  # FORMAT_DESCRIPTION sets the checksum anew
            checksum = 4 if load8(data + at + size - 5) == 1 else 0
        if listed != 0:
            row = listed + 8 * FOUND_WORDS * n
            set_word(row, FOUND_OFFSET, at)
            set_word(row, FOUND_SIZE, size)
            set_word(row, FOUND_TYPE, kind)
            set_word(row, FOUND_CHECKSUM, checksum)
        at += size
        n += 1
    return n


@compiled(I(I, I, I), **FAST)
def _packed(at: int, end: int, cursor: int) -> int:
    """Length-encoded integer below 2**56. The word at cursor becomes the address after it, or -1."""
    set_word(cursor, 0, -1)
    if at >= end:
        return 0
    first = load8(at)
    if first in (251, 255):
        return 0
    width = 0 if first < 251 else 2 if first == 252 else 3 if first == 253 else 8
    if at + 1 + width > end:
        return 0
    set_word(cursor, 0, at + 1 + width)
    return first if width == 0 else little_endian(at + 1, min(width, 7))


@compiled(I(I, I, I), **FAST)
def _front_of_payload(event: int, end: int, row: int) -> int:
    """The HOW_* of a TRANSACTION_PAYLOAD. Ordinary: each field once, zstd."""
    cursor = np.zeros(1, np.int64)
    here = address(cursor)
    at = event + 19
    seen, unpacked, packed = 0, 0, 0
    while True:
        field = _packed(at, end, here)
        if cursor[0] < 0 or field > 3 or seen & (1 << field):
            return HOW_ODD
        if field == 0:
            break
        seen |= 1 << field
        size = _packed(cursor[0], end, here)
        behind = cursor[0] + size
        if cursor[0] < 0:
            return HOW_ODD
        value = _packed(cursor[0], end, here)
        if cursor[0] < 0 or cursor[0] != behind or (field == 2 and value != 0):
            return HOW_ODD
        if field == 1:
            packed = value
        elif field == 3:
            unpacked = value
        at = behind
    if seen != 0b1110 or packed != end - cursor[0]:
        return HOW_ODD
    set_word(row, FOUND_FRONT, cursor[0] - event)
    set_word(row, FOUND_PACKED, packed)
    set_word(row, FOUND_UNPACKED, unpacked)
    return HOW_ZSTD


@compiled(I(I, I, I), **FAST)
def _front_of_mariadb(event: int, end: int, row: int) -> int:
    """The HOW_* of a compressed QUERY or rows event of MariaDB."""
    kind = load8(event + 4)
    at = event + 19
    if at + 13 > end:
        return HOW_ODD
    if kind == 165:
        at += 13 + load16(at + 11) + load8(at + 8) + 1
    else:
        at += 8
        if kind >= 169:
            at += max(load16(at), 2)
        cursor = np.zeros(1, np.int64)
        columns = _packed(at, end, address(cursor))
        if cursor[0] < 0 or columns > 1 << 16:
            return HOW_ODD
        at = cursor[0] + ((columns + 7) >> 3) * (2 if kind in (167, 170) else 1)
    if at >= end:
        return HOW_ODD
    head = load8(at)
    width = head & 7
    if head & 0xF8 != 0x80 or width < 1 or width > 4 or at + 1 + width > end:
        return HOW_ODD
    set_word(row, FOUND_KEPT, at - event)
    set_word(row, FOUND_FRONT, at + 1 + width - event)
    set_word(row, FOUND_PACKED, end - at - 1 - width)
    set_word(row, FOUND_UNPACKED, big_endian(at + 1, width))
    return HOW_ZLIB


@compiled(I(I, I, I), **FAST)
def read_fronts(data: int, listed: int, count: int) -> int:
    """Fill in the words from FOUND_HOW on for `count` compressed events of data. Returns count."""
    for i in range(count):
        row = listed + 8 * FOUND_WORDS * i
        event = data + word(row, FOUND_OFFSET)
        end = event + word(row, FOUND_SIZE) - word(row, FOUND_CHECKSUM)
        if word(row, FOUND_TYPE) == 40:
            set_word(row, FOUND_HOW, _front_of_payload(event, end, row))
        else:
            set_word(row, FOUND_HOW, _front_of_mariadb(event, end, row))
    return count


@compiled(I(I, I, I, I), **FAST)
def gather(data: int, listed: int, count: int, target: int) -> int:
    """Copy the packed bytes of `count` events, back to back. Returns how many bytes."""
    at = 0
    for i in range(count):
        row = listed + 8 * FOUND_WORDS * i
        size = word(row, FOUND_PACKED)
        copy_bytes(target + at, data + word(row, FOUND_OFFSET) + word(row, FOUND_FRONT), size)
        at += size
    return at


@compiled(I(I, I, I, I), **FAST)
def _span(spans: int, start: int, origin: int, kind: int) -> int:
    set_word(spans, SPAN_START, start)
    set_word(spans, SPAN_ORIGIN, origin)
    set_word(spans, SPAN_KIND, kind)
    return spans + 8 * SPAN_WORDS


@compiled(I(I, I, I, I, I), **FAST)
def lay_inner(source: int, total: int, target: int, grow: int, state: int) -> int:
    """Copy the whole events in `total` bytes at source to target, each with `grow` more zero bytes.
    Gives 0 or a BAD_*.

    target has room for total + grow * (total // 19) bytes.
    """
    forbidden = address(_NEVER_INNER)
    at, written = 0, 0
    set_word(state, NEEDED, 0)
    code = 0
    while at + 19 <= total:
        size = load32(source + at + 9)
        kind = load8(source + at + 4)
        set_word(state, KIND, kind)
        if size < 19 or size > word(state, REMAINING) - at or size + grow > 0xFFFFFFFF:
            code = BAD_SIZE
            break
        if load8(forbidden + kind):
            code = BAD_KIND
            break
        if at + size > total:
            set_word(state, NEEDED, size)
            break
        copy_bytes(target + written, source + at, size)
        store32(target + written + 9, size + grow)
        written += size
        for i in range(grow):
            store8(target + written + i, 0)
        written += grow
        at += size
    set_word(state, CONSUMED, at)
    set_word(state, WRITTEN, written)
    return code


@compiled(I(I, I, I, I), **FAST)
def _lay_single(event: int, row: int, text: int, target: int) -> int:
    """Lay out a compressed event of MariaDB as a plain one. Returns its size, or BAD_SIZE."""
    kind = load8(event + 4)
    kept, size, checksum = word(row, FOUND_KEPT), word(row, FOUND_UNPACKED), word(row, FOUND_CHECKSUM)
    whole = kept + size + checksum
    if whole > 0xFFFFFFFF:
        return BAD_SIZE
    copy_bytes(target, event, kept)
    store8(target + 4, 2 if kind == 165 else kind - 143 if kind < 169 else kind - 139)
    store32(target + 9, whole)
    copy_bytes(target + kept, text, size)
    for i in range(checksum):
        store8(target + kept + size + i, 0)
    return whole


@compiled(I(I, I, I, I, I), **FAST)
def lay_batch(data: int, listed: int, count: int, unpacked: int, state: int) -> int:
    """Lay out `count` compressed events, whose unpacked bytes are back to back, and the plain
    events before each.

    Returns the number of spans, or a negative number if something is odd.
    """
    inner = np.zeros(INNER_WORDS, np.int64)
    target, done = word(state, TARGET), word(state, DONE)
    written, spans, text = 0, word(state, SPANS), unpacked
    for i in range(count):
        row = listed + 8 * FOUND_WORDS * i
        offset, size = word(row, FOUND_OFFSET), word(row, FOUND_UNPACKED)
        if offset > done:
            copy_bytes(target + written, data + done, offset - done)
            spans = _span(spans, written, done, PLAIN)
            written += offset - done
        if word(row, FOUND_HOW) == HOW_ZSTD:
            spans = _span(spans, written, offset, NESTED)
            inner[REMAINING] = size
            code = lay_inner(text, size, target + written, word(row, FOUND_CHECKSUM), address(inner))
            if code < 0 or inner[CONSUMED] != size or size == 0:
                return BAD_SIZE
            written += inner[WRITTEN]
            set_word(word(state, ENDS), i, written)
        else:
            spans = _span(spans, written, offset, SINGLE)
            code = _lay_single(data + offset, row, text, target + written)
            if code < 0:
                return BAD_SIZE
            written += code
        text += size
        done = offset + word(row, FOUND_SIZE)
    set_word(state, DONE, done)
    set_word(state, BATCH_WRITTEN, written)
    return (spans - word(state, SPANS)) // (8 * SPAN_WORDS)
