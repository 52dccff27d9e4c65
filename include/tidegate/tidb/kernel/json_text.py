"""TiDB's binary JSON as TiDB's own text, of many values at once.

In:  addresses: of datums that are JSON, of room for six bytes per byte and some more per value.
Out: texts. The rest (dates, opaque values, numbers of more than 15 digits, bytes that contradict themselves) is done
     by json_binary.py, value by value.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidegate.columnar.kernel.memory import FAST, I, load8, load16, load32, load64, set_word, store8, store32, word
from tidegate.compiled import compiled
from tidegate.tidb.kernel.wire import behind_datum, run

UNDONE: Final = -1
# State: addresses of 32-bit offsets and of the datums between them; of the texts' offsets, of room for the texts; of
# uint8[rows], 1 for a value that isn't made here; of int64[DEPTH * FRAME_WORDS].
OFFSETS, DATA, ENDS, OUT, UNDONE_ROWS, STACK = range(6)
STATE_WORDS: Final = 6
_OBJECT, _ARRAY, _LITERAL, _INT64, _UINT64, _FLOAT64, _STRING = 0x01, 0x03, 0x04, 0x09, 0x0A, 0x0B, 0x0C
_KEY_BYTES, _VALUE_BYTES, _HEAD_BYTES = 6, 5, 8
# A frame per container that is open, in words of a stack.
_KIND, _BASE, _COUNT, _NEXT = range(4)
FRAME_WORDS: Final = 4
DEPTH: Final = 111
_QUOTE, _BACKSLASH, _COMMA, _SPACE, _COLON, _MINUS, _POINT, _ZERO, _U = 34, 92, 44, 32, 58, 45, 46, 48, 117
_LETTERS: Final = np.array([0] * 9 + [116, 110, 0, 0, 114], np.int64)  # \t \n \r
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8).astype(np.int64)
_WORDS: Final = np.frombuffer(b"null\0true\0false", np.uint8).astype(np.int64)
_POWERS: Final = np.array([float(10**n) for n in range(23)])  # each is exact
_DIGITS: Final = 1e15  # a number of fewer digits is the only one of so many that reads as its double


@intrinsic
def _double(typing_context: Any, bits: Any) -> Any:  # noqa: ARG001 - numba's signature
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(I), generate


@compiled(I(I, types.uint64), **FAST)
def _number(to: int, value: Any) -> int:
    """The digits of a number without a sign."""
    ten, left, size = np.uint64(10), value, 1
    while left >= ten:
        left //= ten
        size += 1
    for i in range(size - 1, -1, -1):
        store8(to + i, np.int64(value % ten) + _ZERO)
        value //= ten
    return to + size


@compiled(I(I, I), **FAST)
def _float(to: int, bits: int) -> int:
    """The fewest digits that read as this double, if there are at most 15 and no exponent is
    needed.

    A whole number below 2^53 divided by an exact power of ten is the nearest double to the decimal fraction: so the
    text has the smallest number of digits after the point that gives the value.
    """
    value = _double(bits)
    if bits < 0:
        store8(to, _MINUS)
        to += 1
        value = -value
    if not 1e-6 <= value < _DIGITS:
        return UNDONE
    for digits in range(22):
        shifted = np.rint(value * _POWERS[digits])
        if shifted >= _DIGITS:
            return UNDONE
        if shifted / _POWERS[digits] == value:
            whole = np.uint64(shifted) // np.uint64(_POWERS[digits]) if digits < 16 else np.uint64(0)
            to = _number(to, whole)
            if digits:
                rest = np.uint64(shifted) - (whole * np.uint64(_POWERS[digits]) if digits < 16 else np.uint64(0))
                store8(to, _POINT)
                for i in range(digits, 0, -1):
                    store8(to + i, np.int64(rest % np.uint64(10)) + _ZERO)
                    rest //= np.uint64(10)
                to += 1 + digits
            return to
    return UNDONE


@compiled(I(I, I, I), **FAST)
def _quoted(at: int, size: int, to: int) -> int:
    """A string as encoding/json of Go escapes it."""
    store8(to, _QUOTE)
    to += 1
    end = at + size
    while at < end:
        byte = load8(at)
        if byte >= 32 and byte not in (_QUOTE, _BACKSLASH, 0xE2):
            store8(to, byte)
            to += 1
        elif byte == 0xE2 and at + 2 < end and load8(at + 1) == 0x80 and load8(at + 2) in (0xA8, 0xA9):
            store8(to, _BACKSLASH)  # U+2028 and U+2029
            store32(to + 1, 0x32303275)
            store8(to + 5, 56 + load8(at + 2) - 0xA8)
            to += 6
            at += 2
        elif byte == 0xE2:
            store8(to, byte)
            to += 1
        else:
            store8(to, _BACKSLASH)
            letter = byte if byte >= 32 else (_LETTERS[byte] if byte < 14 else 0)
            if letter:
                store8(to + 1, letter)
                to += 2
            else:
                store32(to + 1, 0x30303075)
                store8(to + 4, _HEX[byte >> 4])
                store8(to + 5, _HEX[byte & 15])
                to += 6
        at += 1
    store8(to, _QUOTE)
    return to + 1


@compiled(I(I, I), **FAST)
def _literal(code: int, to: int) -> int:
    if code > 2:
        return UNDONE
    for i in range(5 if code == 2 else 4):
        store8(to + i, _WORDS[5 * code + i])
    return to + (5 if code == 2 else 4)


@compiled(types.UniTuple(I, 2)(I, I, I, I, I), **FAST)
def _scalar(kind: int, at: int, end: int, to: int, unread: int) -> tuple[int, int]:
    """A value that holds no others: the address after its text; and how many bytes it has."""
    if kind == _STRING:
        size, start = run(at, end)
        if start < 0 or start + size - at > unread:  # a text that was read before has no room
            return UNDONE, 0
        return _quoted(start, size, to), start + size - at
    if kind == _LITERAL:
        return (_literal(load8(at), to), 1) if at < end else (UNDONE, 0)
    if kind not in (_INT64, _UINT64, _FLOAT64) or at + 8 > end:
        return UNDONE, 0
    value = load64(at)
    if kind == _FLOAT64:
        return _float(to, value), 8
    if kind == _INT64 and value < 0:
        store8(to, _MINUS)
        return _number(to + 1, np.uint64(0) - np.uint64(value)), 8
    return _number(to, np.uint64(value)), 8


@compiled(types.UniTuple(I, 3)(I, I, I, I), **FAST)
def _member(frame: int, end: int, to: int, unread: int) -> tuple[int, int, int]:
    """The next value of a container, after its key: where its entry stands; the address after; bytes read."""
    base, count, number = word(frame, _BASE), word(frame, _COUNT), word(frame, _NEXT)
    set_word(frame, _NEXT, number + 1)
    entry, read = base + _HEAD_BYTES + _VALUE_BYTES * number, 0
    if number:
        store8(to, _COMMA)
        store8(to + 1, _SPACE)
        to += 2
    if word(frame, _KIND) == _OBJECT:
        entry += _KEY_BYTES * count
        key = base + _HEAD_BYTES + _KEY_BYTES * number
        at, read = base + load32(key), load16(key + 4)
        if at + read > end or read > unread:
            return 0, UNDONE, 0
        to = _quoted(at, read, to)
        store8(to, _COLON)
        store8(to + 1, _SPACE)
        to += 2
    return entry, to, read


@compiled(I(I, I, I, I), **FAST)
def _text(at: int, end: int, to: int, stack: int) -> int:
    """One value, whose type is at `at`: the address after its text. No byte is read for two values."""
    unread, depth = end - at, 0
    kind = load8(at)
    at += 1
    while True:
        if kind in (_OBJECT, _ARRAY):
            if depth == DEPTH or at + _HEAD_BYTES > end:
                return UNDONE
            count = load32(at)
            entries = count * (_VALUE_BYTES + (_KEY_BYTES if kind == _OBJECT else 0))
            unread -= _HEAD_BYTES + entries
            if at + _HEAD_BYTES + entries > end:
                return UNDONE
            frame = stack + 8 * FRAME_WORDS * depth
            set_word(frame, _KIND, kind)
            set_word(frame, _BASE, at)
            set_word(frame, _COUNT, count)
            set_word(frame, _NEXT, 0)
            store8(to, 123 if kind == _OBJECT else 91)
            to += 1
            depth += 1
        else:
            to, size = _scalar(kind, at, end, to, unread)
            unread -= size
        while to >= 0 and depth:
            frame = stack + 8 * FRAME_WORDS * (depth - 1)
            if word(frame, _NEXT) < word(frame, _COUNT):
                break
            store8(to, 125 if word(frame, _KIND) == _OBJECT else 93)
            to += 1
            depth -= 1
        if to < 0 or unread < 0:
            return UNDONE
        if not depth:
            return to
        frame = stack + 8 * FRAME_WORDS * (depth - 1)
        entry, to, read = _member(frame, end, to, unread)
        unread -= read
        if to < 0 or unread < 0:
            return UNDONE
        kind = load8(entry)
        at = entry + 1 if kind == _LITERAL else word(frame, _BASE) + load32(entry + 1)
        if kind == _LITERAL:
            unread += 1  # its entry was counted


@compiled(I(I, I), **FAST)
def json_texts(state: int, rows: int) -> int:
    """Datums (none has no bytes) as texts; gives the bytes written. One that isn't made here is noted, and has none."""
    offsets, data, ends = word(state, OFFSETS), word(state, DATA), word(state, ENDS)
    out, undone, stack = word(state, OUT), word(state, UNDONE_ROWS), word(state, STACK)
    to = out
    store32(ends, 0)
    for row in range(rows):
        at, end = data + load32(offsets + 4 * row), data + load32(offsets + 4 * row + 4)
        store8(undone + row, 0)
        if at < end:
            behind = _text(at + 1, end, to, stack) if behind_datum(at, end) == end else UNDONE
            if behind < 0:
                store8(undone + row, 1)
            else:
                to = behind
        store32(ends + 4 * row + 4, to - out)
    return to - out
