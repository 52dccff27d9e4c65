"""Strings as JSON values, written one after another: quoted and escaped, or as base64.

In:  bytes with 64-bit offsets; one flag per value that says whether it exists.
Out: JSON text with 64-bit offsets; `null` for a missing value. The room is counted first: nothing
     is written past it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types

from tidegate.binlog.transaction_scan import READ_ONLY
from tidegate.columnar.kernel.memory import FAST, I
from tidegate.compiled import compiled

_OFFSETS: Final = types.Array(types.int64, 1, "C", readonly=True)
_NULL: Final = np.frombuffer(b"null", np.uint8).copy()
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
_BASE64: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8).copy()


def _growth() -> Any:
    """Byte -> how many bytes stand for it inside a JSON string (RFC 8259, section 7)."""
    grown = np.ones(256, np.uint8)
    grown[:32] = 6
    grown[[8, 9, 10, 12, 13, ord('"'), ord("\\")]] = 2
    return grown


def _letters() -> Any:
    """Byte -> the letter after the backslash, for bytes that become two."""
    letters = np.zeros(256, np.uint8)
    for byte, letter in ((8, "b"), (9, "t"), (10, "n"), (12, "f"), (13, "r"), (34, '"'), (92, "\\")):
        letters[byte] = ord(letter)
    return letters


_GROWN: Final = _growth()
_LETTERS: Final = _letters()


@compiled(I(types.uint8[::1], I), forceinline=True, **FAST)
def _write_null(out: Any, to: int) -> int:
    for k in range(4):
        out[to + k] = _NULL[k]
    return to + 4


@compiled(I(READ_ONLY, _OFFSETS, READ_ONLY), **FAST)
def quoted_bytes(data: Any, offsets: Any, valid: Any) -> int:
    """Bytes that write_quoted needs."""
    total = 0
    for i in range(len(valid)):
        if not valid[i]:
            total += 4
            continue
        total += 2
        for at in range(offsets[i], offsets[i + 1]):
            total += _GROWN[data[at]]
    return total


@compiled(I(READ_ONLY, _OFFSETS, READ_ONLY, types.uint8[::1], types.int64[::1]), **FAST)
def write_quoted(data: Any, offsets: Any, valid: Any, out: Any, ends: Any) -> int:
    """Write each value in double quotes, escaped. Returns the bytes written."""
    to = 0
    ends[0] = 0
    for i in range(len(valid)):
        if not valid[i]:
            to = ends[i + 1] = _write_null(out, to)
            continue
        out[to] = 34
        to += 1
        for at in range(offsets[i], offsets[i + 1]):
            byte = data[at]
            grown = _GROWN[byte]
            if grown == 1:
                out[to] = byte
                to += 1
                continue
            out[to] = 92
            if grown == 2:
                out[to + 1] = _LETTERS[byte]
                to += 2
                continue
            out[to + 1] = 117
            out[to + 2] = 48
            out[to + 3] = 48
            out[to + 4] = _HEX[byte >> 4]
            out[to + 5] = _HEX[byte & 15]
            to += 6
        out[to] = 34
        to += 1
        ends[i + 1] = to
    return to


@compiled(I(_OFFSETS, READ_ONLY), **FAST)
def base64_bytes(offsets: Any, valid: Any) -> int:
    """Bytes that write_base64 needs."""
    total = 0
    for i in range(len(valid)):
        total += 2 + (offsets[i + 1] - offsets[i] + 2) // 3 * 4 if valid[i] else 4
    return total


@compiled(I(READ_ONLY, _OFFSETS, READ_ONLY, types.uint8[::1], types.int64[::1]), **FAST)
def write_base64(data: Any, offsets: Any, valid: Any, out: Any, ends: Any) -> int:
    """Write each value as base64 (RFC 4648, section 4, padded) in double quotes. Returns the bytes
    written.
    """
    to = 0
    ends[0] = 0
    for i in range(len(valid)):
        if not valid[i]:
            to = ends[i + 1] = _write_null(out, to)
            continue
        out[to] = 34
        to += 1
        at, end = offsets[i], offsets[i + 1]
        while at < end:
            left = end - at
            first = np.int64(data[at])
            second = np.int64(data[at + 1]) if left > 1 else np.int64(0)
            third = np.int64(data[at + 2]) if left > 2 else np.int64(0)
            out[to] = _BASE64[first >> 2]
            out[to + 1] = _BASE64[(first & 3) << 4 | second >> 4]
            out[to + 2] = _BASE64[(second & 15) << 2 | third >> 6] if left > 1 else 61
            out[to + 3] = _BASE64[third & 63] if left > 2 else 61
            to += 4
            at += 3
        out[to] = 34
        to += 1
        ends[i + 1] = to
    return to
