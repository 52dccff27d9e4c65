"""Rows events of one table version into Arrow buffers, in one pass.

In:  addresses: of event records, of a plan as data (columns), of the state (layout.py).
Out: state[ROWS] rows in the arena, in log order; or state[ERROR] with event, column and place.

A row's ordinal is the offset of its image, so ordinals ascend in log order over all tables of a
segment. An update becomes an upsert of its after image. If a key column's bytes differ, or the
table has no key, a delete of its before image comes first: merge must see the old key go. An image
is a null bitmap, then the values that aren't NULL.
"""

from __future__ import annotations

from typing import Final

from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.columnar.kernel.cells import close_cell, write_bytes, write_fixed
from tidegate.columnar.kernel.decimals import NULL
from tidegate.columnar.kernel.memory import FAST, I, little_endian, load8, load16, set_word, store8, store64, word
from tidegate.compiled import compiled
from tidegate.tables import OP_DELETE, OP_UPSERT

_UPSERT: Final = OP_UPSERT
_DELETE: Final = OP_DELETE
_COLUMN_BYTES: Final = 8 * L.COLUMN_WORDS
_EVENT_BYTES: Final = 8 * L.EVENT_WORDS


@compiled(I(I, I, I), forceinline=True, **FAST)
def _prefixed(at: int, end: int, width: int) -> int:
    """Length of a value after its prefix of width bytes; ERROR_CUT if it doesn't end by `end`."""
    if at + width > end:
        return L.ERROR_CUT
    if width == 1:
        count = load8(at)
    elif width == 2:
        count = load16(at)
    else:
        count = little_endian(at, width)
    return count if at + width + count <= end else L.ERROR_CUT


@compiled(I(I, I, I), forceinline=True, **FAST)
def cell_bytes(at: int, end: int, column: int) -> int:
    """Length of the value at `at`, with its prefix; ERROR_CUT if it doesn't end by `end`."""
    width = word(column, L.WIDTH)
    if word(column, L.KIND) != L.CELL_BYTES:
        return width if at + width <= end else L.ERROR_CUT
    count = _prefixed(at, end, width)
    return width + count if count >= 0 else count


@compiled(I(I, I, I, I), **FAST)
def _skim(at: int, end: int, columns: int, state: int) -> int:
    """Note where the key columns of the image at `at` lie. Returns the address after it, or an
    ERROR_*.
    """
    count = word(state, L.COLUMNS)
    nulls = at
    at += (count + 7) >> 3
    if at > end:
        return L.ERROR_CUT
    column = columns
    for c in range(count):
        if (load8(nulls + (c >> 3)) >> (c & 7)) & 1:
            set_word(column, L.BEFORE, 0)
        else:
            size = cell_bytes(at, end, column)
            if size < 0:
                set_word(state, L.ERROR_COLUMN, c)
                return size
            set_word(column, L.BEFORE, at)
            set_word(column, L.BEFORE_BYTES, size)
            at += size
        column += _COLUMN_BYTES
    return at


@compiled(I(I, I, I, I), **FAST)
def _key_differs(at: int, end: int, columns: int, state: int) -> int:
    """1 if the image at `at` has other key bytes than the image skimmed last; else 0; or an
    ERROR_*.
    """
    nulls = at
    at += (word(state, L.COLUMNS) + 7) >> 3
    if at > end:
        return L.ERROR_CUT
    column = columns
    for c in range(word(state, L.KEYED)):
        before = word(column, L.BEFORE)
        if (load8(nulls + (c >> 3)) >> (c & 7)) & 1:
            if word(column, L.KEY) and before:
                return 1
        else:
            size = cell_bytes(at, end, column)
            if size < 0:
                set_word(state, L.ERROR_COLUMN, c)
                return size
            if word(column, L.KEY):
                if not before or word(column, L.BEFORE_BYTES) != size:
                    return 1
                for i in range(size):
                    if load8(before + i) != load8(at + i):
                        return 1
            at += size
        column += _COLUMN_BYTES
    return 0


@compiled(I(I, I, I, I), **FAST)
def _emit(at: int, end: int, columns: int, state: int) -> int:
    """Write the image at `at` as row state[ROWS]. Returns the address after it, or an ERROR_*."""
    count = word(state, L.COLUMNS)
    row = word(state, L.ROWS)
    nulls = at
    at += (count + 7) >> 3
    if at > end:
        return L.ERROR_CUT
    column = columns
    for c in range(count):
        written = NULL
        if not (load8(nulls + (c >> 3)) >> (c & 7)) & 1:
            kind, size = word(column, L.KIND), word(column, L.WIDTH)
            if kind == L.CELL_BYTES:
                length = _prefixed(at, end, size)
                written = write_bytes(at + size, length, column, row) if length >= 0 else length
                size += length
            else:
                written = write_fixed(kind, at, column, row) if at + size <= end else L.ERROR_CUT
            if written < 0:
                set_word(state, L.ERROR_COLUMN, c)
                set_word(state, L.ERROR_AT, at)
                return written
            at += size
            if written == NULL:
                set_word(column, L.NULL_DATES, word(column, L.NULL_DATES) + 1)
        close_cell(written, column, row)
        column += _COLUMN_BYTES
    return at


@compiled(I(I, I, I, I), forceinline=True, **FAST)
def close_row(state: int, op: int, commit_ts: int, image: int) -> int:
    """Count row state[ROWS] as written. image: its address in the payload."""
    row = word(state, L.ROWS)
    store8(word(state, L.OPS) + row, op)
    store64(word(state, L.COMMIT_TS) + 8 * row, commit_ts)
    store64(word(state, L.ORDINALS) + 8 * row, image - word(state, L.DATA))
    return set_word(state, L.ROWS, row + 1)


@compiled(I(I, I, I), **FAST)
def bitmaps_start(at: int, end: int, count: int) -> int:
    """Address after the column count (length-encoded, at most 2 bytes), which must be `count`; else
    an ERROR_*.
    """
    if at >= end:
        return L.ERROR_CUT
    first = load8(at)
    at += 1
    if first == 252:
        if at + 2 > end:
            return L.ERROR_CUT
        first = load16(at)
        at += 2
    return at if first == count else L.ERROR_COLUMNS


@compiled(I(I, I, I, I), **FAST)
def _images_start(at: int, end: int, count: int, bitmaps: int) -> int:
    """Address after the column count and the bitmaps of present columns, which must all be set;
    else an ERROR_*.
    """
    at = bitmaps_start(at, end, count)
    if at < 0:
        return at
    width = (count + 7) >> 3
    if at + bitmaps * width > end:
        return L.ERROR_CUT
    for bitmap in range(bitmaps):
        for c in range(count):
            if not (load8(at + bitmap * width + (c >> 3)) >> (c & 7)) & 1:
                return L.ERROR_IMAGE
    return at + bitmaps * width


@compiled(I(I, I, I), **FAST)
def _start(event: int, op: int, count: int) -> int:
    if op == L.OP_PARTIAL_UPDATE:  # its JSON columns are differences, not values
        return L.ERROR_IMAGE
    return _images_start(word(event, L.EVENT_START), word(event, L.EVENT_END), count, 2 if op == L.OP_UPDATE else 1)


@compiled(I(I, I, I, I), **FAST)
def count_images(events: int, count: int, columns: int, state: int) -> int:
    """Row images in `count` events: an upper bound of rows. It stops at the first unreadable event;
    the decoding pass reports that one.
    """
    images = 0
    for e in range(count):
        event = events + e * _EVENT_BYTES
        end = word(event, L.EVENT_END)
        at = _start(event, word(event, L.EVENT_OP), word(state, L.COLUMNS))
        while 0 <= at < end:
            at = _skim(at, end, columns, state)
            images += 1
        if at < 0:
            break
    return images


@compiled(I(I, I, I), **FAST)
def _decode_event(event: int, columns: int, state: int) -> int:
    end, op, commit_ts = word(event, L.EVENT_END), word(event, L.EVENT_OP), word(event, L.EVENT_COMMIT_TS)
    at = _start(event, op, word(state, L.COLUMNS))
    keyed = word(state, L.KEYED)
    while 0 <= at < end:
        if word(state, L.ROWS) + 2 > word(state, L.ROWS_MAX):
            return L.ERROR_ROOM
        set_word(state, L.ERROR_AT, at)
        start = at
        if op == L.OP_UPDATE:
            start = _skim(at, end, columns, state)
            if start < 0:
                return start
            differs = _key_differs(start, end, columns, state) if keyed > 0 else 1
            if differs < 0:
                return differs
            if differs:
                behind = _emit(at, end, columns, state)
                if behind < 0:
                    return behind
                close_row(state, _DELETE, commit_ts, at)
        at = _emit(start, end, columns, state)
        if at >= 0:
            close_row(state, _DELETE if op == L.OP_DELETE else _UPSERT, commit_ts, start)
    return at


@compiled(I(I, I, I, I), **FAST)
def decode_rows(events: int, count: int, columns: int, state: int) -> int:
    """Decode `count` events. Returns the rows written, or an ERROR_* (state has event, column and
    place, too).
    """
    for e in range(count):
        set_word(state, L.ERROR_COLUMN, -1)
        at = _decode_event(events + e * _EVENT_BYTES, columns, state)
        if at < 0:
            set_word(state, L.ERROR, at)
            set_word(state, L.ERROR_EVENT, e)
            return at
    return word(state, L.ROWS)
