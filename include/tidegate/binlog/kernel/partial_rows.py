"""Rows events whose images lack columns, or have differences of JSON documents in place of
documents.

In:  as rows.py; and room for marks: where each column's value lies in an image, or that it is NULL
     or absent.
Out: as rows.py; and, per column and row, whether the value is known. It decodes complete events,
     too: the order stays.

MODE_NET: the value of an update is the after image's. If the after image lacks a column, it is
unchanged, and the before image's value counts. A column in neither image is an error, and so is an
absent virtual column, which may have changed. The absent columns of a write have their defaults,
which batch.py fills in. A delete needs the identity of its row: the key, or every column of a table
without a key. Unasked columns may be absent everywhere. MODE_IMAGES: every image is a row, as it
was logged.

Layout: mysql-server libs/mysql/binlog/event/rows_event.h (Rows_event), sql/rpl_record.cc
(pack_row): an image's null bitmap counts only the columns that are present. PARTIAL_UPDATE_ROWS has
value options (packed integer) between the images. If bit 0 is set, a bit for each JSON column of
the table follows. A value with its bit set is a length (u32) and differences (sql/json_diff.cc).
"""

from __future__ import annotations

from typing import Final

from tidegate.binlog.kernel.rows import bitmaps_start, cell_bytes, close_row
from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.columnar.kernel.cells import close_cell, write_bytes, write_fixed
from tidegate.columnar.kernel.decimals import NULL, VALUE
from tidegate.columnar.kernel.memory import FAST, I, copy_bytes, load8, load32, set_word, store8, store32, word
from tidegate.compiled import compiled
from tidegate.tables import OP_DELETE, OP_UPSERT

_UPSERT: Final = OP_UPSERT
_DELETE: Final = OP_DELETE
_COLUMN_BYTES: Final = 8 * L.COLUMN_WORDS
_EVENT_BYTES: Final = 8 * L.EVENT_WORDS
_MARK_BYTES: Final = 8 * L.MARK_WORDS
# How a row treats an absent column.
_ALLOW: Final = 0
_MERGE: Final = 1  # take the before image's value; an error if that lacks it, too
_NEED_KEY: Final = 2  # an error in a key column, and anywhere in a table without a key
_NEW: Final = 3  # it has its default; an error if that isn't known


@compiled(I(I, I), forceinline=True, **FAST)
def _bit(bits: int, number: int) -> int:
    return (load8(bits + (number >> 3)) >> (number & 7)) & 1


@compiled(I(I, I), **FAST)
def _bits_set(bits: int, count: int) -> int:
    bits_there = 0
    for number in range(count):
        bits_there += _bit(bits, number)
    return bits_there


@compiled(I(I, I), **FAST)
def _bitmaps(event: int, count: int) -> int:
    """Address of the first bitmap of present columns, or an ERROR_*. At least one image must have a
    column.
    """
    end, op = word(event, L.EVENT_END), word(event, L.EVENT_OP)
    at = bitmaps_start(word(event, L.EVENT_START), end, count)
    if at < 0:
        return at
    width = (count + 7) >> 3
    two = op in (L.OP_UPDATE, L.OP_PARTIAL_UPDATE)
    if at + (2 * width if two else width) > end:
        return L.ERROR_CUT
    if _bits_set(at, count) == 0 and not (two and _bits_set(at + width, count) > 0):
        return L.ERROR_EMPTY
    return at


@compiled(I(I, I), forceinline=True, **FAST)
def _diffs_bytes(at: int, end: int) -> int:
    """Bytes of differences with the length before them; ERROR_CUT if they don't end by `end`."""
    if at + 4 > end:
        return L.ERROR_CUT
    size = 4 + load32(at)
    return size if at + size <= end else L.ERROR_CUT


@compiled(I(I, I, I, I, I, I), **FAST)
def _mark(at: int, end: int, present: int, marks: int, columns: int, state: int) -> int:
    """Mark where the values of the image at `at` lie. Returns the address after it, or an ERROR_*."""
    count, diffs = word(state, L.COLUMNS), word(state, L.DIFFS)
    nulls = at
    at += (_bits_set(present, count) + 7) >> 3
    if at > end:
        return L.ERROR_CUT
    shown, documents = 0, 0
    column, mark = columns, marks
    for c in range(count):
        partial = 0
        if word(mark, L.MARK_JSON):
            if diffs:
                partial = _bit(diffs, documents)
            documents += 1
        set_word(mark, L.MARK_DIFFS, partial)
        if not _bit(present, c):
            set_word(mark, L.MARK_AT, L.MARK_ABSENT)
        else:
            if _bit(nulls, shown):
                set_word(mark, L.MARK_AT, L.MARK_NULL)
            else:
                size = _diffs_bytes(at, end) if partial else cell_bytes(at, end, column)
                if size < 0:
                    set_word(state, L.ERROR_COLUMN, c)
                    set_word(state, L.ERROR_AT, at)
                    return size
                set_word(mark, L.MARK_AT, at)
                set_word(mark, L.MARK_BYTES, size)
                at += size
            shown += 1
        column += _COLUMN_BYTES
        mark += _MARK_BYTES
    return at


@compiled(I(I, I), **FAST)
def _diffs_start(at: int, event: int) -> int:
    """Address of an update's after image. `at`: after the before image; value options lie between
    both.
    """
    if word(event, L.EVENT_OP) != L.OP_PARTIAL_UPDATE:
        return at
    if at >= word(event, L.EVENT_END):
        return L.ERROR_CUT
    return at + 1 if load8(at) <= 1 else L.ERROR_OPTIONS


@compiled(I(I, I, I, I, I), **FAST)
def _mark_after(at: int, event: int, present: int, columns: int, state: int) -> int:
    """As _mark, for an update's after image. `at`: after its value options."""
    end = word(event, L.EVENT_END)
    if word(event, L.EVENT_OP) == L.OP_PARTIAL_UPDATE and load8(at - 1):
        set_word(state, L.DIFFS, at)
        at += (word(state, L.DOCUMENTS) + 7) >> 3
        if at > end:
            return L.ERROR_CUT
    marks = word(state, L.MARKS) + _MARK_BYTES * word(state, L.COLUMNS)
    return _mark(at, end, present, marks, columns, state)


@compiled(I(I, I, I, I), **FAST)
def _write_patched(mark: int, before: int, column: int, row: int) -> int:
    """Write the before image's document and its differences, for finish.py to apply."""
    width = word(column, L.WIDTH)
    document = word(before, L.MARK_AT)
    if document <= 0:
        return L.ERROR_DIFFS
    document += width
    size = word(before, L.MARK_BYTES) - width
    if size > 0 and load8(document) == L.PATCHED:
        return L.ERROR_DOCUMENT
    diffs, diffs_size = word(mark, L.MARK_AT) + 4, word(mark, L.MARK_BYTES) - 4
    used = word(column, L.USED)
    whole = 5 + size + diffs_size
    if used + whole > word(column, L.BYTES_MAX):
        return L.ERROR_BATCH
    to = word(column, L.BYTES) + used
    store8(to, L.PATCHED)
    store32(to + 1, size)
    copy_bytes(to + 5, document, size)
    copy_bytes(to + 5 + size, diffs, diffs_size)
    set_word(column, L.USED, used + whole)
    store32(word(column, L.VALUES) + 4 * row + 4, used + whole)
    return VALUE


@compiled(I(I, I, I, I), **FAST)
def _write(mark: int, before: int, column: int, row: int) -> int:
    """Write the value at a mark. Returns VALUE, NULL (a date that doesn't exist) or an ERROR_*."""
    at, kind = word(mark, L.MARK_AT), word(column, L.KIND)
    if word(mark, L.MARK_DIFFS):
        return _write_patched(mark, before, column, row)
    if kind != L.CELL_BYTES:
        return write_fixed(kind, at, column, row)
    width = word(column, L.WIDTH)
    count = word(mark, L.MARK_BYTES) - width
    if word(mark, L.MARK_JSON) and count > 0 and load8(at + width) == L.PATCHED:
        return L.ERROR_DOCUMENT  # this type is our own, and only written above
    return write_bytes(at + width, count, column, row)


@compiled(I(I, I, I, I), **FAST)
def _lacking(policy: int, mark: int, column: int, state: int) -> int:
    """The ERROR_* of an absent column, or 0."""
    if word(mark, L.MARK_UNASKED):
        return 0
    if policy == _NEW and word(mark, L.MARK_NEEDED):
        return L.ERROR_DEFAULT
    if policy == _MERGE:
        return L.ERROR_UNKNOWN
    if policy == _NEED_KEY and (word(state, L.KEYED) == 0 or word(column, L.KEY)):
        return L.ERROR_KEY
    return 0


@compiled(I(I, I, I, I, I), **FAST)
def _emit(marks: int, before: int, policy: int, columns: int, state: int) -> int:
    """Write row state[ROWS] from marks. before: marks of the before image. Returns 0 or an ERROR_*."""
    row, rows_max = word(state, L.ROWS), word(state, L.ROWS_MAX)
    known = word(state, L.PRESENT) + row
    column, offset = columns, 0
    for c in range(word(state, L.COLUMNS)):
        mark = marks + offset
        if policy == _MERGE and word(mark, L.MARK_AT) == L.MARK_ABSENT and not word(mark, L.MARK_COMPUTED):
            mark = before + offset
        at = word(mark, L.MARK_AT)
        written = NULL
        if at > 0:
            written = _write(mark, before + offset, column, row)
            if written == NULL:
                set_word(column, L.NULL_DATES, word(column, L.NULL_DATES) + 1)
        elif at == L.MARK_ABSENT:
            lacking = _lacking(policy, mark, column, state)
            written = lacking or NULL
        if written < 0:
            set_word(state, L.ERROR_COLUMN, c)
            if at > 0:
                set_word(state, L.ERROR_AT, at)
            return written
        store8(known, 0 if at == L.MARK_ABSENT else 1)
        known += rows_max
        close_cell(written, column, row)
        column += _COLUMN_BYTES
        offset += _MARK_BYTES
    return 0


@compiled(I(I, I, I), **FAST)
def _key_differs(marks: int, columns: int, state: int) -> int:
    """1 if an update's images differ in a key column's bytes, or if the table has no key; else 0;
    or an ERROR_*.
    """
    if word(state, L.KEYED) == 0:
        return 1
    differs = 0
    column, before, after = columns, marks, marks + _MARK_BYTES * word(state, L.COLUMNS)
    for c in range(word(state, L.KEYED)):
        old, new = word(before, L.MARK_AT), word(after, L.MARK_AT)
        if word(column, L.KEY):
            if old == L.MARK_ABSENT:
                set_word(state, L.ERROR_COLUMN, c)
                return L.ERROR_KEY
            if new != L.MARK_ABSENT and (old > 0 or new > 0):
                size = word(before, L.MARK_BYTES)
                if old <= 0 or new <= 0 or size != word(after, L.MARK_BYTES):
                    differs = 1
                else:
                    for i in range(size):
                        if load8(old + i) != load8(new + i):
                            differs = 1
                            break
        column += _COLUMN_BYTES
        before += _MARK_BYTES
        after += _MARK_BYTES
    return differs


@compiled(I(I, I, I, I, I), **FAST)
def _emit_update(before_at: int, after_at: int, event: int, columns: int, state: int) -> int:
    """Write both marked images of an update as rows. Returns 0 or an ERROR_*."""
    commit_ts = word(event, L.EVENT_COMMIT_TS)
    marks = word(state, L.MARKS)
    after = marks + _MARK_BYTES * word(state, L.COLUMNS)
    net = word(state, L.MODE) == L.MODE_NET
    differs = _key_differs(marks, columns, state) if net else 1
    if differs < 0:
        return differs
    if differs:
        error = _emit(marks, marks, _NEED_KEY if net else _ALLOW, columns, state)
        if error:
            return error
        close_row(state, _DELETE if net else IMAGE_BEFORE, commit_ts, before_at)
    error = _emit(after, marks, _MERGE if net else _ALLOW, columns, state)
    if error == 0:
        close_row(state, _UPSERT if net else IMAGE_AFTER, commit_ts, after_at)
    return error


@compiled(I(I, I, I, I), **FAST)
def _emit_single(at: int, event: int, columns: int, state: int) -> int:
    """Write the marked image of a write or a delete as a row. Returns 0 or an ERROR_*."""
    marks, write = word(state, L.MARKS), word(event, L.EVENT_OP) == L.OP_WRITE
    net = word(state, L.MODE) == L.MODE_NET
    policy = (_NEW if write else _NEED_KEY) if net else _ALLOW
    error = _emit(marks, marks, policy, columns, state)
    if error == 0:
        op = (_UPSERT if write else _DELETE) if net else (IMAGE_INSERT if write else IMAGE_DELETE)
        close_row(state, op, word(event, L.EVENT_COMMIT_TS), at)
    return error


@compiled(I(I, I, I, I), **FAST)
def _walk(event: int, columns: int, state: int, emit: int) -> int:
    """Each row of an event. Returns how many images there are, or an ERROR_*."""
    end, op, count = word(event, L.EVENT_END), word(event, L.EVENT_OP), word(state, L.COLUMNS)
    present = _bitmaps(event, count)
    if present < 0:
        return present
    width = (count + 7) >> 3
    update = op in (L.OP_UPDATE, L.OP_PARTIAL_UPDATE)
    at = present + (2 * width if update else width)
    images = 0
    while at < end:
        if emit and word(state, L.ROWS) + 2 > word(state, L.ROWS_MAX):
            return L.ERROR_ROOM
        set_word(state, L.ERROR_AT, at)
        set_word(state, L.DIFFS, 0)
        behind = _mark(at, end, present, word(state, L.MARKS), columns, state)
        if behind < 0:
            return behind
        images += 1
        error = 0
        if update:
            after = _diffs_start(behind, event)
            behind = _mark_after(after, event, present + width, columns, state) if after >= 0 else after
            if behind < 0:
                return behind
            images += 1
            if emit:
                error = _emit_update(at, after, event, columns, state)
        elif emit:
            error = _emit_single(at, event, columns, state)
        if error:
            return error
        at = behind
    return images


@compiled(I(I, I, I, I), **FAST)
def count_partial_images(events: int, count: int, columns: int, state: int) -> int:
    """As rows.count_images."""
    images = 0
    for e in range(count):
        event_images = _walk(events + e * _EVENT_BYTES, columns, state, 0)
        if event_images < 0:
            # no more images than bytes lie before the bad one: each before image has at least one
            event = events + e * _EVENT_BYTES
            return images + 2 * (word(event, L.EVENT_END) - word(event, L.EVENT_START))
        images += event_images
    return images


@compiled(I(I, I, I, I), **FAST)
def decode_partial_rows(events: int, count: int, columns: int, state: int) -> int:
    """As rows.decode_rows."""
    for e in range(count):
        set_word(state, L.ERROR_COLUMN, -1)
        outcome = _walk(events + e * _EVENT_BYTES, columns, state, 1)
        if outcome < 0:
            set_word(state, L.ERROR, outcome)
            set_word(state, L.ERROR_EVENT, e)
            return outcome
    return word(state, L.ROWS)
