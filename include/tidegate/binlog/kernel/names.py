"""Facts for capture about the events in compressed transactions: names of tables, statements, XA
PREPARE.

In:  whole events, expanded (expand.py).
Out: the offset of each distinct name, and of each statement; bits for the rest. One bit says that
     there is more than fits, or something odd: then the segment counts for every table.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tidegate.binlog.transaction_scan import Q_MALFORMED, Q_STATEMENT, Q_XA_ANSWER, classify_at
from tidegate.columnar.kernel.memory import FAST, I, address, load8, load32, set_word, word
from tidegate.compiled import compiled

# --- state of note_inner: int64[NOTE_WORDS] -----------------------------------------------------------
TABLES: Final = 0  # how many offsets of distinct names, from NAMES on
STATEMENTS: Final = 1  # offsets of QUERY events that are statements of their own
NOTED: Final = 2  # NOTE_* bits
NOTE_SLOTS: Final = 1 << 10
NOTES_MAX: Final = 1 << 9
_SLOTS: Final = 3  # offset of a name + 1
NAMES: Final = _SLOTS + NOTE_SLOTS
QUERIES: Final = NAMES + NOTES_MAX
NOTE_WORDS: Final = QUERIES + NOTES_MAX

NOTE_PREWRITE: Final = 1  # XA PREPARE
NOTE_ODD: Final = 2  # something whose tables can't be named here

# Events without tables, or only with those of the TABLE_MAPs beside them: capture needn't look at them.
_NO_NAMES: Final = np.zeros(256, np.bool_)
_NO_NAMES[[2, 3, 4, 5, 13, 14, 15, 16, 19, 23, 24, 25, 29, 30, 31, 32, 33, 34, 35, 38, 39, 42]] = True
_NO_NAMES[160:164] = True


@compiled(I(I, I), **FAST)
def _name_bytes(name: int, end: int) -> int:
    """Bytes of database length 1, database, NUL, table length 1, table; -1 if they don't fit."""
    if name >= end:
        return -1
    table = name + 2 + load8(name)
    if table >= end or table + 1 + load8(table) > end:
        return -1
    return table + 1 + load8(table) - name


@compiled(I(I, I, I, I), **FAST)
def _note_name(data: int, name: int, size: int, state: int) -> int:
    """Remember the name at this address once. Returns 0, or -1 if there is no room."""
    digest = 0
    for i in range(size):
        digest = (digest ^ load8(name + i)) * 0x100000001B3
    slot = (digest ^ (digest >> 29)) & (NOTE_SLOTS - 1)
    while word(state, _SLOTS + slot) != 0:
        other = data + word(state, _SLOTS + slot) - 1
        same = True
        for i in range(size):  # the bytes of a name include its length
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


@compiled(I(I, I, I, I), **FAST)
def note_inner(data: int, total: int, checksum: int, state: int) -> int:
    """Note the names in TABLE_MAPs, statements and XA PREPARE among whole events at data. Returns
    NOTED.

    If there is more than fits, or something odd, NOTED has NOTE_ODD.
    """
    plain = address(_NO_NAMES)
    at, noted = 0, 0
    while at < total:
        size = load32(data + at + 9) if at + 19 <= total else 0
        if size < 19 or at + size > total:
            noted |= NOTE_ODD
            break
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
