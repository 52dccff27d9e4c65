"""Rows as bytes: two different rows never have the same bytes.

In:  columns as layout.py describes them, and what each puts in front of its values.
Out: one text of bytes per row.

Per column that isn't NULL: its prefix, then 8 bytes of a number (16 of a decimal), or the length as
8 bytes and the bytes themselves.
"""

from __future__ import annotations

from typing import Any

from numba import types

from tidegate.columnar.kernel.memory import FAST, I, copy_bytes, load32, load64, store64, word
from tidegate.compiled import compiled
from tidegate.upsert.kernel import layout as L  # noqa: N812 - a page of constants
from tidegate.upsert.kernel.hashes import bit, integer, length_of, start_of


@compiled(types.boolean(I, I), forceinline=True, **FAST)
def _is_null(column: int, row: int) -> bool:
    valid = word(column, L.VALID)
    return valid != 0 and bit(valid, word(column, L.BIT) + row) == 0


@compiled(I(I, I, I), forceinline=True, **FAST)
def _size(column: int, kind: int, row: int) -> int:
    if kind == L.CELL_DECIMAL:
        return 16
    return 8 + length_of(kind, column, row) if kind >= L.CELL_BYTES32 else 8


@compiled(I(I, I, I, I), forceinline=True, **FAST)
def _number(column: int, kind: int, values: int, row: int) -> Any:
    if kind == L.CELL_BIT:
        return bit(values, word(column, L.WIDTH) + row)
    if kind == L.CELL_FLOAT:
        return load32(values + 4 * row)
    if kind == L.CELL_DOUBLE:
        return load64(values + 8 * row)
    return integer(kind, values, row)


@compiled(I(I, I, I, I), **FAST)
def measure_rows(columns: int, count: int, rows: int, offsets: int) -> int:
    """int64[rows + 1] at `offsets`: where each row's bytes start; gives the size of all."""
    at = 0
    for row in range(rows):
        store64(offsets + 8 * row, at)
        for i in range(count):
            column = columns + 8 * L.COLUMN_WORDS * i
            if not _is_null(column, row):
                at += word(column, L.PREFIX_BYTES) + _size(column, word(column, L.KIND), row)
    store64(offsets + 8 * rows, at)
    return at


@compiled(I(I, I, I, I), **FAST)
def write_rows(columns: int, count: int, rows: int, out: int) -> int:
    """The bytes of all rows, one after the other, at `out`; gives where they end."""
    for row in range(rows):
        for i in range(count):
            column = columns + 8 * L.COLUMN_WORDS * i
            if _is_null(column, row):
                continue
            kind, values, prefix = word(column, L.KIND), word(column, L.VALUES), word(column, L.PREFIX_BYTES)
            copy_bytes(out, word(column, L.PREFIX), prefix)
            out += prefix
            if kind >= L.CELL_BYTES32:
                length = length_of(kind, column, row)
                store64(out, length)
                copy_bytes(out + 8, start_of(kind, column, row), length)
                out += 8 + length
            elif kind == L.CELL_DECIMAL:
                store64(out, load64(values + 16 * row))
                store64(out + 8, load64(values + 16 * row + 8))
                out += 16
            else:
                store64(out, _number(column, kind, values, row))
                out += 8
    return out
