"""An index of one data file in memory: its rows by the hash of their key.

In:  a live file of silver, the key's columns as silver has them, the seed of the hashes.
Out: FileIndex: positions of the rows that have one of some keys, dead rows among them.

A data file never changes under its name, so an index of it is right for as long as it is kept, whoever writes to the
table meanwhile. A commit adds other files, and names the rows that it deletes in the file's deletion vector.

A key of one integer is compared exactly. Any other key is compared by 96 bits of its hash and by the bits that choose
the bucket, 110 of 128 in a file of a million rows; keys/hash.py has the reckoning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.delta.table.live_file import LiveFile
from tidegate.lake.files import LakeFiles
from tidegate.upsert.kernel.key_index import count_rows, find_rows, place_rows
from tidegate.upsert.keys.file import Int64s
from tidegate.upsert.keys.hash import Hashes, Seed, compares_exactly, key_hashes
from tidegate.upsert.keys.key_columns import KeyColumns

_ROWS_PER_BUCKET: Final = 8  # their first words fill a cache line
HASH_BYTES: Final = 16  # per row, while an index is made


@dataclass(frozen=True, slots=True)
class FileIndex:
    """n rows. starts: uint32[buckets + 1]. lows: uint64[n]. highs: uint32[n], or empty. positions: uint32[n].

    shift: of a hash's second word, to its bucket. rows: in the file, those with a NULL in their key, too.
    """

    rows: int
    shift: int
    starts: npt.NDArray[np.uint32]
    lows: npt.NDArray[np.uint64]
    highs: npt.NDArray[np.uint32]
    positions: npt.NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + self.lows.nbytes + self.highs.nbytes + self.positions.nbytes

    def find(self, hashes: Hashes) -> Int64s:
        """Ascending positions of the rows with one of the keys. hashes: uint64[keys, 2], contiguous, no key twice."""
        words, room = self.words(), len(hashes) + 8
        while True:
            out = np.empty(room, np.int64)
            hits = find_rows(hashes.ctypes.data, len(hashes), words.ctypes.data, out.ctypes.data, room)
            if hits <= room:
                return np.sort(out[:hits])
            room = hits

    def words(self) -> Int64s:
        """As the kernels see it: a new array, which its caller must hold while they run."""
        highs = self.highs.ctypes.data if len(self.highs) else 0
        parts = (self.shift, self.starts.ctypes.data, self.lows.ctypes.data, highs, self.positions.ctypes.data)
        return np.array(parts, np.int64)


def bytes_of(rows: int, key_schema: pa.Schema) -> int:
    """Bytes of an index of so many rows."""
    return rows * (12 if compares_exactly(key_schema) else 16) + 4 * (_buckets(rows) + 1)


def index_of(lake: LakeFiles, table_path: str, file: LiveFile, key_schema: pa.Schema, seed: Seed) -> FileIndex:
    """Read the key's columns of a file, and index them.

    Raises SchemaMismatch, LakeRefused or LakeUnavailable when the file can't be read for certain.
    """
    with KeyColumns(lake, table_path, file, key_schema) as columns:
        hashes = np.empty((columns.rows, 2), np.uint64)
        for at, arrays in columns.every_batch():
            hashes[at : at + len(arrays[0])] = key_hashes(arrays, seed)
    return indexed(hashes, exact=compares_exactly(key_schema))


def indexed(hashes: Hashes, *, exact: bool) -> FileIndex:
    """hashes: of a file's rows in their order. exact: each word of a hash alone tells keys apart."""
    rows, buckets = len(hashes), _buckets(len(hashes))
    starts, none = np.zeros(buckets + 1, np.uint32), np.empty(0, np.uint64)
    index = FileIndex(rows, 65 - buckets.bit_length(), starts, none, none.view(np.uint32), none.view(np.uint32))
    words = index.words()
    count = int(count_rows(hashes.ctypes.data, rows, words.ctypes.data))
    starts[buckets] = count
    highs = np.empty(0 if exact else count, np.uint32)
    index = replace(index, lows=np.empty(count, np.uint64), highs=highs, positions=np.empty(count, np.uint32))
    words = index.words()
    place_rows(hashes.ctypes.data, rows, words.ctypes.data)
    return index


def _buckets(rows: int) -> int:
    """A power of two, two at least: a shift by 64 bits isn't defined."""
    return max(2, 1 << (rows // _ROWS_PER_BUCKET).bit_length())
