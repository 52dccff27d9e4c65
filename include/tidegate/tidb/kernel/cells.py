"""One datum into its column's Arrow buffers.

In:  the address of a datum whose end is known, the address of its column's words, the row; whether it is of the handle.
Out: VALUE, or NULL for an impossible date, or an ERROR_*: then the slow decoder names the fault, or finds none.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.columnar.kernel.cells import days_of, write_bytes
from tidegate.columnar.kernel.decimals import NULL, POWERS, VALUE, text_end, write_decimal, write_digits
from tidegate.columnar.kernel.memory import (
    FAST,
    I,
    big_endian,
    copy_bytes,
    load8,
    store8,
    store16,
    store32,
    store64,
    word,
)
from tidegate.compiled import compiled
from tidegate.limits.formats import DECIMAL_DIGITS_MAX
from tidegate.tidb.kernel import layout as T  # noqa: N812
from tidegate.tidb.kernel import wire as W  # noqa: N812

_NO_NUMBER: Final = -1
_EARLIEST: Final = -1_000_000
_YEAR_MAX: Final = 9999
_TIME_BYTES: Final = 24
_DIGIT_BYTES: Final = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
_MINUS, _POINT, _COLON = 45, 46, 58


@compiled(W.PAIR(I, I), forceinline=True, **FAST)
def _number(at: int, end: int) -> tuple[int, int]:
    """64 bits, and 0 when they have a sign, 1 when they have none, -1 when the datum is no number."""
    flag = load8(at)
    if flag == W.SIGNED:
        return W.zigzag(W.varint(at + 1, end)[0]), 0
    if flag == W.UNSIGNED:
        return W.varint(at + 1, end)[0], 1
    if flag in (W.INT, W.DURATION):
        return W.big64(at + 1) ^ W.SIGN, 0
    if flag == W.UINT:
        return W.big64(at + 1), 1
    return 0, _NO_NUMBER


@compiled(I(I, I, I), forceinline=True, **FAST)
def _store_integer(value: int, column: int, row: int) -> int:
    kind, values = word(column, L.KIND), word(column, L.VALUES)
    if kind == L.CELL_INT8:
        store8(values + row, value)
    elif kind in (L.CELL_UINT8, L.CELL_INT16, L.CELL_YEAR):
        store16(values + 2 * row, value)
    elif kind in (L.CELL_UINT16, L.CELL_INT24, L.CELL_UINT24, L.CELL_COPY32):
        store32(values + 4 * row, value)
    else:  # CELL_UINT32, CELL_COPY64
        store64(values + 8 * row, value)
    return VALUE


@compiled(I(I, I, I), **FAST)
def _moment(packed: int, column: int, row: int) -> int:
    """((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second, then 24 bits of microseconds."""
    whole, micros = packed >> 24, packed & 0xFFFFFF
    date, clock = whole >> 17, whole & 0x1FFFF
    year_month = date >> 5
    if year_month > _YEAR_MAX * 13 + 12:
        return L.ERROR_VALUE
    days = days_of(year_month // 13, year_month % 13, date & 31)
    if days < _EARLIEST:
        return L.ERROR_DATE if word(column, L.DATES) else NULL
    if word(column, T.READ_AS) == T.READ_DATE:
        store32(word(column, L.VALUES) + 4 * row, days)
        return VALUE
    hours, minutes, seconds = clock >> 12, clock >> 6 & 63, clock & 63
    if hours > 23 or minutes > 59 or seconds > 59 or micros > 999999:
        return L.ERROR_VALUE
    clock = hours * 3600 + minutes * 60 + seconds
    store64(word(column, L.VALUES) + 8 * row, (days * 86400 + clock) * 1000000 + micros)
    return VALUE


@compiled(I(I, I, I), **FAST)
def _time(nanoseconds: int, column: int, row: int) -> int:
    """[-]HHH:MM:SS[.ffffff], as a TIME is shown."""
    if word(column, L.USED) + _TIME_BYTES > word(column, L.BYTES_MAX):
        return L.ERROR_BATCH
    to = word(column, L.BYTES) + word(column, L.USED)
    seconds, rest = abs(nanoseconds) // 1000000000, abs(nanoseconds) % 1000000000
    hours = seconds // 3600
    if hours < 0 or hours > 999:
        return L.ERROR_VALUE
    if nanoseconds < 0:
        store8(to, _MINUS)
        to += 1
    to = write_digits(to, hours, 3 if hours > 99 else 2)
    store8(to, _COLON)
    to = write_digits(to + 1, seconds // 60 % 60, 2)
    store8(to, _COLON)
    to = write_digits(to + 1, seconds % 60, 2)
    digits = word(column, L.P3)
    if digits > 0:
        store8(to, _POINT)
        to = write_digits(to + 1, rest // POWERS[9 - digits], digits)
    return text_end(column, row, to)


@compiled(I(I, I, I), **FAST)
def _bits(value: int, column: int, row: int) -> int:
    """Big-endian."""
    size = word(column, L.WIDTH)
    used = word(column, L.USED)
    if size < 8 and value >> (8 * size):
        return L.ERROR_VALUE
    if used + size > word(column, L.BYTES_MAX):
        return L.ERROR_BATCH
    to = word(column, L.BYTES) + used
    for i in range(size):
        store8(to + i, value >> (8 * (size - 1 - i)))
    return text_end(column, row, to + size)


@compiled(I(I, I, I, I, I), **FAST)
def _of_number(value: int, no_sign: int, column: int, row: int, of_handle: int) -> int:
    """The value of a number, by its column."""
    read_as = word(column, T.READ_AS)
    large = no_sign and value < 0  # 2^63 and more
    if read_as == T.READ_UINT64:
        if value < 0 and not large and not of_handle:  # the handle of an unsigned key is written as a signed number
            return L.ERROR_VALUE
        store64(word(column, L.VALUES) + 16 * row, value)
        store64(word(column, L.VALUES) + 16 * row + 8, 0)
        return VALUE
    if read_as == T.READ_BITS and (no_sign or value >= 0):
        return _bits(value, column, row)
    if read_as == T.READ_SET:
        if value & ~word(column, L.P1):
            return L.ERROR_MEMBER
        store64(word(column, L.VALUES) + 8 * row, value)
        return VALUE
    if large:
        return L.ERROR_VALUE
    if read_as == T.READ_INT:
        if value < word(column, L.P1) or value > word(column, L.P2):
            return L.ERROR_VALUE
        return _store_integer(value, column, row)
    if read_as == T.READ_TIME:
        return _time(value, column, row)
    if value < 0:
        return L.ERROR_VALUE
    if read_as in (T.READ_DATE, T.READ_MOMENT):
        return _moment(value, column, row)
    if read_as == T.READ_ENUM:
        if value > word(column, L.P1):
            return L.ERROR_MEMBER
        store32(word(column, L.VALUES) + 4 * row, value)
        return VALUE
    if read_as == T.READ_BOOL:
        store8(word(column, L.VALUES) + row, 1 if value else 0)
        return VALUE
    return L.ERROR_VALUE


@compiled(I(I, I, I), **FAST)
def _decimal(at: int, column: int, row: int) -> int:
    """Precision, digits after the point, MySQL's binary form; into 16 bytes with the column's digits after it."""
    precision, scale = load8(at + 1), load8(at + 2)
    whole, more = precision - scale, word(column, L.P1) - scale
    if more < 0 or whole + scale + more > DECIMAL_DIGITS_MAX:
        return L.ERROR_VALUE
    at += 3
    negative = 0 if load8(at) & 0x80 else 1
    low, high = np.uint64(0), np.uint64(0)
    first = 0x80
    lead, tail, groups = whole % 9, scale % 9, whole // 9 + scale // 9
    step, steps = (0 if lead else 1), 1 + groups + (1 if tail else 0)
    zeros = more
    while step < steps or zeros:
        digits = np.int64(9)
        value = np.int64(0)
        if step < steps:
            if step == 0:
                digits = lead
            elif step > groups:
                digits = tail
            width = _DIGIT_BYTES[digits]
            value = big_endian(at, width) ^ (first << (8 * (width - 1)))
            first = 0
            if negative:
                value = ~value & ((np.int64(1) << (8 * width)) - 1)
            at += width
            step += 1
            if value >= POWERS[digits]:
                return L.ERROR_VALUE
        else:
            digits = min(zeros, np.int64(9))
            zeros -= digits
        times = np.uint64(POWERS[digits])
        part = (low & np.uint64(0xFFFFFFFF)) * times + np.uint64(value)
        second = (low >> np.uint64(32)) * times + (part >> np.uint64(32))
        low = (second << np.uint64(32)) | (part & np.uint64(0xFFFFFFFF))
        high = high * times + (second >> np.uint64(32))
    low_end, high_end = np.uint64(word(column, L.P2)), np.uint64(word(column, L.P3))
    if high > high_end or (high == high_end and low >= low_end):
        return L.ERROR_VALUE
    return write_decimal(low, high, negative, column, row)


@compiled(I(I, I, I, I), **FAST)
def _grouped(at: int, end: int, column: int, row: int) -> int:
    """A text as keys have it: groups of eight bytes, each followed by 255 minus the number of zeros that fill it."""
    used = word(column, L.USED)
    if used + (end - at) + word(column, L.P1) > word(column, L.BYTES_MAX):
        return L.ERROR_BATCH
    to = word(column, L.BYTES) + used
    start = to
    while at < end:
        kept = load8(at + 8) - 247
        copy_bytes(to, at, kept)
        to += kept
        at += 9
    while to - start < word(column, L.P1):
        store8(to, 0)
        to += 1
    return text_end(column, row, to)


@compiled(I(I, I, I, I), forceinline=True, **FAST)
def _bytes(at: int, end: int, column: int, row: int) -> int:
    flag = load8(at)
    if flag == W.COMPACT:
        start = W.varint(at + 1, end)[1]
        return write_bytes(start, end - start, column, row)
    return _grouped(at + 1, end, column, row) if flag == W.GROUPED else L.ERROR_VALUE


@compiled(I(I, I, I, I, I), forceinline=True, **FAST)
def write_datum(at: int, end: int, column: int, row: int, of_handle: int) -> int:
    """A datum that isn't NULL."""
    read_as = word(column, T.READ_AS)
    if read_as == T.READ_BYTES:
        return _bytes(at, end, column, row)
    if read_as == T.READ_RAW:
        return write_bytes(at, end - at, column, row)
    if read_as in (T.READ_FLOAT, T.READ_DOUBLE):
        if load8(at) != W.FLOAT:
            return L.ERROR_VALUE
        bits = W.big64(at + 1)
        bits = bits ^ W.SIGN if bits < 0 else ~bits
        if read_as == T.READ_DOUBLE:
            store64(word(column, L.VALUES) + 8 * row, bits)
        else:
            store32(word(column, L.VALUES) + 4 * row, W.float32_of(bits))
        return VALUE
    if read_as == T.READ_DECIMAL:
        return _decimal(at, column, row) if load8(at) == W.DECIMAL else L.ERROR_VALUE
    value, no_sign = _number(at, end)
    return _of_number(value, no_sign, column, row, of_handle) if no_sign != _NO_NUMBER else L.ERROR_VALUE
