"""Rows of a binary result set into Arrow buffers, in one pass over the bytes as the socket gave them.

In:  addresses: of received bytes, of the columns' words (columnar/kernel/layout.py), of the state.
Out: rows in the arena; why the walk stopped. A row is taken whole or not at all.

Format: MySQL source docs, "Binary Protocol Resultset Row": a packet begins with 0x00, then a bitmap
of NULLs that starts at bit 2, then the values: numbers little-endian, dates and times with a length
byte (0: all zero), everything else with a length-encoded length. FLOAT and DOUBLE come as they are
stored, which the text protocol can't say.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.columnar.kernel.cells import close_cell, days_of, write_bytes, write_fixed
from tidegate.columnar.kernel.decimals import NULL, POWERS, VALUE, text_end, write_decimal, write_digits
from tidegate.columnar.kernel.memory import (
    FAST,
    I,
    copy_bytes,
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
from tidegate.limits.formats import PACKET_BYTES_MAX


class Stop(IntEnum):
    """Why the walk stopped."""

    MORE = 0  # the packet at READ isn't complete
    FULL = 1  # the arena has no room for the row at READ
    END = 2  # the packet at READ is EOF or ERR
    BIG = 3  # the row at READ is longer than one packet or the receive buffer
    BAD = 4  # the row at READ isn't what its columns say: ERROR, ERROR_COLUMN


# How a value comes. Kept in a word that only updates of row images use.
READ_AS: Final = L.BEFORE
FIXED: Final = 0  # WIDTH bytes on the wire: L.BEFORE_BYTES; then as the log has it, or as a number of 4 bytes for 3
YEAR: Final = 1
BYTES: Final = 2
BIT: Final = 3
DECIMAL: Final = 4  # P3: digits after the point
DECIMAL_TEXT: Final = 5
DATE: Final = 6
MOMENT: Final = 7
TIME: Final = 8  # P3: digits of the fraction
SKIP_BYTES: Final = 9  # not for the arena
WIRE_BYTES: Final = L.BEFORE_BYTES

# State, int64.
READ: Final = 0  # offset of the next packet
HAVE: Final = 1  # end of the bytes
ROOM: Final = 2  # size of the receive buffer
ROWS: Final = 3
ROWS_ROOM: Final = 4
COLUMNS: Final = 5
TAKEN: Final = 6  # bytes of the rows taken
TAKEN_ROOM: Final = 7
LAST: Final = 8  # offset of the newest row's packet
ERROR: Final = 9
ERROR_COLUMN: Final = 10
STATE_WORDS: Final = 11

_EARLIEST: Final = -1_000_000
_COLUMN_BYTES: Final = 8 * L.COLUMN_WORDS
_TEXT_BYTES: Final = 96


@compiled(I(I, I), forceinline=True, **FAST)
def _length_bytes(at: int, end: int) -> int:
    """How long the length-encoded integer at `at` is; ERROR_CUT when it isn't one, or doesn't end by `end`."""
    if at >= end:
        return L.ERROR_CUT
    first = load8(at)
    if first < 251:
        size = 1
    elif first == 252:
        size = 3
    elif first == 253:
        size = 4
    elif first == 254:
        size = 9
    else:
        return L.ERROR_CUT
    return size if at + size <= end else L.ERROR_CUT


@compiled(I(I, I), forceinline=True, **FAST)
def _length(at: int, size: int) -> int:
    """The length-encoded integer of `size` bytes."""
    if size == 1:
        return load8(at)
    if size == 3:
        return load16(at + 1)
    if size == 4:
        return load16(at + 1) | load8(at + 3) << 16
    return load64(at + 1)


@compiled(I(I), forceinline=True, **FAST)
def _no_date(column: int) -> int:
    return L.ERROR_DATE if word(column, L.DATES) else NULL


@compiled(I(I, I, I, I), **FAST)
def _decimal(at: int, count: int, column: int, row: int) -> int:
    """Digits with a point, as the server prints them, into 16 bytes, two's complement."""
    end = at + count
    negative = count > 0 and load8(at) == 45
    if negative:
        at += 1
    low, high = np.uint64(0), np.uint64(0)
    behind, point = 0, False
    small, digits = np.int64(0), 0  # a group of up to nine digits
    while at < end:
        character = load8(at)
        at += 1
        if character == 46 and not point:
            point = True
            continue
        if character < 48 or character > 57:
            return L.ERROR_VALUE
        small = small * 10 + (character - 48)
        digits += 1
        behind += 1 if point else 0
        if digits == 9 or at == end:
            times = np.uint64(POWERS[digits])
            first = (low & np.uint64(0xFFFFFFFF)) * times + np.uint64(small)
            second = (low >> np.uint64(32)) * times + (first >> np.uint64(32))
            low = (second << np.uint64(32)) | (first & np.uint64(0xFFFFFFFF))
            high = high * times + (second >> np.uint64(32))
            small, digits = np.int64(0), 0
    if behind != word(column, L.P3) or digits:
        return L.ERROR_VALUE
    return write_decimal(low, high, 1 if negative else 0, column, row)


@compiled(I(I, I, I, I), **FAST)
def _decimal_text(at: int, count: int, column: int, row: int) -> int:
    """As it comes, but for the zeros in front that ZEROFILL adds."""
    if count > _TEXT_BYTES or word(column, L.USED) + _TEXT_BYTES > word(column, L.BYTES_MAX):
        return L.ERROR_BATCH
    to = word(column, L.BYTES) + word(column, L.USED)
    end = at + count
    if count > 0 and load8(at) == 45:
        store8(to, 45)
        to += 1
        at += 1
    while at + 1 < end and load8(at) == 48 and load8(at + 1) != 46:
        at += 1
    copy_bytes(to, at, end - at)
    return text_end(column, row, to + end - at)


@compiled(I(I, I, I, I), **FAST)
def _moment(at: int, count: int, column: int, row: int) -> int:
    """Year 2, month 1, day 1, hour 1, minute 1, second 1, microseconds 4; what is zero at the end may be left out."""
    if count not in (0, 4, 7, 11):
        return L.ERROR_VALUE
    if count == 0:
        return _no_date(column)
    days = days_of(load16(at), load8(at + 2), load8(at + 3))
    if days < _EARLIEST:
        return _no_date(column)
    if word(column, READ_AS) == DATE:
        store32(word(column, L.VALUES) + 4 * row, days)
        return VALUE
    clock, micros = np.int64(0), np.int64(0)
    if count >= 7:
        clock = (load8(at + 4) * 60 + load8(at + 5)) * 60 + load8(at + 6)
    if count == 11:
        micros = load32(at + 7)
    store64(word(column, L.VALUES) + 8 * row, (days * 86400 + clock) * 1000000 + micros)
    return VALUE


@compiled(I(I, I, I, I), **FAST)
def _time(at: int, count: int, column: int, row: int) -> int:
    """Negative 1, days 4, hour 1, minute 1, second 1, microseconds 4; as the text that decode makes."""
    if count not in (0, 8, 12):
        return L.ERROR_VALUE
    if word(column, L.USED) + 24 > word(column, L.BYTES_MAX):
        return L.ERROR_BATCH
    to = word(column, L.BYTES) + word(column, L.USED)
    hours, minutes, seconds, micros = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    if count:
        hours = load32(at + 1) * 24 + load8(at + 5)
        minutes, seconds = load8(at + 6), load8(at + 7)
        if count == 12:
            micros = load32(at + 8)
        if load8(at):
            store8(to, 45)
            to += 1
    if hours > 838 or minutes > 59 or seconds > 59 or micros > 999999:
        return L.ERROR_VALUE
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


@compiled(I(I, I, I, I, I), forceinline=True, **FAST)
def _behind_length(read_as: int, at: int, count: int, column: int, row: int) -> int:
    """A value of `count` bytes."""
    if read_as == BYTES:
        return write_bytes(at, count, column, row)
    if read_as == DECIMAL:
        return _decimal(at, count, column, row)
    if read_as in (DATE, MOMENT):
        return _moment(at, count, column, row)
    if read_as == TIME:
        return _time(at, count, column, row)
    if read_as == DECIMAL_TEXT:
        return _decimal_text(at, count, column, row)
    if count != 1:  # BIT
        return L.ERROR_VALUE
    store8(word(column, L.VALUES) + row, load8(at) & 1)
    return VALUE


@compiled(I(I, I, I, I), **FAST)
def _take(at: int, end: int, columns: int, state: int) -> int:
    """The row between two addresses, after its packet's header, as row state[ROWS]; 0, or an ERROR_*."""
    count, row = word(state, COLUMNS), word(state, ROWS)
    nulls = at + 1
    at = nulls + ((count + 9) >> 3)
    if at > end:
        return L.ERROR_CUT
    column = columns
    for c in range(count):
        read_as = word(column, READ_AS)
        written = NULL
        null = (load8(nulls + ((c + 2) >> 3)) >> ((c + 2) & 7)) & 1
        if not null:
            if read_as in (FIXED, YEAR):
                size = word(column, WIRE_BYTES)
                if at + size > end:
                    written = L.ERROR_CUT
                elif read_as == FIXED:
                    written = write_fixed(word(column, L.KIND), at, column, row)
                else:
                    store16(word(column, L.VALUES) + 2 * row, load16(at))
                    written = VALUE
                at += size
            else:
                size = _length_bytes(at, end)
                if size < 0:
                    written = size
                else:
                    length = _length(at, size)
                    at += size
                    if length < 0 or length > end - at:
                        written = L.ERROR_CUT
                    elif read_as != SKIP_BYTES:
                        written = _behind_length(read_as, at, length, column, row)
                    at += length
            if written < 0:
                set_word(state, ERROR_COLUMN, c)
                return written
            if written == NULL and read_as < SKIP_BYTES:
                set_word(column, L.NULL_DATES, word(column, L.NULL_DATES) + 1)
        if read_as < SKIP_BYTES:
            close_cell(written, column, row)
        column += _COLUMN_BYTES
    return VALUE if at == end else L.ERROR_CUT


@compiled(I(I, I, I, I), **FAST)
def take_row(row: int, size: int, columns: int, state: int) -> int:
    """One whole row of `size` bytes at an address, joined from its packets; 0, or an ERROR_*."""
    outcome = _take(row, row + size, columns, state)
    set_word(state, ERROR, outcome)
    if outcome == VALUE:
        set_word(state, ROWS, word(state, ROWS) + 1)
    return outcome


@compiled(I(I, I, I), **FAST)
def walk(received: int, columns: int, state: int) -> int:
    """Take rows from the received bytes until something stops it; a Stop."""
    while True:
        read = word(state, READ)
        have = word(state, HAVE) - read
        if have < 5:
            return Stop.MORE.value
        packet = received + read
        size = load32(packet) & 0xFFFFFF
        if load8(packet + 4):
            return Stop.END.value if have >= 4 + size else Stop.MORE.value
        if size == PACKET_BYTES_MAX or 4 + size > word(state, ROOM):
            return Stop.BIG.value
        if have < 4 + size:
            return Stop.MORE.value
        if word(state, ROWS) == word(state, ROWS_ROOM) or word(state, TAKEN) + size > word(state, TAKEN_ROOM):
            return Stop.FULL.value
        outcome = _take(packet + 4, packet + 4 + size, columns, state)
        if outcome != VALUE:
            set_word(state, ERROR, outcome)
            return Stop.BAD.value
        set_word(state, LAST, read)
        set_word(state, READ, read + 4 + size)
        set_word(state, ROWS, word(state, ROWS) + 1)
        set_word(state, TAKEN, word(state, TAKEN) + size)
