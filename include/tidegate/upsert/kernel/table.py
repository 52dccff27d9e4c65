"""The table of a phase's keys: the last change of each key, and the files without any of its keys.

In:  hashes, orders and leads of changes, at addresses. Out: slots of open addressing, a filter,
     marks of what lost.
"""

from __future__ import annotations

from numba import types

from tidegate.columnar.kernel.memory import FAST, I, load8, load32, load64, store8, store32, store64, word
from tidegate.compiled import compiled
from tidegate.upsert.kernel import layout as L  # noqa: N812 - a page of constants


@compiled(types.boolean(I, I, I, I), forceinline=True, **FAST)
def _before(orders: int, words: int, a: int, b: int) -> bool:
    """Whether change a comes before change b; orders: int64[changes, words]."""
    for i in range(words):
        left, right = load64(orders + 8 * (words * a + i)), load64(orders + 8 * (words * b + i))
        if left != right:
            return left < right
    return a < b  # the same event twice: the later one in the list counts


@compiled(I(I, I, I, I, I, I), **FAST)
def insert_last(hashes: int, orders: int, words: int, changes: int, table: int, lost: int) -> int:
    """Fill a table with `changes` hashes; uint8[changes] at `lost` becomes 1 for all but the last change per key.

    Gives the number of keys; -1 for a key with a NULL.
    """
    slots, mask = word(table, L.SLOTS), word(table, L.SLOT_MASK)
    owners = word(table, L.OWNERS)
    bits, bit_mask = word(table, L.FILTER), word(table, L.FILTER_MASK)
    keys = 0
    for change in range(changes):
        low, high = load64(hashes + 16 * change), load64(hashes + 16 * change + 8)
        if low | high == 0:
            return -1
        slot = low & mask
        while True:
            at = slots + 16 * slot
            found_low, found_high = load64(at), load64(at + 8)
            if found_low | found_high == 0:
                store64(at, low)
                store64(at + 8, high)
                store32(owners + 4 * slot, change)
                bit = high & bit_mask
                store8(bits + (bit >> 3), load8(bits + (bit >> 3)) | 1 << (bit & 7))
                keys += 1
                break
            if found_low == low and found_high == high:
                owner = load32(owners + 4 * slot)
                if _before(orders, words, owner, change):
                    store8(lost + owner, 1)
                    store32(owners + 4 * slot, change)
                else:
                    store8(lost + change, 1)
                break
            slot = (slot + 1) & mask
    return keys


@compiled(types.boolean(I, I, I, I, I, I), **FAST)
def any_inside(leads: int, columns: int, keys: int, first: int, last: int, box: int) -> bool:
    """Whether any of the keys [first, last) lies in a box.

    box: int64[columns, 2], inclusive bounds. leads: int64[columns, keys].
    """
    for key in range(first, last):
        inside = True
        for column in range(columns):
            lead = load64(leads + 8 * (column * keys + key))
            if lead < word(box, 2 * column) or lead > word(box, 2 * column + 1):
                inside = False
                break
        if inside:
            return True
    return False
