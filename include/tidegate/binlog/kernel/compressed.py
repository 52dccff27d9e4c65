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

BAD_SIZE: Final = -1
BAD_KIND: Final = -2

# What may not be nested: what describes the file, names a transaction, or is itself a wrapper; MariaDB's own kinds.
_NEVER_INNER: Final = np.zeros(256, np.bool_)
_NEVER_INNER[[0, 1, 3, 4, 15, 27, 33, 34, 35, 37, 40, 41, 42]] = True
_NEVER_INNER[160:172] = True


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
