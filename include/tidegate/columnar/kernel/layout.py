"""Names for the words of the int64 arrays that carry plans, events and counters to the kernels.

A kernel takes few arrays instead of many arguments. These constants are the indices of their
fields.
"""

from __future__ import annotations

from typing import Final

# --- events: rows events of one batch, int64[n, EVENT_WORDS] ---------------------------------------
EVENT_START: Final = 0  # address of the column count, after the post-header
EVENT_END: Final = 1  # address after the last row, without checksum
EVENT_OP: Final = 2  # OP_*
EVENT_COMMIT_TS: Final = 3
EVENT_WORDS: Final = 4

OP_WRITE: Final = 0
OP_UPDATE: Final = 1
OP_DELETE: Final = 2
OP_PARTIAL_UPDATE: Final = 3  # an update whose JSON columns hold differences

# --- columns: int64[columns * COLUMN_WORDS] ----------------------------------------------------------
KIND: Final = 0  # CELL_*
WIDTH: Final = 1  # bytes on the wire; of the length prefix for CELL_BYTES
P1: Final = 2  # parameters; the kinds of cells below say what each means
P2: Final = 3
P3: Final = 4
P4: Final = 5
VALUES: Final = 6  # addresses in the arena: of values (or 32-bit offsets), of the validity bitmap, of bytes
VALID: Final = 7
BYTES: Final = 8
BYTES_MAX: Final = 9  # room for bytes
USED: Final = 10  # bytes written
NULLS: Final = 11
KEY: Final = 12  # 1 for a key column
BEFORE: Final = 13  # of an update: address of the key column's bytes in the before image, -1 for NULL
BEFORE_BYTES: Final = 14
NULL_DATES: Final = 15  # zero or impossible dates that became NULL
DATES: Final = 16  # 1: a date that no calendar has is ERROR_DATE, not NULL
COLUMN_WORDS: Final = 17

# --- state of one batch: int64[STATE_WORDS] ----------------------------------------------------------
COLUMNS: Final = 0
ROWS: Final = 1
ROWS_MAX: Final = 2
OPS: Final = 3  # addresses in the arena of the three system columns
COMMIT_TS: Final = 4
ORDINALS: Final = 5
KEYED: Final = 6  # columns up to and including the last key column; 0 for a table without a key
ERROR: Final = 7  # ERROR_*
ERROR_EVENT: Final = 8
ERROR_COLUMN: Final = 9
ERROR_AT: Final = 10
DATA: Final = 11  # address of the payload: ordinals count from it
# Images with absent columns only (partial_rows.py):
MARKS: Final = 12  # address of the marks
PRESENT: Final = 13  # address of uint8[columns, ROWS_MAX]: 1 if the event tells a row's value
MODE: Final = 14  # MODE_*
DOCUMENTS: Final = 15  # JSON columns in the table
DIFFS: Final = 16  # address of the bits of JSON columns that hold differences in this image, or 0
STATE_WORDS: Final = 17

MODE_NET: Final = 0  # rows as they are to be applied
MODE_IMAGES: Final = 1  # images as they were logged

# --- marks: where an image's values lie, int64[2, columns, MARK_WORDS]; the before (or only) image's first ---------
MARK_AT: Final = 0  # address of the value, length prefix included; or one of:
MARK_NULL: Final = 0
MARK_ABSENT: Final = -1
MARK_BYTES: Final = 1
MARK_DIFFS: Final = 2  # 1 when it is differences from the before image's JSON document
MARK_JSON: Final = 3  # 1 for a JSON column of MySQL
MARK_COMPUTED: Final = 4  # 1 for a virtual column: MariaDB leaves it out of an after image, even if it changed
MARK_NEEDED: Final = 5  # 1 for a column without a known default: a new row must have it
MARK_UNASKED: Final = 6  # 1 for a column whose value isn't wanted: any image may lack it
MARK_WORDS: Final = 7
PATCHED: Final = 0xFF  # first byte of a document that is to be patched: its length (u32), itself, the differences

# --- kinds of cells: how bytes become a value ----------------------------------------------------------
CELL_BYTES: Final = 1  # length prefix of WIDTH bytes, then bytes. P1: pad with 0x00 to so many; P2: 1 for a geometry
CELL_INT8: Final = 2  # wire 1, out 1
CELL_UINT8: Final = 3  # wire 1, out 2
CELL_INT16: Final = 4
CELL_UINT16: Final = 5  # wire 2, out 4
CELL_INT24: Final = 6  # wire 3, out 4
CELL_UINT24: Final = 7
CELL_COPY32: Final = 8  # wire 4, out 4: int, float
CELL_UINT32: Final = 9  # wire 4, out 8
CELL_COPY64: Final = 10  # wire 8, out 8: bigint, double
CELL_UINT64: Final = 11  # wire 8, out 16 (decimal128)
CELL_YEAR: Final = 12  # wire 1, out 2
CELL_DATE: Final = 13  # wire 3, out 4
CELL_DATETIME: Final = 14  # wire 5 + fraction, out 8. P1: bytes of the fraction; P2: its unit in microseconds
CELL_TIMESTAMP: Final = 15  # wire 4 + fraction, out 8. P1, P2 as above
CELL_TIME: Final = 16  # wire 3 + fraction, out text. P1, P2 as above; P3: digits of the fraction
CELL_OLD_DATETIME: Final = 17  # wire 8, out 8: YYYYMMDDhhmmss as a number
CELL_OLD_TIMESTAMP: Final = 18  # wire 4, out 8
CELL_OLD_TIME: Final = 19  # wire 3, out text: [-]hhmmss as a number
CELL_DECIMAL: Final = (
    20  # out 16. P1: digits before the first whole group; P2: groups before the point; P3, P4 after it
)
CELL_DECIMAL_TEXT: Final = 21
CELL_BIT: Final = 22  # wire 1, out 1
CELL_BITS: Final = 23  # out WIDTH bytes
CELL_ENUM: Final = 24  # wire 1 or 2, out 4: number of the member. P1: how many there are
CELL_SET: Final = 25  # wire 1 to 8, out 8: bits. P1: mask of the bits that have a member

CELL_DECIMAL_SMALL: Final = 26  # CELL_DECIMAL with at most 8 bytes and 18 digits
CELL_HIRES_DATETIME: Final = 27  # wire 6 to 8, out 8. P1: units of the fraction in a second; P2: microseconds in one
CELL_HIRES_TIME: Final = 28  # wire 4 to 6, out text. P1, P2 as above; P3: digits of the fraction

# --- errors ----------------------------------------------------------------------------------------------
ERROR_NONE: Final = 0
ERROR_CUT: Final = -2  # the event ends inside a value or an image
ERROR_COLUMNS: Final = -3  # the event's column count isn't the TABLE_MAP's
ERROR_IMAGE: Final = -4  # columns are missing from the image
ERROR_ROOM: Final = -5  # more rows than estimated: count them and try again
ERROR_MEMBER: Final = -6  # an enum or set value without a member
ERROR_BATCH: Final = -7  # more than 2 GiB in one column
ERROR_DATE: Final = -10  # a zero or impossible date where that is an error
ERROR_VALUE: Final = -11  # bytes that no server writes for a value of this type
# Images with absent columns only:
ERROR_UNKNOWN: Final = -21  # an update has a column in neither image
ERROR_KEY: Final = -22  # the before image lacks a column that tells which row it is
ERROR_EMPTY: Final = -23  # images without any column: their number is unknown
ERROR_OPTIONS: Final = -24  # value options that we don't know
ERROR_DIFFS: Final = -25  # differences from a document that the before image lacks
ERROR_DEFAULT: Final = -27  # a new row lacks a column without a known default
ERROR_DOCUMENT: Final = -26  # a JSON document of a type that doesn't exist
