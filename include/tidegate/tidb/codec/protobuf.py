"""Fields of a protobuf message, read without generated code: for six messages no compiler is
needed.

In:  the bytes of one message.
Out: (number, value) in order: an int for a varint, bytes for a run of bytes. StreamCorrupt for bytes that are none.

Unknown fields come, too: a newer TiDB may write some. The messages written here are a Pump's
answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidegate.errors import StreamCorrupt

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED: Final = {_FIXED64: 8, _FIXED32: 4}
_SHIFT_END: Final = 70  # ten bytes of seven bits: the longest 64-bit number
_U64: Final = (1 << 64) - 1


def corrupt(what: str) -> StreamCorrupt:
    """The error of a payload; whoever knows its place adds it."""
    return StreamCorrupt(f"a binlog payload is broken: {what}", remedy="its source wrote it so, or a disk lost it")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits at a place, and the place after it."""
    bits = shift = 0
    while shift < _SHIFT_END:
        if at >= len(data):
            raise corrupt("a number is cut off")
        byte = data[at]
        at += 1
        bits |= (byte & 0x7F) << shift
        if byte < 0x80:
            return bits & _U64, at
        shift += 7
    raise corrupt("a number has more than ten bytes")


def signed(value: int) -> int:
    """An int64 as protobuf writes it: two's complement in 64 bits."""
    return value - (1 << 64) if value >> 63 else value


def zigzag(value: int) -> int:
    """A signed number of Go's binary.PutVarint."""
    return (value >> 1) ^ -(value & 1)


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not number:
            raise corrupt("a field has number 0")
        if wire == _VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = varint(data, at)
        elif wire in _FIXED:
            size = _FIXED[wire]
        else:
            raise corrupt(f"wire type {wire} isn't known")
        if size > end - at:
            raise corrupt(f"field {number} has {size} bytes, {end - at} are left")
        yield number, data[at : at + size]
        at += size


def number_field(number: int, value: int) -> bytes:
    """A varint field, as a message has it."""
    return written_varint(number << 3) + written_varint(value & _U64)


def bytes_field(number: int, value: bytes) -> bytes:
    return written_varint(number << 3 | _BYTES) + written_varint(len(value)) + value


def written_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
