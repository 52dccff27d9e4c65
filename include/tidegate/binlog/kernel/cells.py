"""One value of a row image into its column's Arrow buffers.

In:  the offset of a value whose whole length is known to lie inside its event.
Out: the value in the arena at row `row`; or NULL for a date that no calendar has; or an error code.

Formats: MySQL source docs "Replication: Rows_event"; temporal types mysql-server mysys/my_time.cc
(my_datetime_packed_from_binary, my_time_packed_from_binary, my_timestamp_from_binary), decimals strings/decimal.cc
(bin2decimal: groups of nine digits, big-endian, sign in the inverted top bit, negative numbers inverted throughout).
"""

from __future__ import annotations

from typing import Any, Final

import numba
import numpy as np

from tidegate.binlog.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.binlog.kernel.memory import (
    BYTES_IN,
    BYTES_OUT,
    WORDS,
    I,
    big_endian,
    copy_bytes,
    little_endian,
    load8,
    load16,
    load32,
    load64,
    store8,
    store16,
    store32,
    store64,
)

VALUE: Final = 0
NULL: Final = 1
_BYTES_MAX: Final = (1 << 31) - 1  # 32-bit offsets

# Bytes that hold so many digits of an incomplete group of nine.
DIGIT_BYTES: Final = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
_POWERS: Final = np.array([10**i for i in range(10)], np.int64)
_MONTH_DAYS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)

_FAST: Final = {"cache": True, "nogil": True, "boundscheck": False, "error_model": "numpy"}
_WRITE: Final = I(BYTES_IN, I, WORDS, I, I, BYTES_OUT)


@numba.njit(I(I, I, I), **_FAST)
def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; a value below -1 million for no such date."""
    if year < 1 or month < 1 or month > 12 or day < 1:
        return -(1 << 40)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _MONTH_DAYS[month] + (1 if month == 2 and leap else 0):
        return -(1 << 40)
    # Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil
    y = year - 1 if month <= 2 else year
    era = y // 400
    of_era = y - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@numba.njit(_WRITE, forceinline=True, **_FAST)
def _bytes(data: Any, at: int, columns: Any, k: int, row: int, out: Any) -> int:
    prefix = columns[k + L.WIDTH]
    skip = columns[k + L.P2]
    count = little_endian(data, at, prefix) - skip
    if count < 0:
        return L.ERROR_CUT
    used = columns[k + L.USED]
    padded = max(count, columns[k + L.P1])
    if used + padded > columns[k + L.BYTES_MAX]:
        return L.ERROR_BATCH
    to = columns[k + L.BYTES] + used
    copy_bytes(out, to, data, at + prefix + skip, count)
    for i in range(count, padded):
        store8(out, to + i, 0)
    columns[k + L.USED] = used + padded
    store32(out, columns[k + L.VALUES] + 4 * row + 4, used + padded)
    return VALUE


@numba.njit(_WRITE, **_FAST)
def _integer(data: Any, at: int, columns: Any, k: int, row: int, out: Any) -> int:
    kind = columns[k + L.KIND]
    values = columns[k + L.VALUES]
    if kind == L.CELL_INT8:
        store8(out, values + row, load8(data, at))
    elif kind == L.CELL_UINT8:
        store16(out, values + 2 * row, load8(data, at))
    elif kind == L.CELL_INT16:
        store16(out, values + 2 * row, load16(data, at))
    elif kind == L.CELL_UINT16:
        store32(out, values + 4 * row, load16(data, at))
    elif kind == L.CELL_INT24:
        store32(out, values + 4 * row, (little_endian(data, at, 3) << 40) >> 40)
    elif kind == L.CELL_UINT24:
        store32(out, values + 4 * row, little_endian(data, at, 3))
    elif kind == L.CELL_UINT32:
        store64(out, values + 8 * row, load32(data, at))
    elif kind == L.CELL_UINT64:
        store64(out, values + 16 * row, load64(data, at))
        store64(out, values + 16 * row + 8, 0)
    else:  # CELL_YEAR: 0 or years since 1900
        year = load8(data, at)
        store16(out, values + 2 * row, year + 1900 if year > 0 else 0)
    return VALUE


@numba.njit(I(BYTES_IN, I, WORDS, I), forceinline=True, **_FAST)
def _fraction(data: Any, at: int, columns: Any, k: int) -> int:
    return big_endian(data, at, columns[k + L.P1]) * columns[k + L.P2]


@numba.njit(_WRITE, forceinline=True, **_FAST)
def _datetime(data: Any, at: int, columns: Any, k: int, row: int, out: Any) -> int:
    # 1 sign bit (set), 17 bits year * 13 + month, 5 day, 5 hour, 6 minute, 6 second; big-endian
    packed = big_endian(data, at, 5) - (1 << 39)
    date = packed >> 17
    if date != columns[k + L.P3]:  # rows often share their day: the last one's is kept
        year_month = date >> 5
        columns[k + L.P3] = date
        columns[k + L.P4] = days_of(year_month // 13, year_month % 13, date & 31)
    days = columns[k + L.P4]
    if days < -1000000:
        return NULL
    seconds = days * 86400 + ((packed >> 12) & 31) * 3600 + ((packed >> 6) & 63) * 60 + (packed & 63)
    store64(out, columns[k + L.VALUES] + 8 * row, seconds * 1000000 + _fraction(data, at + 5, columns, k))
    return VALUE


@numba.njit(_WRITE, **_FAST)
def _temporal(data: Any, at: int, columns: Any, k: int, row: int, out: Any) -> int:
    kind = columns[k + L.KIND]
    values = columns[k + L.VALUES]
    if kind == L.CELL_DATE:
        packed = little_endian(data, at, 3)
        days = days_of(packed >> 9, (packed >> 5) & 15, packed & 31)
        if days < -1000000:
            return NULL
        store32(out, values + 4 * row, days)
        return VALUE
    if kind == L.CELL_TIMESTAMP:
        moment = big_endian(data, at, 4) * 1000000 + _fraction(data, at + 4, columns, k)
    elif kind == L.CELL_OLD_TIMESTAMP:
        moment = load32(data, at) * 1000000
    else:  # CELL_OLD_DATETIME
        number = load64(data, at)
        date = number // 1000000
        days = days_of(date // 10000, date // 100 % 100, date % 100)
        if number < 0 or days < -1000000:
            return NULL
        clock = number % 1000000
        seconds = days * 86400 + clock // 10000 * 3600 + clock // 100 % 100 * 60 + clock % 100
        store64(out, values + 8 * row, seconds * 1000000)
        return VALUE
    if moment == 0:  # 0000-00-00 00:00:00; 1970-01-01 00:00:00 can't be stored
        return NULL
    store64(out, values + 8 * row, moment)
    return VALUE


@numba.njit(I(BYTES_OUT, I, I, I), **_FAST)
def _digits(out: Any, at: int, value: int, count: int) -> int:
    for i in range(count - 1, -1, -1):
        store8(out, at + i, 48 + value % 10)
        value //= 10
    return at + count


@numba.njit(I(WORDS, I, I, BYTES_OUT, I), **_FAST)
def _text_end(columns: Any, k: int, row: int, out: Any, at: int) -> int:
    used = at - columns[k + L.BYTES]
    columns[k + L.USED] = used
    store32(out, columns[k + L.VALUES] + 4 * row + 4, used)
    return VALUE


@numba.njit(_WRITE, **_FAST)
def _time(data: Any, at: int, columns: Any, k: int, row: int, out: Any) -> int:
    if columns[k + L.USED] + 24 > columns[k + L.BYTES_MAX]:
        return L.ERROR_BATCH
    to = columns[k + L.BYTES] + columns[k + L.USED]
    micros = np.int64(0)
    if columns[k + L.KIND] == L.CELL_OLD_TIME:
        number = (little_endian(data, at, 3) << 40) >> 40
        negative = number < 0
        number = abs(number)
        hours, minutes, seconds = number // 10000, number // 100 % 100, number % 100
    else:
        # 1 sign bit, 1 unused, 10 bits hour, 6 minute, 6 second, fraction; a negative value is the whole's complement
        width = columns[k + L.P1]
        packed = big_endian(data, at, 3 + width) - (np.int64(1) << (23 + 8 * width))
        negative = packed < 0
        packed = abs(packed)
        micros = (packed & ((np.int64(1) << (8 * width)) - 1)) * columns[k + L.P2]
        clock = packed >> (8 * width)
        hours, minutes, seconds = (clock >> 12) & 1023, (clock >> 6) & 63, clock & 63
    if negative:
        store8(out, to, 45)
        to += 1
    to = _digits(out, to, hours, 3 if hours > 99 else 2)
    store8(out, to, 58)
    to = _digits(out, to + 1, minutes, 2)
    store8(out, to, 58)
    to = _digits(out, to + 1, seconds, 2)
    decimals = columns[k + L.P3]
    if decimals > 0:
        store8(out, to, 46)
        to = _digits(out, to + 1, micros // _POWERS[6 - decimals], decimals)
    return _text_end(columns, k, row, out, to)


@numba.njit(I(BYTES_IN, I, I, I, I), forceinline=True, **_FAST)
def _group(data: Any, at: int, width: int, flip: int, top: int) -> int:
    """One group of digits: flip is -1 for a negative number; top is 1 for the first, whose sign bit is inverted."""
    value = big_endian(data, at, width)
    if top:
        value ^= 0x80 << (8 * (width - 1))
    return (value ^ flip) & ((np.int64(1) << (8 * width)) - 1)


@numba.njit(_WRITE, **_FAST)
def _decimal(data: Any, at: int, columns: Any, k: int, row: int, out: Any) -> int:
    """Into 16 bytes, two's complement: digits times 10 to the scale."""
    flip = np.int64(0) if load8(data, at) & 0x80 else np.int64(-1)
    lead, whole = columns[k + L.P1], columns[k + L.P2]
    groups = whole + columns[k + L.P3]
    tail = columns[k + L.P4]
    steps = groups + (1 if tail > 0 else 0)
    low, high = np.uint64(0), np.uint64(0)
    top = 1
    if lead > 0:
        width = DIGIT_BYTES[lead]
        low = np.uint64(_group(data, at, width, flip, top))
        at += width
        top = 0
    for step in range(steps):
        digits = tail if step == groups else np.int64(9)
        width = DIGIT_BYTES[digits]
        value = np.uint64(_group(data, at, width, flip, top))
        at += width
        top = 0
        times = np.uint64(_POWERS[digits])
        # (high, low) * times + value, by halves of 32 bits
        first = (low & np.uint64(0xFFFFFFFF)) * times + value
        second = (low >> np.uint64(32)) * times + (first >> np.uint64(32))
        low = (second << np.uint64(32)) | (first & np.uint64(0xFFFFFFFF))
        high = high * times + (second >> np.uint64(32))
    if flip:
        low = ~low + np.uint64(1)
        high = ~high + (np.uint64(1) if low == 0 else np.uint64(0))
    to = columns[k + L.VALUES] + 16 * row
    store64(out, to, np.int64(low))
    store64(out, to + 8, np.int64(high))
    return VALUE


@numba.njit(_WRITE, **_FAST)
def _decimal_text(data: Any, at: int, columns: Any, k: int, row: int, out: Any) -> int:
    """As the server prints it: no zeros in front but one before the point, all digits of the scale."""
    if columns[k + L.USED] + 96 > columns[k + L.BYTES_MAX]:
        return L.ERROR_BATCH
    flip = np.int64(0) if load8(data, at) & 0x80 else np.int64(-1)
    lead, whole, groups = columns[k + L.P1], columns[k + L.P2], columns[k + L.P3]
    to = columns[k + L.BYTES] + columns[k + L.USED]
    if flip:
        store8(out, to, 45)
        to += 1
    start = to
    top = 1
    for step in range(-1, whole + groups + 1):
        digits = np.int64(9)
        if step < 0:
            digits = lead
        elif step == whole + groups:
            digits = columns[k + L.P4]
        if step == whole:  # the whole part is done
            if to == start:
                store8(out, to, 48)
                to += 1
            if groups + columns[k + L.P4] > 0:
                store8(out, to, 46)
                to += 1
        if digits == 0:
            continue
        width = DIGIT_BYTES[digits]
        value = _group(data, at, width, flip, top)
        at += width
        top = 0
        if step < whole and to == start:  # zeros in front are left out
            digits = np.int64(0)
            while digits < 9 and value >= _POWERS[digits]:
                digits += 1
        to = _digits(out, to, value, digits)
    return _text_end(columns, k, row, out, to)


@numba.njit(_WRITE, **_FAST)
def _other(data: Any, at: int, columns: Any, k: int, row: int, out: Any) -> int:
    kind = columns[k + L.KIND]
    width = columns[k + L.WIDTH]
    values = columns[k + L.VALUES]
    if kind == L.CELL_BIT:
        store8(out, values + row, load8(data, at) & 1)
    elif kind == L.CELL_BITS:
        used = columns[k + L.USED]
        if used + width > columns[k + L.BYTES_MAX]:
            return L.ERROR_BATCH
        copy_bytes(out, columns[k + L.BYTES] + used, data, at, width)
        columns[k + L.USED] = used + width
        store32(out, values + 4 * row + 4, used + width)
    elif kind == L.CELL_ENUM:
        member = little_endian(data, at, width)
        if member > columns[k + L.P1]:
            return L.ERROR_MEMBER
        store32(out, values + 4 * row, member)
    else:  # CELL_SET
        bits = little_endian(data, at, width)
        if bits & ~columns[k + L.P1]:
            return L.ERROR_MEMBER
        store64(out, values + 8 * row, bits)
    return VALUE


@numba.njit(_WRITE, forceinline=True, **_FAST)
def write_cell(data: Any, at: int, columns: Any, k: int, row: int, out: Any) -> int:
    """VALUE, NULL (a date that doesn't exist) or an ERROR_*. k: index of the column's first word in columns."""
    kind = columns[k + L.KIND]
    if kind == L.CELL_BYTES:
        return _bytes(data, at, columns, k, row, out)
    if kind == L.CELL_COPY32:
        store32(out, columns[k + L.VALUES] + 4 * row, load32(data, at))
        return VALUE
    if kind == L.CELL_COPY64:
        store64(out, columns[k + L.VALUES] + 8 * row, load64(data, at))
        return VALUE
    if kind <= L.CELL_YEAR:
        return _integer(data, at, columns, k, row, out)
    if kind == L.CELL_DATETIME:
        return _datetime(data, at, columns, k, row, out)
    if kind == L.CELL_DECIMAL:
        return _decimal(data, at, columns, k, row, out)
    if kind in (L.CELL_TIME, L.CELL_OLD_TIME):
        return _time(data, at, columns, k, row, out)
    if kind <= L.CELL_OLD_TIMESTAMP:
        return _temporal(data, at, columns, k, row, out)
    if kind == L.CELL_DECIMAL_TEXT:
        return _decimal_text(data, at, columns, k, row, out)
    return _other(data, at, columns, k, row, out)


@numba.njit(I(WORDS, I, I, BYTES_OUT), **_FAST)
def write_null(columns: Any, k: int, row: int, out: Any) -> int:
    """NULL at row: a zero (or no bytes) under a cleared validity bit, so that no buffer holds what was there before."""
    kind = columns[k + L.KIND]
    values = columns[k + L.VALUES]
    columns[k + L.NULLS] += 1
    if kind in (L.CELL_BYTES, L.CELL_TIME, L.CELL_OLD_TIME, L.CELL_DECIMAL_TEXT, L.CELL_BITS):
        store32(out, values + 4 * row + 4, columns[k + L.USED])
    elif kind in (L.CELL_UINT64, L.CELL_DECIMAL):
        store64(out, values + 16 * row, 0)
        store64(out, values + 16 * row + 8, 0)
    elif kind in (L.CELL_INT8, L.CELL_BIT):
        store8(out, values + row, 0)
    elif kind in (L.CELL_UINT8, L.CELL_INT16, L.CELL_YEAR):
        store16(out, values + 2 * row, 0)
    elif kind in (L.CELL_UINT16, L.CELL_INT24, L.CELL_UINT24, L.CELL_COPY32, L.CELL_DATE, L.CELL_ENUM):
        store32(out, values + 4 * row, 0)
    else:
        store64(out, values + 8 * row, 0)
    return NULL
