"""Rows of one table into Arrow buffers, in one pass.

In:  addresses: of records of rows, of a plan as data (columns), of the state (layout.py).
Out: state[ROWS] rows in the arena, in order; or an ERROR_*.

Applied, an update is the row after it; before that, when a key's bytes differ or the table has no key, a delete of the
row before it. As logged, each of its sides is a row. A cell that a row doesn't name is NULL here, and noted.
"""

from __future__ import annotations

from typing import Final

from tidegate.columnar.decoded import IMAGE_AFTER, IMAGE_BEFORE, IMAGE_DELETE, IMAGE_INSERT
from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.columnar.kernel.cells import close_cell
from tidegate.columnar.kernel.decimals import NULL
from tidegate.columnar.kernel.memory import FAST, I, equal_bytes, load8, set_word, store8, store64, word
from tidegate.compiled import compiled
from tidegate.tables import OP_DELETE, OP_UPSERT
from tidegate.tidb.kernel import layout as T  # noqa: N812
from tidegate.tidb.kernel.cells import write_datum
from tidegate.tidb.kernel.wire import SIGNED, UNSIGNED, behind_datum, varint, zigzag

_COLUMN_BYTES: Final = 8 * L.COLUMN_WORDS
_ROW_BYTES: Final = 8 * T.ROW_WORDS
_UPDATE, _DELETE = 1, 4
_UPSERT, _GONE = OP_UPSERT, OP_DELETE
_AS_INSERT, _AS_BEFORE, _AS_AFTER, _AS_DELETE = IMAGE_INSERT, IMAGE_BEFORE, IMAGE_AFTER, IMAGE_DELETE


@compiled(I(I, I, I), **FAST)
def _places(at: int, end: int, places: int) -> int:
    """Where the datums of a row begin, and after the last one its end; how many there are."""
    count = 0
    while at < end:
        if count + 1 >= T.PLACES_MAX:
            return L.ERROR_ROOM
        set_word(places, count, at)
        count += 1
        at = behind_datum(at, end)
        if at < 0:
            return L.ERROR_CUT
    set_word(places, count, at)
    return count


@compiled(I(I, I, I, I), forceinline=True, **FAST)
def _mark(first: int, upto: int, marks: int, state: int) -> int:
    """(column id, value) ... from the datum `first` on, or one NULL: where each column's lies, by number in `places`.

    Rows name their columns in order, so the next one is looked for first.
    """
    places, columns = word(state, T.PLACES), word(state, T.COLUMNS)
    ids, order = word(state, T.IDS), word(state, T.ORDER)
    if upto - first == 1 and load8(word(places, first)) == 0:
        return 0
    if (upto - first) & 1:
        return L.ERROR_VALUE
    next_ = 0
    for number in range(first, upto, 2):
        at = word(places, number)
        id_, _ = varint(at + 1, word(places, number + 1))
        if load8(at) == SIGNED:
            id_ = zigzag(id_)
        elif load8(at) != UNSIGNED:
            return L.ERROR_VALUE
        if next_ >= columns or word(ids, next_) != id_:
            low, high = 0, columns
            while low < high:
                middle = (low + high) >> 1
                if word(ids, middle) < id_:
                    low = middle + 1
                else:
                    high = middle
            next_ = low
        if next_ < columns and word(ids, next_) == id_:
            set_word(marks, word(order, next_), number + 1)
            next_ += 1
    return 0


@compiled(I(I, I), forceinline=True, **FAST)
def _clear(marks: int, columns: int) -> int:
    for column in range(columns):
        set_word(marks, column, -1)
    return 0


@compiled(I(I, I), forceinline=True, **FAST)
def _same_ids(half: int, state: int) -> int:
    """Whether both sides of an update name the same columns in the same order, as TiDB writes them."""
    places = word(state, T.PLACES)
    for number in range(0, half, 2):
        left, other = word(places, number), word(places, half + number)
        size = word(places, number + 1) - left
        if word(places, half + number + 1) - other != size or not equal_bytes(left, other, size):
            return 0
    return 1


@compiled(I(I, I), forceinline=True, **FAST)
def _key_differs(columns: int, state: int) -> int:
    """Whether a key column has other bytes after an update than before it."""
    places, count = word(state, T.PLACES), word(state, T.COLUMNS)
    before = word(state, T.MARKS)
    after = before + 8 * count
    for number in range(count):
        if word(columns + number * _COLUMN_BYTES, L.KEY):
            left, other = word(before, number), word(after, number)
            if left < 0 or other < 0:
                if left != other:
                    return 1
                continue
            at, to = word(places, left), word(places, other)
            size = word(places, left + 1) - at
            if word(places, other + 1) - to != size or not equal_bytes(at, to, size):
                return 1
    return 0


@compiled(I(I, I, I), **FAST)
def _emit(marks: int, columns: int, state: int) -> int:
    """A side of a row as row state[ROWS]; 0, or an ERROR_*."""
    places, count, row = word(state, T.PLACES), word(state, T.COLUMNS), word(state, T.ROWS)
    column = columns
    for number in range(count):
        place, written = word(marks, number), NULL
        of_handle = 0
        if place < -1:
            place, of_handle = -2 - place, 1
        absent = word(column, T.ABSENT)
        if absent:
            store8(absent + row, 1 if place < 0 else 0)
        if place >= 0:
            at = word(places, place)
            if load8(at):
                written = write_datum(at, word(places, place + 1), column, row, of_handle)
                if written < 0:
                    return written
                if written == NULL:
                    set_word(column, L.NULL_DATES, word(column, L.NULL_DATES) + 1)
        close_cell(written, column, row)
        column += _COLUMN_BYTES
    return 0


@compiled(I(I, I, I, I), **FAST)
def _close(record: int, op: int, ordinal: int, state: int) -> int:
    row = word(state, T.ROWS)
    store8(word(state, T.OPS) + row, op)
    store64(word(state, T.COMMITS) + 8 * row, word(record, T.ROW_COMMIT_TS))
    store64(word(state, T.ORDINALS) + 8 * row, ordinal)
    store8(word(state, T.TWINS) + row, 0)
    return set_word(state, T.ROWS, row + 1)


@compiled(I(I, I, I), **FAST)
def _update(record: int, columns: int, state: int) -> int:
    """Both sides are marked; 0, or an ERROR_*."""
    before, logged = word(state, T.MARKS), word(state, T.MODE) == L.MODE_IMAGES
    after = before + 8 * word(state, T.COLUMNS)
    ordinal = word(record, T.ROW_ORDINAL)
    keyed = word(state, T.KEYED)
    if logged or not keyed or _key_differs(columns, state):
        wrong = _emit(before, columns, state)
        if wrong < 0:
            return wrong
        row = word(state, T.ROWS)
        _close(record, _AS_BEFORE if logged else _GONE, ordinal, state)
        if keyed and not logged:
            store8(word(state, T.TWINS) + row, 1)
            set_word(state, T.TWIN_COUNT, word(state, T.TWIN_COUNT) + 1)
    wrong = _emit(after, columns, state)
    if wrong < 0:
        return wrong
    _close(record, _AS_AFTER if logged else _UPSERT, ordinal + 1, state)
    return 0


@compiled(I(I, I, I), **FAST)
def _insert(count: int, columns: int, state: int) -> int:
    """The handle's datums come first; they stand for columns that the row doesn't name."""
    marks, handles = word(state, T.MARKS), word(state, T.HANDLES)
    if count < handles:
        return L.ERROR_VALUE
    wrong = _mark(handles, count, marks, state)
    if wrong < 0:
        return wrong
    column = columns
    for number in range(word(state, T.COLUMNS)):
        handle = word(column, T.HANDLE)
        if handle >= 0 and word(marks, number) < 0:
            set_word(marks, number, -2 - handle)
        column += _COLUMN_BYTES
    return 0


@compiled(I(I, I, I, I), **FAST)
def _row(record: int, columns: int, state: int, data: int) -> int:
    kind = word(record, T.ROW_KIND)
    count = _places(data + word(record, T.ROW_START), data + word(record, T.ROW_END), word(state, T.PLACES))
    if count < 0:
        return count
    marks, width = word(state, T.MARKS), word(state, T.COLUMNS)
    logged = word(state, T.MODE) == L.MODE_IMAGES
    _clear(marks, 2 * width if kind == _UPDATE else width)
    if kind == _UPDATE:
        half = count >> 1
        if count & 3 or not _same_ids(half, state):
            return L.ERROR_VALUE
        wrong = _mark(0, half, marks, state)
        if wrong == 0:
            wrong = _mark(half, count, marks + 8 * width, state)
        return _update(record, columns, state) if wrong == 0 else wrong
    wrong = _mark(0, count, marks, state) if kind == _DELETE else _insert(count, columns, state)
    if wrong == 0:
        wrong = _emit(marks, columns, state)
    if wrong < 0:
        return wrong
    ordinal = word(record, T.ROW_ORDINAL)
    if kind == _DELETE:
        _close(record, _AS_DELETE if logged else _GONE, ordinal, state)
    else:
        _close(record, _AS_INSERT if logged else _UPSERT, ordinal + 1, state)
    return 0


@compiled(I(I, I, I, I), **FAST)
def decode_rows(records: int, count: int, columns: int, state: int) -> int:
    """state[ROWS], or an ERROR_*. The state has room for two rows per record."""
    data = word(state, T.DATA)
    for number in range(count):
        wrong = _row(records + number * _ROW_BYTES, columns, state, data)
        if wrong < 0:
            return wrong
    return word(state, T.ROWS)
