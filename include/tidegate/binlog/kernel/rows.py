"""Rows events of one table version into Arrow buffers, in one pass.

In:  event offsets, a plan as data (columns), an arena.
Out: state[ROWS] rows in the arena, in log order; or state[ERROR] with event, column and offset.

A row's ordinal is the offset of its image, so ordinals grow in log order over all tables of a segment.
Update: the after image as an upsert; before it, when a key column's bytes differ or the table has no key, the before
image as a delete (merge must see the old key go). An image: null bitmap, then the values of columns that aren't NULL.
"""

from __future__ import annotations

from typing import Any, Final

import numba

from tidegate.binlog.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.binlog.kernel.cells import NULL, write_cell, write_null
from tidegate.binlog.kernel.memory import BYTES_IN, BYTES_OUT, WORDS, I, little_endian, load8, load16, store8, store64
from tidegate.tables import OP_DELETE, OP_UPSERT

_FAST: Final = {"cache": True, "nogil": True, "boundscheck": False, "error_model": "numpy"}
_EVENTS: Final = numba.types.int64[:, ::1]
_UPSERT: Final = OP_UPSERT
_DELETE: Final = OP_DELETE


@numba.njit(I(BYTES_IN, I, I, WORDS, I), forceinline=True, **_FAST)
def _cell_bytes(data: Any, at: int, end: int, columns: Any, k: int) -> int:
    """Length of the value at `at`, prefix included; ERROR_CUT when it doesn't end by `end`."""
    width = columns[k + L.WIDTH]
    if at + width > end:
        return L.ERROR_CUT
    if columns[k + L.KIND] != L.CELL_BYTES:
        return width
    if width == 1:
        count = 1 + load8(data, at)
    elif width == 2:
        count = 2 + load16(data, at)
    else:
        count = width + little_endian(data, at, width)
    return count if at + count <= end else L.ERROR_CUT


@numba.njit(I(BYTES_IN, I, I, WORDS, WORDS), **_FAST)
def _skim(data: Any, at: int, end: int, columns: Any, state: Any) -> int:
    """Offset behind the image at `at`; notes where its key columns lie. An ERROR_* when it doesn't end by `end`."""
    count = state[L.COLUMNS]
    nulls = at
    at += (count + 7) >> 3
    if at > end:
        return L.ERROR_CUT
    for c in range(count):
        k = c * L.COLUMN_WORDS
        if (load8(data, nulls + (c >> 3)) >> (c & 7)) & 1:
            columns[k + L.BEFORE] = -1
            continue
        size = _cell_bytes(data, at, end, columns, k)
        if size < 0:
            state[L.ERROR_COLUMN] = c
            return size
        columns[k + L.BEFORE] = at
        columns[k + L.BEFORE_BYTES] = size
        at += size
    return at


@numba.njit(I(BYTES_IN, I, I, WORDS, WORDS), **_FAST)
def _key_differs(data: Any, at: int, end: int, columns: Any, state: Any) -> int:
    """1 when the image at `at` has other key bytes than the one skimmed last; 0; or an ERROR_*."""
    nulls = at
    at += (state[L.COLUMNS] + 7) >> 3
    if at > end:
        return L.ERROR_CUT
    for c in range(state[L.KEYED]):
        k = c * L.COLUMN_WORDS
        before = columns[k + L.BEFORE]
        if (load8(data, nulls + (c >> 3)) >> (c & 7)) & 1:
            if columns[k + L.KEY] and before >= 0:
                return 1
            continue
        size = _cell_bytes(data, at, end, columns, k)
        if size < 0:
            state[L.ERROR_COLUMN] = c
            return size
        if columns[k + L.KEY]:
            if before < 0 or columns[k + L.BEFORE_BYTES] != size:
                return 1
            for i in range(size):
                if load8(data, before + i) != load8(data, at + i):
                    return 1
        at += size
    return 0


@numba.njit(I(BYTES_IN, I, I, WORDS, WORDS, BYTES_OUT), **_FAST)
def _emit(data: Any, at: int, end: int, columns: Any, state: Any, out: Any) -> int:
    """The image at `at` as row state[ROWS]; gives the offset behind it, or an ERROR_*."""
    count = state[L.COLUMNS]
    row = state[L.ROWS]
    nulls = at
    at += (count + 7) >> 3
    if at > end:
        return L.ERROR_CUT
    byte, bit = row >> 3, row & 7
    for c in range(count):
        k = c * L.COLUMN_WORDS
        written = NULL
        if not (load8(data, nulls + (c >> 3)) >> (c & 7)) & 1:
            size = _cell_bytes(data, at, end, columns, k)
            written = size if size < 0 else write_cell(data, at, columns, k, row, out)
            if written < 0:
                state[L.ERROR_COLUMN] = c
                state[L.ERROR_AT] = at
                return written
            at += size
            if written == NULL:
                columns[k + L.NULL_DATES] += 1
        valid = columns[k + L.VALID] + byte
        if written == NULL:
            write_null(columns, k, row, out)
            if bit == 0:
                store8(out, valid, 0)
        elif bit == 0:
            store8(out, valid, 1)
        else:
            out[valid] |= 1 << bit
    return at


@numba.njit(I(WORDS, I, I, I, BYTES_OUT), forceinline=True, **_FAST)
def _close_row(state: Any, op: int, commit_ts: int, ordinal: int, out: Any) -> int:
    row = state[L.ROWS]
    store8(out, state[L.OPS] + row, op)
    store64(out, state[L.COMMIT_TS] + 8 * row, commit_ts)
    store64(out, state[L.ORDINALS] + 8 * row, ordinal)
    state[L.ROWS] = row + 1
    return row + 1


@numba.njit(I(BYTES_IN, I, I, I, I), **_FAST)
def _images_start(data: Any, at: int, end: int, count: int, bitmaps: int) -> int:
    """Behind the column count and the bitmaps of columns present, which must all be set; else an ERROR_*."""
    if at >= end:
        return L.ERROR_CUT
    first = load8(data, at)
    at += 1
    if first == 252:
        if at + 2 > end:
            return L.ERROR_CUT
        first = load16(data, at)
        at += 2
    if first != count:
        return L.ERROR_COLUMNS
    width = (count + 7) >> 3
    if at + bitmaps * width > end:
        return L.ERROR_CUT
    for bitmap in range(bitmaps):
        for c in range(count):
            if not (load8(data, at + bitmap * width + (c >> 3)) >> (c & 7)) & 1:
                return L.ERROR_IMAGE
    return at + bitmaps * width


@numba.njit(I(BYTES_IN, I, I, _EVENTS, WORDS, WORDS), **_FAST)
def _count_event(data: Any, at: int, e: int, events: Any, columns: Any, state: Any) -> int:
    end = events[e, L.EVENT_END]
    images = 0
    while at < end:
        at = _skim(data, at, end, columns, state)
        if at < 0:
            return at
        images += 1
    return images


@numba.njit(I(BYTES_IN, _EVENTS, WORDS, WORDS), **_FAST)
def count_images(data: Any, events: Any, columns: Any, state: Any) -> int:
    """Row images in the events: an upper bound of rows. Stops at the first event that can't be read, which the decoding
    pass will name.
    """
    images = 0
    for e in range(events.shape[0]):
        bitmaps = 2 if events[e, L.EVENT_OP] == L.OP_UPDATE else 1
        at = _images_start(data, events[e, L.EVENT_START], events[e, L.EVENT_END], state[L.COLUMNS], bitmaps)
        found = at if at < 0 else _count_event(data, at, e, events, columns, state)
        if found < 0:
            return images
        images += found
    return images


@numba.njit(I(BYTES_IN, I, _EVENTS, WORDS, WORDS, BYTES_OUT), **_FAST)
def _decode_event(data: Any, e: int, events: Any, columns: Any, state: Any, out: Any) -> int:
    end, op, commit_ts = events[e, L.EVENT_END], events[e, L.EVENT_OP], events[e, L.EVENT_COMMIT_TS]
    at = _images_start(data, events[e, L.EVENT_START], end, state[L.COLUMNS], 2 if op == L.OP_UPDATE else 1)
    while 0 <= at < end:
        if state[L.ROWS] + 2 > state[L.ROWS_MAX]:
            return L.ERROR_ROOM
        state[L.ERROR_AT] = at
        start = at
        if op == L.OP_UPDATE:
            before = at
            start = _skim(data, before, end, columns, state)
            differs = start if start < 0 else 1
            if start >= 0 and state[L.KEYED] > 0:
                differs = _key_differs(data, start, end, columns, state)
            if differs < 0:
                return differs
            if differs:
                at = _emit(data, before, end, columns, state, out)
                if at < 0:
                    return at
                _close_row(state, _DELETE, commit_ts, before, out)
        at = _emit(data, start, end, columns, state, out)
        if at >= 0:
            _close_row(state, _DELETE if op == L.OP_DELETE else _UPSERT, commit_ts, start, out)
    return at


@numba.njit(I(BYTES_IN, _EVENTS, WORDS, WORDS, BYTES_OUT), **_FAST)
def decode_rows(data: Any, events: Any, columns: Any, state: Any, out: Any) -> int:
    """Decode all events; gives the rows written, or an ERROR_* (also in state, with event, column and offset)."""
    for e in range(events.shape[0]):
        state[L.ERROR_COLUMN] = -1
        at = _decode_event(data, e, events, columns, state, out)
        if at < 0:
            state[L.ERROR] = at
            state[L.ERROR_EVENT] = e
            return at
    return state[L.ROWS]
