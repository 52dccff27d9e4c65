"""One net change per key: of several changes of a key in one batch only the last can matter.

In:  changes in log order (binlog/rows/decode.py): a record batch and its key's names, or the hashes of their keys.
Out: the rows that are the last of their key, in the same order.

This is right because a change has the whole row (upsert) or its absence (delete), so earlier changes don't matter. An
update of the key is a delete of the old key and an upsert of the new one, so each key is independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.compiled import compiled

_INDEX: Final = "index"
_HASHES: Final = numba.types.Array(numba.types.uint64, 2, "C", readonly=True)
_WORDS: Final = numba.types.Array(numba.types.int64, 1, "C", readonly=True)


def net_last_per_key(batch: pa.RecordBatch, key_names: Sequence[str]) -> pa.RecordBatch:
    """Keep the last row per key. key_names: at least one; a table without a key has no net change to take."""
    assert key_names, "a table without a key keeps every change"
    if batch.num_rows < 2:
        return batch
    keys = [batch.column(name) for name in key_names]
    if len(keys) == 1 and pa.types.is_integer(keys[0].type) and keys[0].null_count == 0:
        values = keys[0].cast(pa.int64()).to_numpy(zero_copy_only=True)
        last = _last_of_integers(values)
    else:
        last = _last_of_any(keys)
    if len(last) == batch.num_rows:
        return batch
    return batch.take(pa.array(last))


@compiled(numba.int64[::1](_HASHES), cache=True, nogil=True, boundscheck=False)
def last_per_hash(hashes: Any) -> Any:
    """hashes: uint64[n, 2], one 128-bit key hash per change, in log order -> indices of the last of each, ascending."""
    count = hashes.shape[0]
    slots = 16
    while slots < 2 * count:
        slots *= 2
    seen = np.full(slots, -1, np.int64)  # index of the change whose hash lies here
    last = np.empty(count, np.int64)
    at = count
    for row in range(count - 1, -1, -1):
        slot = np.int64(hashes[row, 0] & np.uint64(slots - 1))
        while seen[slot] >= 0 and (hashes[seen[slot], 0] != hashes[row, 0] or hashes[seen[slot], 1] != hashes[row, 1]):
            slot = (slot + 1) & (slots - 1)
        if seen[slot] < 0:
            seen[slot] = row
            at -= 1
            last[at] = row
    return last[at:].copy()


def _last_of_any(keys: list[pa.Array]) -> npt.NDArray[np.int64]:
    names = [f"key{i}" for i in range(len(keys))]
    # -0.0 and 0.0 are one key to the server, and to MERGE; adding zero makes them one here.
    keys = [pc.add(key, pa.scalar(0.0, key.type)) if pa.types.is_floating(key.type) else key for key in keys]
    numbered = pa.table([*keys, pa.array(np.arange(len(keys[0])))], names=[*names, _INDEX])
    grouped = numbered.group_by(names, use_threads=False).aggregate([(_INDEX, "max")])
    return np.sort(grouped.column(f"{_INDEX}_max").to_numpy())


@compiled(numba.int64[::1](_WORDS), cache=True, nogil=True, boundscheck=False)
def _last_of_integers(values: Any) -> Any:
    """Indices of the last occurrence of each value, ascending. It walks from the end: a value that was seen already is
    an older occurrence.
    """
    count = values.shape[0]
    slots = 16
    while slots < 2 * count:
        slots *= 2
    seen = np.full(slots, -1, np.int64)  # index of the row whose value lies here
    last = np.empty(count, np.int64)
    at = count
    for row in range(count - 1, -1, -1):
        mixed = np.uint64(values[row]) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(slots - 1))
        while seen[slot] >= 0 and values[seen[slot]] != values[row]:
            slot = (slot + 1) & (slots - 1)
        if seen[slot] < 0:
            seen[slot] = row
            at -= 1
            last[at] = row
    return last[at:].copy()
