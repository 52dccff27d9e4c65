"""128-bit hashes of rows of key columns, and their leading 64 bits in key order.

In:  columns as layout.py describes them. Out: uint64[rows, 2] and int64[rows].

A key of one integer column goes through two bijective 64-bit mixers: its hashes can't collide.
Anything else goes through SipHash-1-3 with its 128-bit result (Aumasson and Bernstein, 2012; the
long form as they describe it with their code), fed with 64-bit words: a value, or the length of a
text and its bytes. Therefore two keys of one table never give the same words.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types

from tidegate.columnar.kernel.memory import FAST, I, address, load8, load16, load32, load64, store64, swap64, word
from tidegate.compiled import compiled
from tidegate.upsert.kernel import layout as L  # noqa: N812 - a page of constants

U: Final = types.uint64
_STATE: Final = types.UniTuple(U, 4)
_SIGN: Final = -(1 << 63)
_SCRATCH_ROWS: Final = 2048  # a block's hashes stay in the first-level cache


@compiled(U(U, I), forceinline=True, **FAST)
def _rotate(value: Any, bits: int) -> Any:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@compiled(_STATE(_STATE), forceinline=True, **FAST)
def _sip_round(state: Any) -> Any:
    a, b, c, d = state
    a += b
    b = _rotate(b, 13) ^ a
    a = _rotate(a, 32)
    c += d
    d = _rotate(d, 16) ^ c
    a += d
    d = _rotate(d, 21) ^ a
    c += b
    b = _rotate(b, 17) ^ c
    c = _rotate(c, 32)
    return a, b, c, d


@compiled(_STATE(_STATE, I), forceinline=True, **FAST)
def _absorb(state: Any, value: int) -> Any:
    a, b, c, d = state
    a, b, c, d = _sip_round((a, b, c, d ^ np.uint64(value)))
    return a ^ np.uint64(value), b, c, d


@compiled(U(U, U), forceinline=True, **FAST)
def _mix(value: Any, factor: Any) -> Any:
    """A bijection of 64 bits (the finaliser of MurmurHash3 with another factor in front)."""
    value *= factor
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return value ^ (value >> np.uint64(33))


@compiled(I(I, I), forceinline=True, **FAST)
def bit(bitmap: int, number: int) -> int:
    """A bit of a bitmap, the lowest of a byte first."""
    return (load8(bitmap + (number >> 3)) >> (number & 7)) & 1


@compiled(I(I, I, I), forceinline=True, **FAST)
def integer(kind: int, values: int, row: int) -> int:
    """Sign-extended value of CELL_INT*."""
    if kind == L.CELL_INT64:
        return load64(values + 8 * row)
    if kind == L.CELL_INT32:
        return (load32(values + 4 * row) << 32) >> 32
    if kind == L.CELL_INT16:
        return (load16(values + 2 * row) << 48) >> 48
    return (load8(values + row) << 56) >> 56


@compiled(I(I), forceinline=True, **FAST)
def _double_bits(bits: int) -> int:
    """One pattern for both zeros and one for all NaNs."""
    if bits << 1 == 0:
        return 0
    if (bits & 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000:
        return 0x7FF8000000000000
    return bits


@compiled(I(I, I, I), forceinline=True, **FAST)
def start_of(kind: int, column: int, row: int) -> int:
    """Address of a row's bytes."""
    values = word(column, L.VALUES)
    if kind == L.CELL_BYTES32:
        return word(column, L.BYTES) + load32(values + 4 * row)
    if kind == L.CELL_BYTES64:
        return word(column, L.BYTES) + load64(values + 8 * row)
    return values + word(column, L.WIDTH) * row


@compiled(I(I, I, I), forceinline=True, **FAST)
def length_of(kind: int, column: int, row: int) -> int:
    """How many bytes a row's value of CELL_BYTES* or CELL_FIXED has."""
    values = word(column, L.VALUES)
    if kind == L.CELL_BYTES32:
        return load32(values + 4 * row + 4) - load32(values + 4 * row)
    if kind == L.CELL_BYTES64:
        return load64(values + 8 * row + 8) - load64(values + 8 * row)
    return word(column, L.WIDTH)


@compiled(_STATE(_STATE, I, I, I), forceinline=True, **FAST)
def _absorb_bytes(state: Any, kind: int, column: int, row: int) -> Any:
    at, length = start_of(kind, column, row), length_of(kind, column, row)
    state = _absorb(state, length)
    end = at + length
    while at + 8 <= end:
        state = _absorb(state, load64(at))
        at += 8
    if at < end:
        tail = 0
        for i in range(end - at):
            tail |= load8(at + i) << (8 * i)
        state = _absorb(state, tail)
    return state


@compiled(_STATE(_STATE, I, I), forceinline=True, **FAST)
def _absorb_cell(state: Any, column: int, row: int) -> Any:
    kind, values = word(column, L.KIND), word(column, L.VALUES)
    if kind <= L.CELL_INT64:
        return _absorb(state, integer(kind, values, row))
    if kind >= L.CELL_BYTES32:
        return _absorb_bytes(state, kind, column, row)
    if kind == L.CELL_BIT:
        return _absorb(state, bit(values, word(column, L.WIDTH) + row))
    if kind == L.CELL_DOUBLE:
        return _absorb(state, _double_bits(load64(values + 8 * row)))
    state = _absorb(state, load64(values + 16 * row))
    return _absorb(state, load64(values + 16 * row + 8))


@compiled(types.boolean(I, I, I), forceinline=True, **FAST)
def _has_null(columns: int, count: int, row: int) -> bool:
    for i in range(count):
        column = columns + 8 * L.COLUMN_WORDS * i
        valid = word(column, L.VALID)
        if valid != 0 and bit(valid, word(column, L.BIT) + row) == 0:
            return True
    return False


@compiled(types.UniTuple(U, 2)(I, I, I, U, U), forceinline=True, **FAST)
def _sip(columns: int, count: int, row: int, seed0: Any, seed1: Any) -> Any:
    state = (
        seed0 ^ np.uint64(0x736F6D6570736575),
        seed1 ^ np.uint64(0x646F72616E646F6D) ^ np.uint64(0xEE),
        seed0 ^ np.uint64(0x6C7967656E657261),
        seed1 ^ np.uint64(0x7465646279746573),
    )
    for i in range(count):
        state = _absorb_cell(state, columns + 8 * L.COLUMN_WORDS * i, row)
    a, b, c, d = state
    state = _sip_round(_sip_round(_sip_round((a, b, c ^ np.uint64(0xEE), d))))
    a, b, c, d = state
    low = a ^ b ^ c ^ d
    a, b, c, d = _sip_round(_sip_round(_sip_round((a, b ^ np.uint64(0xDD), c, d))))
    high = a ^ b ^ c ^ d
    if low | high == np.uint64(0):
        high = np.uint64(1)
    return low, high


@compiled(I(I, I, I, I, I, I), **FAST)
def hash_rows(columns: int, count: int, first: int, rows: int, seed: int, out: int) -> int:
    """Hashes of rows [first, first + rows) of `count` columns to uint64[rows, 2] at `out`; 0, 0 for a key with a NULL.

    seed: address of two words. Gives the number of keys with a NULL.
    """
    nulls = 0
    seed0, seed1 = np.uint64(word(seed, 0)), np.uint64(word(seed, 1))
    kind = word(columns, L.KIND)
    if count == 1 and kind <= L.CELL_INT64 and word(columns, L.VALID) == 0:
        values = word(columns, L.VALUES)
        for row in range(first, first + rows):
            value = np.uint64(integer(kind, values, row))
            low = _mix(value ^ seed0, np.uint64(0x9E3779B97F4A7C15))
            high = _mix(value ^ seed1, np.uint64(0xD6E8FEB86659FD93))
            if low | high == np.uint64(0):
                high = np.uint64(1)
            store64(out, np.int64(low))
            store64(out + 8, np.int64(high))
            out += 16
        return 0
    single = count == 1 and kind <= L.CELL_INT64
    for row in range(first, first + rows):
        low, high = np.uint64(0), np.uint64(0)
        if _has_null(columns, count, row):
            nulls += 1
        elif single:
            value = np.uint64(integer(kind, word(columns, L.VALUES), row))
            low = _mix(value ^ seed0, np.uint64(0x9E3779B97F4A7C15))
            high = _mix(value ^ seed1, np.uint64(0xD6E8FEB86659FD93))
            if low | high == np.uint64(0):
                high = np.uint64(1)
        else:
            low, high = _sip(columns, count, row, seed0, seed1)
        store64(out, np.int64(low))
        store64(out + 8, np.int64(high))
        out += 16
    return nulls


@compiled(I(I, I), forceinline=True, **FAST)
def _lead_bytes(at: int, length: int) -> int:
    if length >= 8:
        return swap64(load64(at)) ^ _SIGN
    value = 0
    for i in range(8):
        value = value << 8 | (load8(at + i) if i < length else 0)
    return value ^ _SIGN


@compiled(I(I, I), forceinline=True, **FAST)
def _lead(column: int, row: int) -> int:
    kind, values = word(column, L.KIND), word(column, L.VALUES)
    if kind <= L.CELL_INT64:
        return integer(kind, values, row)
    if kind >= L.CELL_BYTES32:
        return _lead_bytes(start_of(kind, column, row), length_of(kind, column, row))
    if kind == L.CELL_BIT:
        return bit(values, word(column, L.WIDTH) + row)
    if kind == L.CELL_DOUBLE:
        bits = _double_bits(load64(values + 8 * row))
        return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF
    low, high = load64(values + 16 * row), load64(values + 16 * row + 8)
    if high == low >> 63:
        return low
    return _SIGN if high < 0 else 0x7FFFFFFFFFFFFFFF


@compiled(types.void(I, I, I), **FAST)
def lead_rows(column: int, rows: int, out: int) -> None:
    """int64[rows] in the order of the column's values (equal leads may belong to different values); NULL: undefined."""
    for row in range(rows):
        valid = word(column, L.VALID)
        null = valid != 0 and bit(valid, word(column, L.BIT) + row) == 0
        store64(out + 8 * row, 0 if null else _lead(column, row))


@compiled(types.boolean(I, U, U), forceinline=True, **FAST)
def holds(table: int, low: Any, high: Any) -> bool:
    """Whether a hash is in a table of keys."""
    if bit(word(table, L.FILTER), np.int64(high) & word(table, L.FILTER_MASK)) == 0:
        return False
    slots, mask = word(table, L.SLOTS), word(table, L.SLOT_MASK)
    slot = np.int64(low) & mask
    while True:
        found_low, found_high = load64(slots + 16 * slot), load64(slots + 16 * slot + 8)
        if found_low == np.int64(low) and found_high == np.int64(high):
            return found_low | found_high != 0
        if found_low | found_high == 0:
            return False
        slot = (slot + 1) & mask


@compiled(I(I, I, I, I, I), **FAST)
def probe_rows(columns: int, count: int, rows: int, table: int, out: int) -> int:
    """Rows whose key is in the table, ascending, to int64[rows] at `out`; gives their number."""
    scratch = np.empty(2 * _SCRATCH_ROWS, np.uint64)
    hits = 0
    for first in range(0, rows, _SCRATCH_ROWS):
        some = min(_SCRATCH_ROWS, rows - first)
        hash_rows(columns, count, first, some, table + 8 * L.SEED, address(scratch))
        for i in range(some):
            if holds(table, scratch[2 * i], scratch[2 * i + 1]):
                store64(out + 8 * hits, first + i)
                hits += 1
    return hits
