"""Numbers, fields and datums at addresses.

In:  an address, and the end after which nothing is read.
Out: a value and the address after it, which is below 0 where the bytes are none.

Formats: protobuf's wire format; TiDB's pkg/util/codec/codec.go, pkg/types/json_binary.go.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidegate.columnar.kernel.memory import FAST, I, load8, load32, load64, swap64
from tidegate.compiled import compiled

PAIR: Final = types.UniTuple(I, 2)
CUT: Final = -1
VARINT, FIXED64, RUN, FIXED32 = 0, 1, 2, 5
(NULL, GROUPED, COMPACT, INT, UINT, FLOAT, DECIMAL, DURATION, SIGNED, UNSIGNED, JSON) = range(11)
SIGN: Final = -(1 << 63)
_POSITIVE: Final = (1 << 63) - 1
_DIGIT_BYTES: Final = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
_DIGITS_MAX: Final = 81
_GROUP: Final = 8
# Bytes after the type of a JSON value that always has as many; 0: it says how many.
_JSON_BYTES: Final = np.array([0, 0, 0, 0, 1, 0, 0, 0, 0, 8, 8, 8, 0, 0, 8, 8, 8, 12], np.int64)
_JSON_OBJECT, _JSON_ARRAY, _JSON_STRING, _JSON_OPAQUE = 1, 3, 12, 13


@intrinsic
def float32_of(typing_context: Any, value: Any) -> Any:  # noqa: ARG001 - numba's signature
    """The bits of a double as those of the float that is nearest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        double = builder.bitcast(args[0], ir.DoubleType())
        single = builder.fptrunc(double, ir.FloatType())
        return builder.zext(builder.bitcast(single, ir.IntType(32)), ir.IntType(64))

    return I(I), generate


@compiled(PAIR(I, I), forceinline=True, **FAST)
def varint(at: int, end: int) -> tuple[int, int]:
    """64 bits in up to ten bytes."""
    value, shift = 0, 0
    while shift < 70 and at < end:
        byte = load8(at)
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, CUT


@compiled(I(I), forceinline=True, **FAST)
def zigzag(value: int) -> int:
    return ((value >> 1) & _POSITIVE) ^ -(value & 1)


@compiled(PAIR(I, I), forceinline=True, **FAST)
def run(at: int, end: int) -> tuple[int, int]:
    """A length and so many bytes: how many, and where they begin."""
    size, at = varint(at, end)
    if at < 0 or size < 0 or size > end - at:
        return 0, CUT
    return size, at


@compiled(I(I, I, I), **FAST)
def behind_field(wire: int, at: int, end: int) -> int:
    """Address after the value of a field."""
    if wire == VARINT:
        return varint(at, end)[1]
    if wire == RUN:
        size, at = run(at, end)
        return at + size if at >= 0 else CUT
    if wire not in (FIXED64, FIXED32):
        return CUT
    at += 8 if wire == FIXED64 else 4
    return at if at <= end else CUT


@compiled(I(I, I), **FAST)
def _behind_json(at: int, end: int) -> int:
    """Address after a JSON value whose type is at `at`."""
    if at >= end:
        return CUT
    kind = load8(at)
    at += 1
    if kind in (_JSON_OBJECT, _JSON_ARRAY):
        return at + load32(at + 4) if at + 8 <= end else CUT
    if kind in (_JSON_STRING, _JSON_OPAQUE):
        size, at = run(at + (1 if kind == _JSON_OPAQUE else 0), end)
        return at + size if at >= 0 else CUT
    if kind >= len(_JSON_BYTES) or not _JSON_BYTES[kind]:
        return CUT
    return at + _JSON_BYTES[kind]


@compiled(I(I, I), **FAST)
def _behind_groups(at: int, end: int) -> int:
    """Groups of eight bytes, each followed by 255 minus the number of zeros that fill it."""
    while at + _GROUP < end:
        filled = 255 - load8(at + _GROUP)
        if filled > _GROUP:
            return CUT
        for i in range(_GROUP - filled, _GROUP):
            if load8(at + i):
                return CUT
        at += _GROUP + 1
        if filled:
            return at
    return CUT


@compiled(I(I, I), **FAST)
def _behind_decimal(at: int, end: int) -> int:
    if at + 2 > end:
        return CUT
    precision, scale = load8(at), load8(at + 1)
    whole = precision - scale
    if whole < 0 or precision < 1 or precision > _DIGITS_MAX:
        return CUT
    groups = whole // 9 + scale // 9
    return at + 2 + 4 * groups + _DIGIT_BYTES[whole % 9] + _DIGIT_BYTES[scale % 9]


@compiled(I(I, I), forceinline=True, **FAST)
def behind_datum(at: int, end: int) -> int:
    """Address after the datum at `at`."""
    flag = load8(at)
    at += 1
    if flag == NULL:
        return at
    if flag in (SIGNED, UNSIGNED):
        return varint(at, end)[1]
    if flag == COMPACT:
        size, at = varint(at, end)
        size = zigzag(size)
        return at + size if at >= 0 and 0 <= size <= end - at else CUT
    if flag in (INT, UINT, FLOAT, DURATION):
        at += 8
    elif flag == DECIMAL:
        at = _behind_decimal(at, end)
    elif flag == JSON:
        at = _behind_json(at, end)
    elif flag == GROUPED:
        at = _behind_groups(at, end)
    else:
        return CUT
    return at if at <= end else CUT


@compiled(I(I), forceinline=True, **FAST)
def big64(at: int) -> int:
    return swap64(load64(at))
