"""Names for the words through which payloads, rows and columns of TiDB reach the kernels.

Columns have the words of a binlog's (columnar/kernel/layout.py); what those call before images is free here.
"""

from __future__ import annotations

from typing import Final

from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants

# --- payloads of a segment: int64[n, PAYLOAD_WORDS]; offsets count from the segment's first byte ----------------------
AT: Final = 0  # of the length in front of it
BYTES: Final = 1  # with that length
TP: Final = 2
START_TS: Final = 3
COMMIT_TS: Final = 4
JOB_ID: Final = 5
VALUE_AT: Final = 6  # of its prewrite_value
VALUE_BYTES: Final = 7
PAYLOAD_WORDS: Final = 8

# --- tables of prewrites: int64[n, TABLE_WORDS] -----------------------------------------------------------------------
TABLE_PAYLOAD: Final = 0  # number of the payload
TABLE_ID: Final = 1
TABLE_WORDS: Final = 2

# --- rows, in the order in which they were done: int64[n, ROW_WORDS] --------------------------------------------------
ROW_PAYLOAD: Final = 0
ROW_TABLE_ID: Final = 1
ROW_KIND: Final = 2  # payload.Mutation
ROW_START: Final = 3
ROW_END: Final = 4
ROW_COMMIT_TS: Final = 5
ROW_ORDINAL: Final = 6  # of its image before it; the one after it has the next
ROW_WORDS: Final = 7

# --- words of a column that mean something else here ------------------------------------------------------------------
READ_AS: Final = L.BEFORE  # READ_*
HANDLE: Final = L.BEFORE_BYTES  # which datum of the handle it is, or -1
ABSENT: Final = L.P4  # address of uint8[rows]: 1 where a row doesn't name the column; 0 when nobody asks

READ_INT: Final = 0  # P1, P2: the smallest and the largest number
READ_UINT64: Final = 1
READ_BOOL: Final = 2
READ_FLOAT: Final = 3
READ_DOUBLE: Final = 4
READ_DECIMAL: Final = 5  # P1: digits after the point; P2, P3: 10 to the number of digits, low and high half
READ_DATE: Final = 6
READ_MOMENT: Final = 7
READ_TIME: Final = 8  # P3: digits of the fraction
READ_BITS: Final = 9  # WIDTH bytes
READ_ENUM: Final = 10  # P1: members
READ_SET: Final = 11  # P1: mask of the bits that have a member
READ_BYTES: Final = 12  # P1: pad to so many
READ_RAW: Final = 13  # the datum as it is: its value is made by the slow decoder's functions

# --- state of one batch: int64[STATE_WORDS] ---------------------------------------------------------------------------
COLUMNS: Final = 0
IDS: Final = 1  # addresses: of the columns' ids, int64, sorted; of the column that each one is
ORDER: Final = 2
HANDLES: Final = 3  # datums of the handle
MARKS: Final = 4  # address of int64[2, columns]: where a side has a column's datum, or 0
PLACES: Final = 5  # address of int64[PLACES_MAX]: where a row's datums begin
KEYED: Final = 6  # 1 for a table with a key
MODE: Final = 7  # L.MODE_*
ROWS: Final = 8
OPS: Final = 9  # addresses of the system columns
COMMITS: Final = 10
ORDINALS: Final = 11
TWINS: Final = 12  # address of uint8[rows]: 1 for a delete in front of an upsert whose key's bytes differ
TWIN_COUNT: Final = 13
DATA: Final = 14  # address of the segment's first byte
STATE_WORDS: Final = 15

# Datums of one row: both sides of 4,096 columns, each with its id. A row of more is read slowly.
PLACES_MAX: Final = 4 * 4200
