"""Loads, stores and copies on byte arrays, unaligned, little-endian; the callers have checked the bounds."""

from __future__ import annotations

from typing import Any, Final

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BYTES_IN: Final = types.Array(types.uint8, 1, "C", readonly=True)
BYTES_OUT: Final = types.uint8[::1]
WORDS: Final = types.int64[::1]
I: Final = types.int64  # noqa: E741 - stands in every signature


def _load(bits: int, result: Any) -> Any:
    @intrinsic
    def load(typing_context: Any, array: Any, offset: Any) -> Any:  # noqa: ARG001 - numba's signature
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = context.make_array(signature.args[0])(context, builder, args[0])
            pointer = builder.bitcast(builder.gep(values.data, [args[1]]), ir.IntType(bits).as_pointer())
            loaded = builder.load(pointer, align=1)
            return loaded if bits == 64 else builder.zext(loaded, ir.IntType(64))

        return result(array, I), generate

    return load


def _store(bits: int) -> Any:
    @intrinsic
    def store(typing_context: Any, array: Any, offset: Any, value: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = context.make_array(signature.args[0])(context, builder, args[0])
            pointer = builder.bitcast(builder.gep(values.data, [args[1]]), ir.IntType(bits).as_pointer())
            builder.store(args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits)), pointer, align=1)
            return context.get_dummy_value()

        return types.void(array, I, I), generate

    return store


# Each gives or takes an int64; loads of less than 64 bits are zero-extended.
load8 = _load(8, I)
load16 = _load(16, I)
load32 = _load(32, I)
load64 = _load(64, I)
store8 = _store(8)
store16 = _store(16)
store32 = _store(32)
store64 = _store(64)


@intrinsic
def copy_bytes(typing_context: Any, to: Any, to_offset: Any, source: Any, source_offset: Any, count: Any) -> Any:  # noqa: ARG001
    """Memcpy of count bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = context.make_array(signature.args[0])(context, builder, args[0])
        origin = context.make_array(signature.args[2])(context, builder, args[2])
        cgutils.raw_memcpy(
            builder, builder.gep(target.data, [args[1]]), builder.gep(origin.data, [args[3]]), args[4], 1
        )
        return context.get_dummy_value()

    return types.void(to, I, source, I, I), generate


@numba.njit(I(BYTES_IN, I, I), cache=True, nogil=True, boundscheck=False, forceinline=True)
def big_endian(data: Any, at: int, width: int) -> int:
    """Unsigned big-endian integer of width bytes, at most 7."""
    value = 0
    for i in range(width):
        value = value << 8 | load8(data, at + i)
    return value


@numba.njit(I(BYTES_IN, I, I), cache=True, nogil=True, boundscheck=False, forceinline=True)
def little_endian(data: Any, at: int, width: int) -> int:
    """Little-endian integer of width bytes, zero-extended below 8."""
    value = 0
    for i in range(width):
        value |= load8(data, at + i) << (8 * i)
    return value
