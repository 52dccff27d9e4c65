"""Fields of the int64 arrays through which columns reach the kernels.

In:  nothing. Out: constants.
"""

from __future__ import annotations

from typing import Final

# --- a column: int64[COLUMN_WORDS] -------------------------------------------------------------------
KIND: Final = 0  # CELL_*
VALUES: Final = 1  # address of the first row's value; of the bytes' offsets for CELL_BYTES*
VALID: Final = 2  # address of the validity bitmap, 0 without nulls
BIT: Final = 3  # the first row's bit in the validity bitmap
BYTES: Final = 4  # address of the bytes
WIDTH: Final = 5  # bytes of a value of CELL_FIXED; the first row's bit in the values of CELL_BIT
PREFIX: Final = 6  # row_bytes.py: address of what stands in front of a value, and its length
PREFIX_BYTES: Final = 7
COLUMN_WORDS: Final = 8

CELL_INT8: Final = 1
CELL_INT16: Final = 2
CELL_INT32: Final = 3
CELL_INT64: Final = 4
CELL_BIT: Final = 5
CELL_FLOAT: Final = 6  # row_bytes.py only: keys have doubles
CELL_DOUBLE: Final = 7
CELL_DECIMAL: Final = 8  # 16 bytes, little-endian
CELL_BYTES32: Final = 9  # 32-bit offsets
CELL_BYTES64: Final = 10  # 64-bit offsets
CELL_FIXED: Final = 11

# --- a table of keys: int64[TABLE_WORDS] -------------------------------------------------------------
SLOTS: Final = 0  # address of uint64[slots, 2]; 0, 0 is an empty slot
SLOT_MASK: Final = 1  # slots - 1
FILTER: Final = 2  # address of the filter's 64-bit words
FILTER_MASK: Final = 3  # its bits - 1
SEED: Final = 4  # two words: the seed of the hashes
OWNERS: Final = 6  # address of int32[slots], the change in each slot; while the table is made
TABLE_WORDS: Final = 7

# --- an index of a file's keys: int64[INDEX_WORDS] ---------------------------------------------------
SHIFT: Final = 0  # of a hash's second word, to its bucket
STARTS: Final = 1  # address of uint32[buckets + 1]
LOWS: Final = 2  # address of uint64[n], the hashes' first words
HIGHS: Final = 3  # address of uint32[n], the low halves of their second words; 0 without
POSITIONS: Final = 4  # address of uint32[n], the rows' positions in the file
INDEX_WORDS: Final = 5
