"""Datums: a flag and a body, as TiDB's codec writes the cells of a row.

In:  a row's bytes.
Out: Python values: None, int, float, Decimal (its exponent is the number of digits after the point), bytes, Json.
     DecodeError for what is cut off or not known.

A datum doesn't have the type of its column: dates, times, years, bits, members of enums and sets
are numbers here, and the column's type gives their meaning (cells.py). Source:
pkg/util/codec/codec.go, decimal in pkg/types/mydecimal.go.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Final, TypeAlias

from tidegate.errors import DecodeError, StreamCorrupt
from tidegate.remedy import REPORT
from tidegate.tidb.codec.json_binary import json_size
from tidegate.tidb.codec.protobuf import varint, zigzag


class Json(bytes):
    """A value of a JSON column: type byte and body (json_binary.py)."""

    __slots__ = ()


Value: TypeAlias = int | float | Decimal | bytes | Json | None
Cells: TypeAlias = dict[int, Value]  # of a row, by column id

(_NULL, _BYTES, _COMPACT, _INT, _UINT, _FLOAT, _DECIMAL, _DURATION, _VARINT, _UVARINT, _JSON) = range(11)
_SIGN: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_GROUP, _GROUP_DIGITS = 4, 9
_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_GROUP_OF_BYTES: Final = 8
_DIGITS_MAX: Final = 81  # words of nine digits that a MyDecimal has, nine of them


def _broken(what: str) -> DecodeError:
    return DecodeError(f"a row's bytes are broken: {what}", remedy=REPORT)


def datums(data: bytes) -> list[Value]:
    """All of a row's datums."""
    values, at = list[Value](), 0
    while at < len(data):
        value, at = datum(data, at)
        values.append(value)
    return values


def datum(data: bytes, at: int) -> tuple[Value, int]:
    """The datum at a place, and the place after it."""
    flag = data[at]
    at += 1
    if flag == _NULL:
        return None, at
    try:
        if flag == _VARINT:
            value, at = varint(data, at)
            return zigzag(value), at
        if flag == _UVARINT:
            return varint(data, at)
        if flag == _COMPACT:
            size, at = varint(data, at)
            return _taken(data, at, zigzag(size))
    except StreamCorrupt as error:
        raise _broken(error.what) from None
    if flag == _BYTES:
        return _grouped(data, at)
    if flag in (_INT, _UINT, _FLOAT, _DURATION):
        return _fixed(flag, data, at)
    if flag == _DECIMAL:
        return _decimal(data, at)
    if flag == _JSON:
        size = json_size(data, at)
        document, end = _taken(data, at, size)
        return Json(document), end
    raise _broken(f"flag {flag:#04x} isn't known")


def _taken(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if size < 0 or size > len(data) - at:
        raise _broken(f"a value of {size} bytes, {len(data) - at} are left")
    return data[at : at + size], at + size


def _fixed(flag: int, data: bytes, at: int) -> tuple[Value, int]:
    """Eight bytes whose order is the values' order."""
    body, at = _taken(data, at, 8)
    bits = int.from_bytes(body, "big")
    if flag == _UINT:
        return bits, at
    if flag == _FLOAT:
        bits = bits ^ _SIGN if bits & _SIGN else bits ^ _ALL
        return struct.unpack(">d", bits.to_bytes(8, "big"))[0], at
    bits ^= _SIGN
    return (bits - (1 << 64) if bits & _SIGN else bits), at


def _grouped(data: bytes, at: int) -> tuple[bytes, int]:
    """Groups of eight bytes, each followed by 255 minus the number of zeros that fill it."""
    out = bytearray()
    while True:
        group, at = _taken(data, at, _GROUP_OF_BYTES + 1)
        filled = 255 - group[-1]
        if filled > _GROUP_OF_BYTES or any(group[_GROUP_OF_BYTES - filled : _GROUP_OF_BYTES]):
            raise _broken("a group of a text isn't filled with zeros")
        out += group[: _GROUP_OF_BYTES - filled]
        if filled:
            return bytes(out), at


def _decimal(data: bytes, at: int) -> tuple[Decimal, int]:
    """Precision u8, digits after the point u8, then MySQL's binary form."""
    head, at = _taken(data, at, 2)
    precision, scale = head
    whole = precision - scale
    if whole < 0 or precision < 1 or precision > _DIGITS_MAX:
        raise _broken(f"a decimal of {precision} digits with {scale} after the point")
    lead, tail = whole % _GROUP_DIGITS, scale % _GROUP_DIGITS
    sizes = (
        [lead] * bool(lead) + [_GROUP_DIGITS] * (whole // _GROUP_DIGITS + scale // _GROUP_DIGITS) + [tail] * bool(tail)
    )
    body, at = _taken(data, at, sum(_DIGIT_BYTES[size] for size in sizes))
    negative = not body[0] & 0x80
    bits = bytearray(body)
    bits[0] ^= 0x80
    if negative:
        bits = bytearray(byte ^ 0xFF for byte in bits)
    number = place = 0
    for size in sizes:
        part = int.from_bytes(bits[place : place + _DIGIT_BYTES[size]], "big")
        if part >= 10**size:
            raise _broken("a decimal's digits are none")
        number = number * 10**size + part
        place += _DIGIT_BYTES[size]
    digits = tuple(map(int, str(number)))
    return Decimal((int(negative), digits, -scale)), at
