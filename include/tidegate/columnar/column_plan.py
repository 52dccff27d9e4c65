"""How one column is decoded and finished: the part of a plan all decoders share.

In:  nothing; these are values. A decoder's own plan makes a ColumnPlan for each column.
Out: the cell the kernel writes, its bytes, and what finish.py needs for the Arrow array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.columnar.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.schema.model.types import CanonicalType

# Bytes that the kernel writes per value; 4 for 32-bit offsets.
OUT_BYTES: Final = {
    **dict.fromkeys((L.CELL_INT8, L.CELL_BIT), 1),
    **dict.fromkeys((L.CELL_UINT8, L.CELL_INT16, L.CELL_YEAR), 2),
    **dict.fromkeys((L.CELL_UINT16, L.CELL_INT24, L.CELL_UINT24, L.CELL_COPY32, L.CELL_DATE, L.CELL_ENUM), 4),
    **dict.fromkeys((L.CELL_UINT32, L.CELL_COPY64, L.CELL_SET), 8),
    **dict.fromkeys((L.CELL_DATETIME, L.CELL_TIMESTAMP, L.CELL_OLD_DATETIME, L.CELL_OLD_TIMESTAMP), 8),
    L.CELL_HIRES_DATETIME: 8,
    **dict.fromkeys((L.CELL_UINT64, L.CELL_DECIMAL, L.CELL_DECIMAL_SMALL), 16),
}
# Kinds whose values are offsets into bytes -> the most bytes that the kernel makes of one value (0: as many as it has).
VARIABLE: Final = {
    **dict.fromkeys((L.CELL_BYTES, L.CELL_BITS), 0),
    **dict.fromkeys((L.CELL_TIME, L.CELL_OLD_TIME, L.CELL_HIRES_TIME), 24),
    L.CELL_DECIMAL_TEXT: 96,
}
# Width of an integer in bytes -> the kernel's cells: signed, unsigned.
INTEGER_CELLS: Final = {
    1: (L.CELL_INT8, L.CELL_UINT8),
    2: (L.CELL_INT16, L.CELL_UINT16),
    3: (L.CELL_INT24, L.CELL_UINT24),
    4: (L.CELL_COPY32, L.CELL_UINT32),
    8: (L.CELL_COPY64, L.CELL_UINT64),
}


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """name, type: of the output column. charset: of its bytes. members: of enum and set, as text.

    inflated_max: the most bytes of a decompressed value; 0: the column isn't compressed. in_key:
    two different stored values must not read the same.
    """

    name: str
    type: CanonicalType
    cell: int
    charset: str
    members: tuple[str, ...] = ()
    inflated_max: int = 0
    in_key: bool = False
