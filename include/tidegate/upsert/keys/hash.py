"""128-bit hashes of keys: equal for equal keys, whichever program wrote them.

In:  a key's columns as Arrow arrays: from the decoder, or from Parquet that Spark, delta-rs or
     tidegate wrote.
Out: key_hashes: uint64[n, 2]; leads: an int64 per value that keeps the values' order, for pruning
     by bounds.

Equal keys are those whose canonical values are the same bytes (the log's before images carry the
old key exactly); only -0.0 = 0.0. Integers of any width, a dictionary and its values, a timestamp
in any unit, a decimal as integer or as bytes therefore hash alike. A key that holds a NULL hashes
to (0, 0) and matches nothing, as in SQL.

A false match would delete a row. With n keys in a window and m in the table its chance is at most
n*m / 2^128: 10^6 and 10^10 keys give 3e-23 per window. A key of one integer can't collide at all.
`seed` makes hashes of text unforeseeable; hashes of different seeds don't compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import UnsupportedValue
from tidegate.upsert.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.upsert.kernel.hashes import hash_rows, lead_rows

Hashes = npt.NDArray[np.uint64]
Seed = tuple[int, int]

SEED: Final[Seed] = (0x243F6A8885A308D3, 0x13198A2E03707344)  # digits of pi
_INTEGERS: Final = {
    pa.int8(): L.CELL_INT8,
    pa.int16(): L.CELL_INT16,
    pa.int32(): L.CELL_INT32,
    pa.int64(): L.CELL_INT64,
    pa.date32(): L.CELL_INT32,
}


class Cells:
    """Columns of equal length as the kernels see them; keeps their buffers alive."""

    def __init__(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        arrays = [canonical(column) for column in columns]
        assert arrays, "at least one column"
        assert len({len(array) for array in arrays}) == 1, "columns of one length"
        self.rows = len(arrays[0])
        self.words = np.array([cell_words(array) for array in arrays], np.int64)
        self._arrays = arrays

    @property
    def count(self) -> int:
        return len(self._arrays)

    @property
    def address(self) -> int:
        return int(self.words.ctypes.data)

    @property
    def nulls(self) -> bool:
        return any(array.null_count for array in self._arrays)


def key_hashes(columns: Sequence[pa.Array | pa.ChunkedArray], seed: Seed = SEED) -> Hashes:
    """uint64[n, 2] of n keys; (0, 0) for a key that holds a NULL.

    Raises UnsupportedValue for a type that can't be (part of) a key.
    """
    cells = Cells(columns)
    out = np.empty((cells.rows, 2), np.uint64)
    words = np.array(seed, np.uint64)
    hash_rows(cells.address, cells.count, 0, cells.rows, words.ctypes.data, out.ctypes.data)
    return out


def compares_exactly(key_schema: pa.Schema) -> bool:
    """Whether each word of a key's hash alone tells keys apart: keys of one integer, a date or a timestamp."""
    return len(key_schema) == 1 and _cell(canonical(pa.array([], key_schema.types[0])).type) <= L.CELL_INT64


def leads(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Leads of n values, int64[n]: a <= b implies lead(a) <= lead(b); 0 for NULL."""
    cells = Cells([column])
    out = np.empty(cells.rows, np.int64)
    lead_rows(cells.address, cells.rows, out.ctypes.data)
    return out


def canonical(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One contiguous array of a type that the kernels read. Raises UnsupportedValue."""
    array = _whole(column)
    kind = array.type
    try:
        if pa.types.is_dictionary(kind):
            return canonical(array.cast(kind.value_type))
        if pa.types.is_unsigned_integer(kind) or pa.types.is_date64(kind):
            return array.cast(pa.date32() if pa.types.is_date64(kind) else pa.int64())
        if pa.types.is_timestamp(kind):
            return array.cast(pa.timestamp("us", tz=kind.tz)).view(pa.int64())
        if pa.types.is_float32(kind) or pa.types.is_float16(kind):
            return array.cast(pa.float64())
        if pa.types.is_decimal(kind) and not pa.types.is_decimal128(kind):
            return array.cast(pa.decimal128(kind.precision, kind.scale))
        if kind in (pa.string_view(), pa.binary_view()):
            return array.cast(pa.large_binary() if kind == pa.binary_view() else pa.large_string())
    except pa.ArrowInvalid as error:
        raise UnsupportedValue(
            f"a key of type {kind} can't be compared: {error}", remedy="set apply.writer: merge in the pipeline file"
        ) from None
    return array


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def cell_words(array: pa.Array) -> list[int]:
    """layout.COLUMN_WORDS of one canonical array, without a prefix."""
    buffers = array.buffers()
    addresses = [0 if buffer is None else buffer.address for buffer in buffers]
    valid = addresses[0] if array.null_count else 0
    kind, values, data, width = _cell(array.type), addresses[1], 0, 0
    if kind == L.CELL_BIT:
        width = array.offset
    elif kind in (L.CELL_BYTES32, L.CELL_BYTES64):
        values += array.offset * (4 if kind == L.CELL_BYTES32 else 8)
        data = addresses[2]
    else:
        width = array.type.bit_width // 8
        values += array.offset * width
    return [kind, values, valid, array.offset, data, width, 0, 0]


def _cell(kind: pa.DataType) -> int:
    if kind in _INTEGERS:
        return _INTEGERS[kind]
    if pa.types.is_boolean(kind):
        return L.CELL_BIT
    if pa.types.is_float64(kind):
        return L.CELL_DOUBLE
    if pa.types.is_decimal128(kind):
        return L.CELL_DECIMAL
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return L.CELL_FIXED if pa.types.is_fixed_size_binary(kind) else L.CELL_BYTES32
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return L.CELL_BYTES64
    if pa.types.is_fixed_size_binary(kind):
        return L.CELL_FIXED
    raise UnsupportedValue(
        f"a column of type {kind} can't be in a key", remedy="set apply.writer: merge in the pipeline file"
    )
