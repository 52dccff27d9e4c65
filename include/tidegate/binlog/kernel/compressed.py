"""Walks over events as bytes, before what is compressed among them is expanded, and over what expanding gives.

In:  bytes at addresses; nothing of them is believed.
Out: where each event lies; whole inner events laid out as the format of their file has it.

The events inside a compressed transaction have no checksum (mysql-server, sql/binlog: the payload is written with
BINLOG_CHECKSUM_ALG_OFF). In a file with checksums each is laid out with four bytes more, so that what walks events
needn't know where one comes from; the captured event's own checksum covers them.
"""

from __future__ import annotations

from typing import Final

import numba
import numpy as np
from numba import types

from tidegate.binlog.kernel.memory import FAST, I, address, copy_bytes, load8, load32, set_word, store8, store32, word
from tidegate.binlog.transaction_scan import Q_MALFORMED, Q_STATEMENT, Q_XA_ANSWER, classify_at

# --- captured events: int64[n, FOUND_WORDS] -----------------------------------------------------------
FOUND_OFFSET: Final = 0
FOUND_SIZE: Final = 1
FOUND_TYPE: Final = 2
FOUND_CHECKSUM: Final = 3  # bytes of checksum at its end
FOUND_WORDS: Final = 4

# --- state of lay_inner: int64[INNER_WORDS] -----------------------------------------------------------
CONSUMED: Final = 0  # bytes of whole events read
WRITTEN: Final = 1
REMAINING: Final = 2  # bytes that may still come, those given included: no inner event is longer
NEEDED: Final = 3  # size of the event that isn't whole yet; 0 when its header isn't
KIND: Final = 4  # type of the last event looked at
INNER_WORDS: Final = 5

# --- state of note_inner: int64[NOTE_WORDS] -----------------------------------------------------------
TABLES: Final = 0  # offsets of names found, each different one once, into NAMES
STATEMENTS: Final = 1  # offsets of QUERY events that are statements of their own
NOTED: Final = 2  # NOTE_* bits
NOTE_SLOTS: Final = 1 << 10
NOTES_MAX: Final = 1 << 9
_SLOTS: Final = 3  # offset of a name + 1
NAMES: Final = _SLOTS + NOTE_SLOTS
QUERIES: Final = NAMES + NOTES_MAX
NOTE_WORDS: Final = QUERIES + NOTES_MAX

NOTE_PREWRITE: Final = 1  # XA PREPARE
NOTE_ODD: Final = 2  # something whose tables can't be named from here

BAD_SIZE: Final = -1
BAD_KIND: Final = -2

# What may not be nested: what describes the file, names a transaction, or is itself a wrapper; MariaDB's own kinds.
_NEVER_INNER: Final = np.zeros(256, np.bool_)
_NEVER_INNER[[0, 1, 3, 4, 15, 27, 33, 34, 35, 37, 40, 41, 42]] = True
_NEVER_INNER[160:172] = True
# Events that touch no table, or only those of the TABLE_MAPs beside them: what capture needn't tell apart.
_NO_NAMES: Final = np.zeros(256, np.bool_)
_NO_NAMES[[2, 5, 13, 14, 16, 19, 23, 24, 25, 29, 30, 31, 32, 38, 39]] = True


@numba.njit(types.boolean(I), **FAST)
def is_compressed(kind: int) -> bool:
    """Whether events of this type must be expanded before they mean anything."""
    return kind == 40 or 165 <= kind <= 171


@numba.njit(I(I, I, I, I), **FAST)
def list_events(data: int, total: int, checksum: int, found: int) -> int:
    """Where each event of total bytes at data lies, into found (when not 0); how many. Stops where none is whole."""
    at, n = 0, 0
    while at + 19 <= total:
        size = load32(data + at + 9)
        if size < 19 or at + size > total:
            break
        kind = load8(data + at + 4)
        if kind == 15:  # brings its own
            checksum = 4 if load8(data + at + size - 5) == 1 else 0
        if found != 0:
            row = found + 8 * FOUND_WORDS * n
            set_word(row, FOUND_OFFSET, at)
            set_word(row, FOUND_SIZE, size)
            set_word(row, FOUND_TYPE, kind)
            set_word(row, FOUND_CHECKSUM, checksum)
        at += size
        n += 1
    return n


@numba.njit(I(I, I, I, I, I), **FAST)
def lay_inner(source: int, total: int, target: int, grow: int, state: int) -> int:
    """Copy the whole events of total bytes at source to target, each longer by `grow` zero bytes; 0 or a BAD_*.

    target has room for total + grow * (total // 19) bytes.
    """
    forbidden = address(_NEVER_INNER)
    at, written = 0, 0
    set_word(state, NEEDED, 0)
    code = 0
    while at + 19 <= total:
        size = load32(source + at + 9)
        kind = load8(source + at + 4)
        set_word(state, KIND, kind)
        if size < 19 or size > word(state, REMAINING) - at or size + grow > 0xFFFFFFFF:
            code = BAD_SIZE
            break
        if load8(forbidden + kind):
            code = BAD_KIND
            break
        if at + size > total:
            set_word(state, NEEDED, size)
            break
        copy_bytes(target + written, source + at, size)
        store32(target + written + 9, size + grow)
        written += size
        for i in range(grow):
            store8(target + written + i, 0)
        written += grow
        at += size
    set_word(state, CONSUMED, at)
    set_word(state, WRITTEN, written)
    return code


@numba.njit(I(I, I), **FAST)
def _name_bytes(name: int, end: int) -> int:
    """Bytes of database length 1, database, NUL, table length 1, table; -1 when they don't fit."""
    if name >= end:
        return -1
    table = name + 2 + load8(name)
    if table >= end or table + 1 + load8(table) > end:
        return -1
    return table + 1 + load8(table) - name


@numba.njit(I(I, I, I, I), **FAST)
def _note_name(data: int, name: int, size: int, state: int) -> int:
    """Remember the name at this address once; 0, or -1 when there is no room."""
    digest = 0
    for i in range(size):
        digest = (digest ^ load8(name + i)) * 0x100000001B3
    slot = (digest ^ (digest >> 29)) & (NOTE_SLOTS - 1)
    while word(state, _SLOTS + slot) != 0:
        other = data + word(state, _SLOTS + slot) - 1
        same = True
        for i in range(size):  # a name tells its own length
            if load8(other + i) != load8(name + i):
                same = False
                break
        if same:
            return 0
        slot = (slot + 1) & (NOTE_SLOTS - 1)
    if word(state, TABLES) == NOTES_MAX:
        return -1
    set_word(state, _SLOTS + slot, name - data + 1)
    set_word(state, NAMES + word(state, TABLES), name - data)
    set_word(state, TABLES, word(state, TABLES) + 1)
    return 0


@numba.njit(I(I, I, I, I), **FAST)
def note_inner(data: int, total: int, checksum: int, state: int) -> int:
    """What capture must know of whole events at data (lay_inner's): names in TABLE_MAPs, statements, XA PREPARE.

    When there is more than fits, or something odd, NOTED has NOTE_ODD. Gives NOTED.
    """
    plain = address(_NO_NAMES)
    at, noted = 0, 0
    while at < total:
        size = load32(data + at + 9)
        kind = load8(data + at + 4)
        end = data + at + size - checksum
        if not load8(plain + kind):
            noted |= NOTE_ODD
        elif kind == 19:
            name = data + at + 19 + 8
            length = _name_bytes(name, end)
            if length < 0 or _note_name(data, name, length, state) < 0:
                noted |= NOTE_ODD
        elif kind == 38:
            noted |= NOTE_PREWRITE
        elif kind == 2:
            said = classify_at(data + at, end)
            if said == Q_MALFORMED or word(state, STATEMENTS) == NOTES_MAX:
                noted |= NOTE_ODD
            elif said in (Q_STATEMENT, Q_XA_ANSWER):
                set_word(state, QUERIES + word(state, STATEMENTS), at)
                set_word(state, STATEMENTS, word(state, STATEMENTS) + 1)
        at += size
    return set_word(state, NOTED, noted)
