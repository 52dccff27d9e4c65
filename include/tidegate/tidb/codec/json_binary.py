"""TiDB's binary JSON as TiDB's own text.

In:  bytes: a type byte and its body. Not MySQL's form: offsets always have four bytes, integers always eight.
Out: the text that SELECT shows; how many bytes a value has. DecodeError for bytes that contradict themselves.

Source: pkg/types/json_binary.go.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import Final

import numpy as np

from tidegate.errors import DecodeError, StreamCorrupt
from tidegate.remedy import REPORT
from tidegate.tidb.codec.protobuf import varint

_OBJECT, _ARRAY, _LITERAL = 0x01, 0x03, 0x04
_INT64, _UINT64, _FLOAT64, _STRING, _OPAQUE = 0x09, 0x0A, 0x0B, 0x0C, 0x0D
_DATE, _DATETIME, _TIMESTAMP, _DURATION = 0x0E, 0x0F, 0x10, 0x11
_LITERALS: Final = ("null", "true", "false")
_SIZES: Final = {
    _LITERAL: 1, _INT64: 8, _UINT64: 8, _FLOAT64: 8, _DATE: 8, _DATETIME: 8, _TIMESTAMP: 8, _DURATION: 12,
}  # fmt: skip
_HEAD: Final = struct.Struct("<II")  # elements, bytes
_KEY: Final = struct.Struct("<IH")  # offset, length
_VALUE: Final = struct.Struct("<BI")  # type, offset; a literal stands in the offset's place
_DEPTH_MAX: Final = 110  # the server allows 100
_ESCAPES: Final = {
    0x22: '\\"',
    0x5C: "\\\\",
    0x0A: "\\n",
    0x0D: "\\r",
    0x09: "\\t",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
_ESCAPED: Final = {code: f"\\u{code:04x}" for code in range(0x20)} | _ESCAPES


def _broken(what: str) -> DecodeError:
    return DecodeError(f"a JSON value's bytes are broken: {what}", remedy=REPORT)


def json_size(data: bytes, at: int) -> int:
    """How many bytes the value has that begins at a place, its type byte among them."""
    if at >= len(data):
        raise _broken("nothing is there")
    kind = data[at]
    if kind in _SIZES:
        return 1 + _SIZES[kind]
    if kind in (_OBJECT, _ARRAY):
        if at + 1 + _HEAD.size > len(data):
            raise _broken("a container is cut off")
        return 1 + int(_HEAD.unpack_from(data, at + 1)[1])
    if kind in (_STRING, _OPAQUE):
        start = at + (2 if kind == _OPAQUE else 1)
        size, end = _length(data, start)
        return end + size - at
    raise _broken(f"type {kind:#04x} isn't known")


def _length(data: bytes, at: int) -> tuple[int, int]:
    try:
        return varint(data, at)
    except StreamCorrupt as error:
        raise _broken(error.what) from None


def json_text(data: bytes) -> str:
    """The text of one value."""
    if json_size(data, 0) != len(data):
        raise _broken(f"{json_size(data, 0)} bytes of {len(data)}")
    return _Reader(data).text(data[0], 1, 0)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._unread = len(data)

    def text(self, kind: int, at: int, depth: int) -> str:
        if kind in (_OBJECT, _ARRAY):
            return self._container(kind, at, depth)
        if kind == _STRING:
            return quoted(_utf8(self._counted(at)))
        if kind == _OPAQUE:
            return f'"base64:type{self._take(at, 1)[0]}:{base64.b64encode(self._counted(at + 1)).decode()}"'
        if kind == _LITERAL:
            code = self._take(at, 1)[0]
            if code >= len(_LITERALS):
                raise _broken(f"literal {code} isn't known")
            return _LITERALS[code]
        if kind in _SIZES:
            return _scalar(kind, self._take(at, _SIZES[kind]))
        raise _broken(f"type {kind:#04x} isn't known")

    def _take(self, at: int, size: int) -> bytes:
        """Take bytes. Each byte is read for one value only: otherwise overlapping offsets could make gigabytes out of
        kilobytes.
        """
        self._unread -= size
        if at + size > len(self._data) or self._unread < 0:
            raise _broken("a value lies outside of its container")
        return self._data[at : at + size]

    def _counted(self, at: int) -> bytes:
        size, start = _length(self._data, at)
        return self._take(start, size)

    def _container(self, kind: int, start: int, depth: int) -> str:
        if depth > _DEPTH_MAX:
            raise _broken("it is nested deeper than the server allows")
        count, _ = _HEAD.unpack(self._take(start, _HEAD.size))
        at, keys = start + _HEAD.size, list[str]()
        if kind == _OBJECT:
            entries = self._take(at, count * _KEY.size)
            keys = [quoted(_utf8(self._take(start + offset, size))) for offset, size in _KEY.iter_unpack(entries)]
            at += len(entries)
        parts = []
        for n, (inner, offset) in enumerate(_VALUE.iter_unpack(self._take(at, count * _VALUE.size))):
            if inner == _LITERAL:
                code = self._data[at + n * _VALUE.size + 1]
                if code >= len(_LITERALS):
                    raise _broken(f"literal {code} isn't known")
                parts.append(_LITERALS[code])
            else:
                parts.append(self.text(inner, start + offset, depth + 1))
        if kind == _ARRAY:
            return "[" + ", ".join(parts) + "]"
        return "{" + ", ".join(f"{key}: {part}" for key, part in zip(keys, parts, strict=True)) + "}"


def quoted(text: str) -> str:
    """A JSON string as TiDB writes it."""
    return '"' + text.translate(_ESCAPED) + '"'


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _broken("a text isn't UTF-8") from None


def _scalar(kind: int, body: bytes) -> str:
    if kind in (_INT64, _UINT64):
        return str(int.from_bytes(body, "little", signed=kind == _INT64))
    if kind == _FLOAT64:
        return number_text(struct.unpack("<d", body)[0])
    if kind == _DURATION:
        nanoseconds = int.from_bytes(body[:8], "little", signed=True)
        return f'"{duration_text(nanoseconds, 6)}"'
    bits = int.from_bytes(body, "little")
    day = f"{bits >> 50:04}-{bits >> 46 & 15:02}-{bits >> 41 & 31:02}"
    clock = f"{bits >> 36 & 31:02}:{bits >> 30 & 63:02}:{bits >> 24 & 63:02}.{bits >> 4 & 0xFFFFF:06}"
    return f'"{day}"' if kind == _DATE else f'"{day} {clock}"'


def duration_text(nanoseconds: int, digits: int) -> str:
    """[-]HHH:MM:SS[.ffffff], as a TIME is shown."""
    seconds, rest = divmod(abs(nanoseconds), 10**9)
    fraction = f".{rest:09}"[: digits + 1] if digits else ""
    sign = "-" if nanoseconds < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def number_text(value: float) -> str:
    """As Go's encoding/json writes it."""
    if not math.isfinite(value):
        raise _broken("a number isn't finite")
    number = np.float64(value)
    if not value or 1e-6 <= abs(value) < 1e21:
        return str(np.format_float_positional(number, unique=True, trim="-"))
    text = str(np.format_float_scientific(number, unique=True, trim="-", exp_digits=2))
    return text.replace("e-0", "e-")
