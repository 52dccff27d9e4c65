"""Decimals into 16 bytes or text, and the digits of all values that become text.

In:  the address of a value, of its column's words (layout.py), the row; lengths are checked by the
     caller.
Out: the value in the arena at this row, or an error code. A group above its digits is an error, as
     on the server.

Format: mysql-server strings/decimal.cc (bin2decimal): groups of nine digits in four bytes, shorter
groups at both ends, big-endian, sign in the inverted top bit, negative numbers inverted throughout.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types

from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.columnar.kernel.memory import FAST, I, big_endian, load8, set_word, store8, store32, store64, word
from tidegate.compiled import compiled

VALUE: Final = 0
NULL: Final = 1
WRITE: Final = I(I, I, I)  # value, column, row
POWERS: Final = np.array([10**i for i in range(10)], np.int64)
# Number of digits in an incomplete group of nine -> bytes that hold them.
_DIGIT_BYTES: Final = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)


@compiled(I(I, I, I), **FAST)
def write_digits(to: int, value: int, count: int) -> int:
    for i in range(count - 1, -1, -1):
        store8(to + i, 48 + value % 10)
        value //= 10
    return to + count


@compiled(I(I, I, I), **FAST)
def text_end(column: int, row: int, to: int) -> int:
    used = to - word(column, L.BYTES)
    set_word(column, L.USED, used)
    store32(word(column, L.VALUES) + 4 * row + 4, used)
    return VALUE


@compiled(I(I, I, I, I), forceinline=True, **FAST)
def _group(at: int, width: int, flip: int, top: int) -> int:
    """One group of digits. flip: -1 for a negative number. top: 1 for the first group, whose sign
    bit is inverted.
    """
    value = big_endian(at, width)
    if top:
        value ^= 0x80 << (8 * (width - 1))
    return (value ^ flip) & ((np.int64(1) << (8 * width)) - 1)


@compiled(WRITE, forceinline=True, **FAST)
def small_decimal(at: int, column: int, row: int) -> int:
    """A decimal of at most 8 bytes and 18 digits: one load reads it."""
    size = word(column, L.WIDTH)
    flip = np.int64(0) if load8(at) & 0x80 else np.int64(-1)
    # the value's bytes at the top of 64 bits, sign bit cleared; what follows on the wire is shifted out
    raw = np.uint64(0)
    for i in range(size):
        raw = (raw << np.uint64(8)) | np.uint64(load8(at + i))
    raw = raw << np.uint64(8 * (8 - size))
    raw = raw ^ np.uint64(0x8000000000000000) ^ np.uint64(flip)
    value = np.int64(0)
    used = np.int64(0)
    lead = word(column, L.P1)
    wrong: Any = False
    if lead > 0:
        used = 8 * _DIGIT_BYTES[lead]
        value = np.int64(raw >> np.uint64(64 - used))
        wrong = value >= POWERS[lead]
    for _ in range(word(column, L.P2) + word(column, L.P3)):
        group = np.int64((raw << np.uint64(used)) >> np.uint64(32))
        wrong |= group >= 1000000000
        value = value * 1000000000 + group
        used += 32
    tail = word(column, L.P4)
    if tail > 0:
        bits = 8 * _DIGIT_BYTES[tail]
        group = np.int64((raw << np.uint64(used)) >> np.uint64(64 - bits))
        wrong |= group >= POWERS[tail]
        value = value * POWERS[tail] + group
    if wrong:
        return L.ERROR_VALUE
    if flip:
        value = -value
    to = word(column, L.VALUES) + 16 * row
    store64(to, value)
    store64(to + 8, value >> 63)
    return VALUE


@compiled(I(types.uint64, types.uint64, I, I, I), forceinline=True, **FAST)
def write_decimal(low: Any, high: Any, negative: int, column: int, row: int) -> int:
    """Write a decimal's digits, 128 bits in two halves, with its sign. negative: 0 for a positive
    number.
    """
    if negative:
        low = ~low + np.uint64(1)
        high = ~high + (np.uint64(1) if low == 0 else np.uint64(0))
    to = word(column, L.VALUES) + 16 * row
    store64(to, np.int64(low))
    store64(to + 8, np.int64(high))
    return VALUE


@compiled(WRITE, **FAST)
def decimal(at: int, column: int, row: int) -> int:
    """A decimal into 16 bytes, two's complement: its digits as one integer (value times 10 to the
    scale).
    """
    flip = np.int64(0) if load8(at) & 0x80 else np.int64(-1)
    lead, whole = word(column, L.P1), word(column, L.P2)
    groups = whole + word(column, L.P3)
    tail = word(column, L.P4)
    low, high = np.uint64(0), np.uint64(0)
    top = 1
    if lead > 0:
        width = _DIGIT_BYTES[lead]
        low = np.uint64(_group(at, width, flip, top))
        if low >= np.uint64(POWERS[lead]):
            return L.ERROR_VALUE
        at += width
        top = 0
    for step in range(groups + (1 if tail > 0 else 0)):
        digits = tail if step == groups else np.int64(9)
        width = _DIGIT_BYTES[digits]
        value = np.uint64(_group(at, width, flip, top))
        at += width
        top = 0
        times = np.uint64(POWERS[digits])
        if value >= times:
            return L.ERROR_VALUE
        # (high, low) * times + value, by halves of 32 bits
        first = (low & np.uint64(0xFFFFFFFF)) * times + value
        second = (low >> np.uint64(32)) * times + (first >> np.uint64(32))
        low = (second << np.uint64(32)) | (first & np.uint64(0xFFFFFFFF))
        high = high * times + (second >> np.uint64(32))
    return write_decimal(low, high, flip, column, row)


@compiled(WRITE, **FAST)
def decimal_text(at: int, column: int, row: int) -> int:
    """As the server prints it: no leading zeros but one before the point, and all digits of the
    scale.
    """
    if word(column, L.USED) + 96 > word(column, L.BYTES_MAX):
        return L.ERROR_BATCH
    flip = np.int64(0) if load8(at) & 0x80 else np.int64(-1)
    lead, whole, groups, tail = word(column, L.P1), word(column, L.P2), word(column, L.P3), word(column, L.P4)
    to = word(column, L.BYTES) + word(column, L.USED)
    if flip:
        store8(to, 45)
        to += 1
    start = to
    top = 1
    for step in range(-1, whole + groups + 1):
        digits = np.int64(9)
        if step < 0:
            digits = lead
        elif step == whole + groups:
            digits = tail
        if step == whole:  # the whole part is done
            if to == start:
                store8(to, 48)
                to += 1
            if groups + tail > 0:
                store8(to, 46)
                to += 1
        if digits == 0:
            continue
        width = _DIGIT_BYTES[digits]
        value = _group(at, width, flip, top)
        if value >= POWERS[digits]:
            return L.ERROR_VALUE
        at += width
        top = 0
        if step < whole and to == start:  # zeros in front are left out
            digits = np.int64(0)
            while digits < 9 and value >= POWERS[digits]:
                digits += 1
        to = write_digits(to, value, digits)
    return text_end(column, row, to)
