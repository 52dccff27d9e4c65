"""The index of a data file's keys: rows in buckets by their hash, and the look-up of keys.

In:  hashes of a file's rows, or of keys to look for; an index as layout.py describes it.
Out: buckets, or positions of rows.

A bucket has the rows whose hashes have the same top bits in the second word. A row is stored as its hash's first word
and its position in the file. Unless the first word is exact (a key of one integer), the low half of the second word is
stored, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from tidegate.columnar.kernel.memory import FAST, I, load32, load64, store32, store64, word
from tidegate.compiled import compiled
from tidegate.upsert.kernel import layout as L  # noqa: N812 - a page of constants


@compiled(I(I, I, I), forceinline=True, **FAST)
def _bucket(index: int, starts: int, high: int) -> Any:
    """Where the beginning of a hash's bucket stands."""
    return starts + 4 * np.int64(np.uint64(high) >> np.uint64(word(index, L.SHIFT)))


@compiled(I(I, I, I), **FAST)
def count_rows(hashes: int, rows: int, index: int) -> int:
    """Count rows per bucket, and store the end of each bucket, in order, in the place of its
    beginning. Gives the number of rows in all buckets.

    hashes: uint64[rows, 2]. A key that holds a NULL (0, 0) is in no bucket: it matches nothing.
    """
    starts = word(index, L.STARTS)
    for row in range(rows):
        low, high = load64(hashes + 16 * row), load64(hashes + 16 * row + 8)
        if low | high != 0:
            at = _bucket(index, starts, high)
            store32(at, load32(at) + 1)
    total = 0
    for bucket in range(1 << (64 - word(index, L.SHIFT))):
        total += load32(starts + 4 * bucket)
        store32(starts + 4 * bucket, total)
    return total


@compiled(types.void(I, I, I), **FAST)
def place_rows(hashes: int, rows: int, index: int) -> None:
    """Put each row into its bucket, the last row first, so that the buckets' ends become their beginnings."""
    starts, highs = word(index, L.STARTS), word(index, L.HIGHS)
    for back in range(rows):
        row = rows - 1 - back
        low, high = load64(hashes + 16 * row), load64(hashes + 16 * row + 8)
        if low | high == 0:
            continue
        at = _bucket(index, starts, high)
        slot = load32(at) - 1
        store32(at, slot)
        store64(word(index, L.LOWS) + 8 * slot, low)
        if highs != 0:
            store32(highs + 4 * slot, high)
        store32(word(index, L.POSITIONS) + 4 * slot, row)


@compiled(I(I, I, I, I, I), **FAST)
def find_rows(hashes: int, keys: int, index: int, out: int, room: int) -> int:
    """Positions of rows with one of the keys to int64[room] at `out`. Gives how many there are, also above `room`.

    hashes: uint64[keys, 2], none of them (0, 0).
    """
    starts, lows, highs = word(index, L.STARTS), word(index, L.LOWS), word(index, L.HIGHS)
    hits = 0
    for key in range(keys):
        low, high = load64(hashes + 16 * key), load64(hashes + 16 * key + 8)
        bucket = _bucket(index, starts, high)
        for slot in range(load32(bucket), load32(bucket + 4)):
            if load64(lows + 8 * slot) != low:
                continue
            if highs != 0 and load32(highs + 4 * slot) != high & 0xFFFFFFFF:
                continue
            if hits < room:
                store64(out + 8 * hits, load32(word(index, L.POSITIONS) + 4 * slot))
            hits += 1
    return hits
