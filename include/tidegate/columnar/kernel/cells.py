"""One value of a row image, into its column's Arrow buffers.

In:  the address of a value that lies completely inside its event, the address of its column's words
     (layout.py), the row.
Out: the value in the arena at this row; or NULL for an impossible date; or an error code.

Formats: MySQL source docs "Replication: Rows_event"; temporal types mysql-server mysys/my_time.cc
(my_datetime_packed_from_binary, my_time_packed_from_binary, my_timestamp_from_binary); MariaDB's of before 10.1:
MariaDB sql/field.cc (Field_datetime_hires, Field_time_hires, pack_time); geometries: SRID u32, WKB (sql/spatial.h);
decimals: decimals.py.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.columnar.kernel.decimals import (
    NULL,
    POWERS,
    VALUE,
    WRITE,
    decimal,
    decimal_text,
    small_decimal,
    text_end,
    write_digits,
)
from tidegate.columnar.kernel.memory import (
    FAST,
    I,
    big32,
    big_endian,
    copy_bytes,
    little_endian,
    load8,
    load16,
    load32,
    load64,
    set_word,
    store8,
    store16,
    store32,
    store64,
    word,
)
from tidegate.compiled import compiled

_MONTH_DAYS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
_NO_DAY: Final = -(1 << 40)
_NO_MOMENT: Final = -(1 << 62)
_YEAR_MAX: Final = 9999
_YEAR_MONTH_END: Final = (_YEAR_MAX + 1) * 13
_EARLIEST: Final = -1_000_000  # days; year 1 is day -719162
_TIME_ZERO: Final = 838 * 3600 + 59 * 60 + 60  # seconds; MariaDB before 10.1 adds them to a TIME
_WKB_BYTES_MIN: Final = 5  # byte order and type
_EWKB_SRID: Final = 0x20  # of the type's highest byte: an SRID follows


@compiled(I(I, I, I), **FAST)
def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; less than -1 million if there is
    no such date.
    """
    if year < 1 or month < 1 or month > 12 or day < 1:
        return _NO_DAY
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _MONTH_DAYS[month] + (1 if month == 2 and leap else 0):
        return _NO_DAY
    # Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil
    y = year - 1 if month <= 2 else year
    era = y // 400
    of_era = y - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@compiled(I(I, I, I, I), **FAST)
def _geometry(at: int, count: int, column: int, row: int) -> int:
    """SRID and WKB as WKB, or as EWKB if the SRID isn't 0. Both hold the whole value."""
    used = word(column, L.USED)
    if used + count > word(column, L.BYTES_MAX):
        return L.ERROR_BATCH
    to = word(column, L.BYTES) + used
    if count:  # a NOT NULL column without a value holds no bytes at all
        if count < 4 + _WKB_BYTES_MIN or load8(at + 4) != 1:
            return L.ERROR_VALUE
        count -= 4
        if load32(at):
            copy_bytes(to, at + 4, _WKB_BYTES_MIN)
            store8(to + 4, load8(to + 4) | _EWKB_SRID)
            copy_bytes(to + _WKB_BYTES_MIN, at, 4)
            copy_bytes(to + _WKB_BYTES_MIN + 4, at + 4 + _WKB_BYTES_MIN, count - _WKB_BYTES_MIN)
            count += 4
        else:
            copy_bytes(to, at + 4, count)
    set_word(column, L.USED, used + count)
    store32(word(column, L.VALUES) + 4 * row + 4, used + count)
    return VALUE


@compiled(I(I, I, I, I), forceinline=True, **FAST)
def write_bytes(at: int, count: int, column: int, row: int) -> int:
    """Write `count` bytes, which are at `at`, after the length prefix."""
    used = word(column, L.USED)
    if word(column, L.P2):
        return _geometry(at, count, column, row)
    padded = max(count, word(column, L.P1))
    if used + padded > word(column, L.BYTES_MAX):
        return L.ERROR_BATCH
    to = word(column, L.BYTES) + used
    copy_bytes(to, at, count)
    for i in range(count, padded):
        store8(to + i, 0)
    set_word(column, L.USED, used + padded)
    store32(word(column, L.VALUES) + 4 * row + 4, used + padded)
    return VALUE


@compiled(I(I, I, I, I), forceinline=True, **FAST)
def _integer(kind: int, at: int, values: int, row: int) -> int:
    if kind == L.CELL_INT8:
        store8(values + row, load8(at))
    elif kind == L.CELL_UINT8:
        store16(values + 2 * row, load8(at))
    elif kind == L.CELL_INT16:
        store16(values + 2 * row, load16(at))
    elif kind == L.CELL_UINT16:
        store32(values + 4 * row, load16(at))
    elif kind == L.CELL_INT24:
        store32(values + 4 * row, (little_endian(at, 3) << 40) >> 40)
    elif kind == L.CELL_UINT24:
        store32(values + 4 * row, little_endian(at, 3))
    elif kind == L.CELL_UINT32:
        store64(values + 8 * row, load32(at))
    elif kind == L.CELL_UINT64:
        store64(values + 16 * row, load64(at))
        store64(values + 16 * row + 8, 0)
    else:  # CELL_YEAR: 0 or years since 1900
        year = load8(at)
        store16(values + 2 * row, year + 1900 if year > 0 else 0)
    return VALUE


@compiled(I(I, I), forceinline=True, **FAST)
def _fraction(at: int, column: int) -> int:
    return big_endian(at, word(column, L.P1)) * word(column, L.P2)


@compiled(I(I), forceinline=True, **FAST)
def _no_date(column: int) -> int:
    """The result for a date no calendar has."""
    return L.ERROR_DATE if word(column, L.DATES) else NULL


@compiled(I(I, I, I, I, I), forceinline=True, **FAST)
def _moment(days: int, hours: int, minutes: int, seconds: int, micros: int) -> int:
    """Microseconds since 1970, or _NO_MOMENT for a time of day no server writes."""
    if hours > 23 or minutes > 59 or seconds > 59 or micros > 999999:
        return _NO_MOMENT
    return (days * 86400 + hours * 3600 + minutes * 60 + seconds) * 1000000 + micros


@compiled(WRITE, forceinline=True, **FAST)
def _datetime(at: int, column: int, row: int) -> int:
    # 1 sign bit (set), 17 bits year * 13 + month, 5 day, 5 hour, 6 minute, 6 second; big-endian
    packed = (big32(at) << 8 | load8(at + 4)) - (1 << 39)
    date = packed >> 17
    if date == word(column, L.P3):  # neighbouring rows often have the same day: P3 and P4 keep the last one
        days = word(column, L.P4)
    else:
        year_month = date >> 5
        if date < 0 or year_month >= _YEAR_MONTH_END:
            return L.ERROR_VALUE
        days = days_of(year_month // 13, year_month % 13, date & 31)
        set_word(column, L.P3, date)
        set_word(column, L.P4, days)
    if days < _EARLIEST:
        return _no_date(column)
    clock = packed & 0x1FFFF
    moment = _moment(days, clock >> 12, (clock >> 6) & 63, clock & 63, _fraction(at + 5, column))
    if moment == _NO_MOMENT:
        return L.ERROR_VALUE
    store64(word(column, L.VALUES) + 8 * row, moment)
    return VALUE


@compiled(WRITE, **FAST)
def _old_datetime(at: int, column: int, row: int) -> int:
    """A number YYYYMMDDhhmmss of before 5.6; or MariaDB's with a fraction: mixed radix, in units of
    the fraction.
    """
    micros = np.int64(0)
    if word(column, L.KIND) == L.CELL_OLD_DATETIME:
        number = load64(at)
        date, clock = number // 1000000, number % 1000000
        year, month, day = date // 10000, date // 100 % 100, date % 100
        hours, minutes, seconds = clock // 10000, clock // 100 % 100, clock % 100
    else:
        width = word(column, L.WIDTH)
        number = big_endian(at, width)
        whole = number // word(column, L.P1)
        micros = number % word(column, L.P1) * word(column, L.P2)
        hours, minutes, seconds = whole // 3600 % 24, whole // 60 % 60, whole % 60
        date = whole // 86400
        year, month, day = date // 32 // 13, date // 32 % 13, date % 32
    if number < 0 or year > _YEAR_MAX:
        return L.ERROR_VALUE
    days = days_of(year, month, day)
    if days < _EARLIEST:
        return _no_date(column)
    moment = _moment(days, hours, minutes, seconds, micros)
    if moment == _NO_MOMENT:
        return L.ERROR_VALUE
    store64(word(column, L.VALUES) + 8 * row, moment)
    return VALUE


@compiled(WRITE, **FAST)
def _temporal(at: int, column: int, row: int) -> int:
    kind = word(column, L.KIND)
    values = word(column, L.VALUES)
    if kind == L.CELL_DATE:
        packed = little_endian(at, 3)
        if packed >> 9 > _YEAR_MAX:
            return L.ERROR_VALUE
        days = days_of(packed >> 9, (packed >> 5) & 15, packed & 31)
        if days < _EARLIEST:
            return _no_date(column)
        store32(values + 4 * row, days)
        return VALUE
    micros = _fraction(at + 4, column) if kind == L.CELL_TIMESTAMP else np.int64(0)
    moment = (big32(at) if kind == L.CELL_TIMESTAMP else load32(at)) * 1000000 + micros
    if micros > 999999:
        return L.ERROR_VALUE
    if moment == 0:  # 0000-00-00 00:00:00; 1970-01-01 00:00:00 can't be stored
        return _no_date(column)
    store64(values + 8 * row, moment)
    return VALUE


@compiled(WRITE, **FAST)
def _time(at: int, column: int, row: int) -> int:
    if word(column, L.USED) + 24 > word(column, L.BYTES_MAX):
        return L.ERROR_BATCH
    kind = word(column, L.KIND)
    to = word(column, L.BYTES) + word(column, L.USED)
    micros = np.int64(0)
    if kind == L.CELL_OLD_TIME:
        number = (little_endian(at, 3) << 40) >> 40
        negative = number < 0
        number = abs(number)
        hours, minutes, seconds = number // 10000, number // 100 % 100, number % 100
    elif kind == L.CELL_HIRES_TIME:
        units = word(column, L.P1)
        packed = big_endian(at, word(column, L.WIDTH)) - _TIME_ZERO * units
        negative = packed < 0
        packed = abs(packed)
        micros = packed % units * word(column, L.P2)
        whole = packed // units
        hours, minutes, seconds = whole // 3600, whole // 60 % 60, whole % 60
    else:
        # 1 sign bit, 1 unused, 10 bits hour, 6 minute, 6 second, fraction; a negative value is the whole's complement
        width = word(column, L.P1)
        packed = big_endian(at, 3 + width) - (np.int64(1) << (23 + 8 * width))
        negative = packed < 0
        packed = abs(packed)
        micros = (packed & ((np.int64(1) << (8 * width)) - 1)) * word(column, L.P2)
        clock = packed >> (8 * width)
        hours, minutes, seconds = clock >> 12, (clock >> 6) & 63, clock & 63
    if hours > 838 or minutes > 59 or seconds > 59 or micros > 999999:
        return L.ERROR_VALUE
    if negative:
        store8(to, 45)
        to += 1
    to = write_digits(to, hours, 3 if hours > 99 else 2)
    store8(to, 58)
    to = write_digits(to + 1, minutes, 2)
    store8(to, 58)
    to = write_digits(to + 1, seconds, 2)
    decimals = word(column, L.P3)
    if decimals > 0:
        store8(to, 46)
        to = write_digits(to + 1, micros // POWERS[6 - decimals], decimals)
    return text_end(column, row, to)


@compiled(WRITE, **FAST)
def _other(at: int, column: int, row: int) -> int:
    kind = word(column, L.KIND)
    width = word(column, L.WIDTH)
    values = word(column, L.VALUES)
    if kind == L.CELL_BIT:
        store8(values + row, load8(at) & 1)
    elif kind == L.CELL_BITS:
        return write_bytes(at, width, column, row)
    elif kind == L.CELL_ENUM:
        member = little_endian(at, width)
        if member > word(column, L.P1):
            return L.ERROR_MEMBER
        store32(values + 4 * row, member)
    else:  # CELL_SET
        bits = little_endian(at, width)
        if bits & ~word(column, L.P1):
            return L.ERROR_MEMBER
        store64(values + 8 * row, bits)
    return VALUE


@compiled(WRITE, **FAST)
def _rare(at: int, column: int, row: int) -> int:
    kind = word(column, L.KIND)
    if kind == L.CELL_DECIMAL:
        return decimal(at, column, row)
    if kind in (L.CELL_TIME, L.CELL_OLD_TIME, L.CELL_HIRES_TIME):
        return _time(at, column, row)
    if kind in (L.CELL_OLD_DATETIME, L.CELL_HIRES_DATETIME):
        return _old_datetime(at, column, row)
    if kind <= L.CELL_OLD_TIMESTAMP:
        return _temporal(at, column, row)
    if kind == L.CELL_DECIMAL_TEXT:
        return decimal_text(at, column, row)
    return _other(at, column, row)


@compiled(I(I, I, I, I), forceinline=True, **FAST)
def write_fixed(kind: int, at: int, column: int, row: int) -> int:
    """A value of any kind but CELL_BYTES. VALUE, NULL (a date that doesn't exist) or an ERROR_*."""
    values = word(column, L.VALUES)
    if kind == L.CELL_COPY32:
        store32(values + 4 * row, load32(at))
        return VALUE
    if kind == L.CELL_COPY64:
        store64(values + 8 * row, load64(at))
        return VALUE
    if kind <= L.CELL_YEAR:
        return _integer(kind, at, values, row)
    if kind == L.CELL_DATETIME:
        return _datetime(at, column, row)
    if kind == L.CELL_DECIMAL_SMALL:
        return small_decimal(at, column, row)
    return _rare(at, column, row)


@compiled(I(I, I), **FAST)
def _write_null(column: int, row: int) -> int:
    """NULL at row: a zero (or no bytes) under a cleared validity bit, so no buffer keeps old content."""
    kind = word(column, L.KIND)
    values = word(column, L.VALUES)
    set_word(column, L.NULLS, word(column, L.NULLS) + 1)
    if kind in (L.CELL_BYTES, L.CELL_TIME, L.CELL_OLD_TIME, L.CELL_HIRES_TIME, L.CELL_DECIMAL_TEXT, L.CELL_BITS):
        store32(values + 4 * row + 4, word(column, L.USED))
    elif kind in (L.CELL_UINT64, L.CELL_DECIMAL, L.CELL_DECIMAL_SMALL):
        store64(values + 16 * row, 0)
        store64(values + 16 * row + 8, 0)
    elif kind in (L.CELL_INT8, L.CELL_BIT):
        store8(values + row, 0)
    elif kind in (L.CELL_UINT8, L.CELL_INT16, L.CELL_YEAR):
        store16(values + 2 * row, 0)
    elif kind in (L.CELL_UINT16, L.CELL_INT24, L.CELL_UINT24, L.CELL_COPY32, L.CELL_DATE, L.CELL_ENUM):
        store32(values + 4 * row, 0)
    else:
        store64(values + 8 * row, 0)
    return NULL


@compiled(I(I, I, I), forceinline=True, **FAST)
def close_cell(written: int, column: int, row: int) -> int:
    """Set the validity bit of a cell, and the bytes under a NULL. written: VALUE or NULL.

    Rows come in order, so the first row of a byte of bits writes the whole byte.
    """
    valid, bit = word(column, L.VALID) + (row >> 3), row & 7
    if written == NULL:
        _write_null(column, row)
        if bit == 0:
            store8(valid, 0)
    else:
        store8(valid, 1 if bit == 0 else load8(valid) | 1 << bit)
    return VALUE
