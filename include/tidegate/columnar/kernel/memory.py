"""Loads, stores and copies at addresses, unaligned, little-endian.

In:  int64 addresses inside arrays the caller keeps alive. Arrays as arguments would cost more than
     the work on them: numba passes seven words for each, and counts references.
Out: int64 values. It must hold: the callers have checked the bounds.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tidegate.compiled import compiled

FAST: Final[dict[str, Any]] = {"cache": True, "nogil": True, "boundscheck": False, "error_model": "numpy"}
I: Final = types.int64  # noqa: E741 - stands in every signature


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


def _load(bits: int) -> Any:
    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:  # noqa: ARG001 - numba's signature
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            loaded = builder.load(_pointer(builder, args[0], bits), align=1)
            return loaded if bits == 64 else builder.zext(loaded, ir.IntType(64))

        return I(I), generate

    return load


def _store(bits: int) -> Any:
    @intrinsic
    def store(typing_context: Any, address: Any, value: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            value = args[1] if bits == 64 else builder.trunc(args[1], ir.IntType(bits))
            builder.store(value, _pointer(builder, args[0], bits), align=1)
            return context.get_dummy_value()

        return types.void(I, I), generate

    return store


# Each takes or gives an int64. Loads of less than 64 bits are zero-extended.
load8 = _load(8)
load16 = _load(16)
load32 = _load(32)
load64 = _load(64)
store8 = _store(8)
store16 = _store(16)
store32 = _store(32)
store64 = _store(64)


@intrinsic
def address(typing_context: Any, array: Any) -> Any:  # noqa: ARG001
    """The address of an array's first element."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(values.data, ir.IntType(64))

    return I(array), generate


@intrinsic
def swap64(typing_context: Any, value: Any) -> Any:  # noqa: ARG001
    """The eight bytes of an int64 in the other order."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.call(builder.module.declare_intrinsic("llvm.bswap", [ir.IntType(64)]), args)

    return I(I), generate


@intrinsic
def copy_bytes(typing_context: Any, to: Any, source: Any, count: Any) -> Any:  # noqa: ARG001
    """Copy count bytes between addresses; they don't overlap."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        cgutils.raw_memcpy(builder, _pointer(builder, args[0], 8), _pointer(builder, args[1], 8), args[2], 1)
        return context.get_dummy_value()

    return types.void(I, I, I), generate


@compiled(I(I, I), forceinline=True, **FAST)
def word(base: int, number: int) -> int:
    """The int64 at base[number]."""
    return load64(base + 8 * number)


@compiled(I(I, I, I), forceinline=True, **FAST)
def set_word(base: int, number: int, value: int) -> int:
    """base[number] = value. Returns the value."""
    store64(base + 8 * number, value)
    return value


@compiled(I(I, I), forceinline=True, **FAST)
def big_endian(at: int, width: int) -> int:
    """Unsigned big-endian integer of width bytes, at most 7."""
    value = 0
    for i in range(width):
        value = value << 8 | load8(at + i)
    return value


@compiled(I(I, I), forceinline=True, **FAST)
def little_endian(at: int, width: int) -> int:
    """Little-endian integer of width bytes, zero-extended below 8."""
    value = 0
    for i in range(width):
        value |= load8(at + i) << (8 * i)
    return value


@compiled(I(I), forceinline=True, **FAST)
def big32(at: int) -> int:
    """Unsigned big-endian integer of 4 bytes."""
    return (swap64(load32(at)) >> 32) & 0xFFFFFFFF


@compiled(types.boolean(I, I, I), **FAST)
def equal_bytes(first: int, other: int, size: int) -> bool:
    """Whether size bytes at two addresses are the same."""
    at = 0
    while at + 8 <= size:
        if load64(first + at) != load64(other + at):
            return False
        at += 8
    while at < size:
        if load8(first + at) != load8(other + at):
            return False
        at += 1
    return True
