"""The hash of a row of a table without a key: equal rows, and only these, have equal hashes.

In:  the source's columns of a table by name, canonical types; shard columns too where rows of
     several tables meet.
Out: 32 hex digits per row: BLAKE2b with a digest of 128 bits over the row's bytes.

The bytes of a row, for its columns that aren't NULL in the order of their names (by code point):
length of the name as u32 and the name in UTF-8; a letter for the kind of value; the value. All
numbers little-endian:

    i  integers, booleans, dates (days since 1970), as 64 bits          t  timestamps, microseconds since 1970, 64 bits
    f  float, its 32 bits in 64       d  double, 64 bits                m  decimals: scale as u8; unscaled, 128 bits
    b  text (UTF-8) and bytes: length as 64 bits, bytes                 v  vectors: as b, floats of 32 bits each

Therefore the order of columns doesn't matter, nor a wider integer, nor an added column that is NULL. NULL
differs from '', and no value can run into the next one. The hash is cryptographic: a person who
writes to the source chooses the values, and equal hashes would make two rows one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from tidegate.errors import UnsupportedValue
from tidegate.upsert.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.upsert.kernel.row_bytes import measure_rows, write_rows
from tidegate.upsert.keys.hash import canonical, cell_words

DIGEST_BYTES: Final = 16
_ROWS: Final = 1 << 16  # at a time: what is held in memory beside the rows


def row_hashes(columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.StringArray:
    """columns: by name, of one length; at least one. Raises UnsupportedValue for a type that silver doesn't have."""
    arrays = {name: _combined(column) for name, column in sorted(columns.items())}
    rows = len(next(iter(arrays.values())))
    digests: list[str] = []
    for at in range(0, rows, _ROWS):
        digests += _block({name: array[at : at + _ROWS] for name, array in arrays.items()})
    return pa.array(digests, pa.string())


def _block(columns: Mapping[str, pa.Array]) -> list[str]:
    cells = [(name, *_cell(array)) for name, array in columns.items()]
    rows = len(cells[0][2])
    words = np.array([cell_words(array) for _, _, array in cells], np.int64)
    prefixes = [len(name.encode()).to_bytes(4, "little") + name.encode() + kind for name, kind, _ in cells]
    kept = np.frombuffer(b"".join(prefixes), np.uint8)
    at = 0
    for i, ((_, kind, _), prefix) in enumerate(zip(cells, prefixes, strict=True)):
        words[i, L.PREFIX], words[i, L.PREFIX_BYTES] = kept.ctypes.data + at, len(prefix)
        if kind == b"f":
            words[i, L.KIND] = L.CELL_FLOAT
        at += len(prefix)
    offsets = np.empty(rows + 1, np.int64)
    size = measure_rows(words.ctypes.data, len(cells), rows, offsets.ctypes.data)
    data = np.empty(size, np.uint8)
    write_rows(words.ctypes.data, len(cells), rows, data.ctypes.data)
    view, edges = memoryview(data.data), offsets.tolist()
    return [hashlib.blake2b(view[start:end], digest_size=DIGEST_BYTES).hexdigest() for start, end in pairwise(edges)]


def _combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _cell(array: pa.Array) -> tuple[bytes, pa.Array]:
    """(letter of the kind, an array that the kernel reads)."""
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        return _cell(array.cast(kind.value_type))
    if types.is_float32(kind):
        return b"f", array.view(pa.int32())
    if types.is_float64(kind):
        return b"d", array
    if types.is_timestamp(kind):
        return b"t", canonical(array)
    if types.is_decimal(kind):
        return b"m" + bytes([kind.scale]), canonical(array)
    if types.is_list(kind) or types.is_large_list(kind):
        return b"v", _floats_as_bytes(array)
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_date(kind):
        return b"i", canonical(array)
    return b"b", canonical(array)


def _floats_as_bytes(array: pa.ListArray) -> pa.Array:
    if not pa.types.is_float32(array.type.value_type) or array.values.null_count:
        raise UnsupportedValue(f"{array.type} has no row hash", remedy="leave the column out")
    offsets = array.offsets.cast(pa.int64()).to_numpy() * 4
    valid = None if not array.null_count else pa.array(array.is_valid()).buffers()[1]
    floats = array.values.buffers()[1] or pa.py_buffer(b"")  # none at all where every row is NULL
    shifted = offsets + 4 * array.values.offset
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(array), [valid, pa.py_buffer(shifted), floats])
