"""MySQL's binary JSON as the server's own text.

In:  bytes of a JSON column's value.
Out: text exactly as SELECT shows it. DecodeError when the bytes contradict themselves.

Layout (mysql-server sql-common/json_binary.h): type u8, value. Objects and arrays: element count, size in bytes, key
entries (offset, length u16), value entries (type u8, offset or inlined value), keys, values; counts, sizes and offsets
are u16 in the small form, u32 in the large one; offsets count from the count. Object members come in the server's own
order (by length, then bytes). Text form: sql-common/json_dom.cc (wrapper_to_string, double_quote).
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Final

from tidegate.columnar.cursor import ByteCursor
from tidegate.errors import DecodeError
from tidegate.remedy import REPORT

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = 0, 1, 2, 3, 4
_INT16, _UINT16, _INT32, _UINT32, _INT64, _UINT64, _DOUBLE, _STRING, _OPAQUE = 5, 6, 7, 8, 9, 10, 11, 12, 15
_CONTAINERS: Final = frozenset({_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY})
_LITERALS: Final = {0: "null", 1: "true", 2: "false"}
_NUMBER_FORMS: Final = dict(zip((_INT16, _UINT16, _INT32, _UINT32, _INT64, _UINT64, _DOUBLE), "hHiIqQd", strict=True))
_NUMBERS: Final = {kind: struct.Struct("<" + form) for kind, form in _NUMBER_FORMS.items()}
# Of a container: count and size; entry of a key; entry of a value; types whose value is in its entry.
_SMALL_FORM: Final = (struct.Struct("<HH"), struct.Struct("<HH"), struct.Struct("<BH"), {_LITERAL, _INT16, _UINT16})
_LARGE_FORM: Final = (
    struct.Struct("<II"), struct.Struct("<IH"), struct.Struct("<BI"), {_LITERAL, _INT16, _UINT16, _INT32, _UINT32},
)  # fmt: skip
_DECIMAL, _DATE, _TIME, _DATETIME, _TIMESTAMP = 246, 10, 11, 12, 7  # field types of opaque values
_NULL_DOCUMENT: Final = bytes([_LITERAL, 0])
Place = tuple[int, int, int]  # a value's type, the offsets of its bytes and after its container
_DEPTH_MAX: Final = 110  # the server allows 100
_EXPONENT_FROM: Final = 15  # MAX_DECPT_FOR_F_FORMAT (strings/dtoa.cc)
_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def json_text(data: bytes) -> str:
    """The text of one value. An empty value is JSON null, as for the server."""
    reader = JsonReader(data)
    return reader.text(*reader.root, 0)


def quoted(text: str) -> str:
    """A JSON string as the server writes it: control characters escaped, everything else as it is."""
    return encode_basestring(text)


class JsonReader:
    """Reads one document. No byte is read for two values: overlapping offsets could make gigabytes
    of kilobytes.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data or _NULL_DOCUMENT
        self.unread = len(self.data)

    @property
    def root(self) -> Place:
        return self.data[0], 1, len(self.data)

    def text(self, kind: int, at: int, end: int, depth: int) -> str:
        if kind not in _CONTAINERS:
            return self.leaf(kind, at, end)
        keys, places = self.members(kind, at, end, depth)
        parts = [self.text(*place, depth + 1) for place in places]
        if keys is None:
            return "[" + ", ".join(parts) + "]"
        return "{" + ", ".join(f"{quoted(key)}: {part}" for key, part in zip(keys, parts, strict=True)) + "}"

    def leaf(self, kind: int, at: int, end: int) -> str:
        """The text of a value that isn't a container."""
        number = _NUMBERS.get(kind)
        if number is not None:
            if at + number.size > end:
                raise _cut()
            value = number.unpack_from(self.data, at)[0]
            return double_text(value) if kind == _DOUBLE else str(value)
        if kind == _STRING:
            return quoted(_utf8(self._counted(at, end)))
        if kind == _LITERAL:
            return _literal(ByteCursor(self.data, at, end).unsigned(1))
        if kind == _OPAQUE and at < end:
            return _opaque(self.data[at], self._counted(at + 1, end))
        raise DecodeError(f"JSON type {kind} is not known, or its value is cut off", remedy=REPORT)

    def members(self, kind: int, start: int, end: int, depth: int) -> tuple[list[str] | None, list[Place]]:
        """Keys of an object (None for an array), and the places of the values, in order."""
        if depth > _DEPTH_MAX:
            raise DecodeError("JSON is nested deeper than the server allows", remedy=REPORT)
        large = kind in (_LARGE_OBJECT, _LARGE_ARRAY)
        head, key_entry, value_entry, inlined = _LARGE_FORM if large else _SMALL_FORM
        at = start + head.size
        if at > end:
            raise _cut()
        count, size = head.unpack_from(self.data, start)
        if size < head.size or start + size > end:
            raise DecodeError("JSON container is longer than its value", remedy=REPORT)
        end = start + size
        keys = None
        if kind in (_SMALL_OBJECT, _LARGE_OBJECT):
            entries = self._take(at, count * key_entry.size, end)
            keys = self._keys(start, end, key_entry.iter_unpack(entries))
            at += len(entries)
        width = value_entry.size
        places = []
        for inner, offset in value_entry.iter_unpack(self._take(at, count * width, end)):
            places.append((inner, at + 1, at + width) if inner in inlined else (inner, start + offset, end))
            at += width
        return keys, places

    def _keys(self, start: int, end: int, entries: Iterable[tuple[int, ...]]) -> list[str]:
        keys = []
        last = (-1, b"")
        for offset, length in entries:
            key = self._take(start + offset, length, end)
            if (length, key) <= last:
                raise DecodeError("JSON object has its keys out of order", remedy=REPORT)
            last = (length, key)
            keys.append(_utf8(key))
        return keys

    def _counted(self, at: int, end: int) -> bytes:
        """Bytes after their length. The length has seven bits per byte, lowest first; a top bit
        says: more follows.
        """
        count = 0
        for shift in range(0, 35, 7):
            if at >= end:
                raise _cut()
            byte = self.data[at]
            at += 1
            count |= (byte & 0x7F) << shift
            if byte < 0x80:
                return self._take(at, count, end)
        raise DecodeError("JSON length is longer than 5 bytes", remedy=REPORT)

    def _take(self, at: int, count: int, end: int) -> bytes:
        if at + count > end:
            raise _cut()
        self.unread -= count
        if self.unread < 0:
            raise DecodeError("JSON has values that overlap", remedy=REPORT)
        return self.data[at : at + count]


def _cut() -> DecodeError:
    return DecodeError("JSON ends inside a value", remedy=REPORT)


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DecodeError("JSON holds text that is not UTF-8", remedy=REPORT) from None


def is_container(kind: int) -> bool:
    return kind in _CONTAINERS


def _literal(code: int) -> str:
    if code not in _LITERALS:
        raise DecodeError(f"JSON literal {code} is not known", remedy=REPORT)
    return _LITERALS[code]


def double_text(value: float) -> str:
    """A double as the server's my_gcvt prints it in JSON: the shortest digits that read back, with
    ".0" if whole.
    """
    if not math.isfinite(value):
        raise DecodeError("JSON holds a number that isn't finite", remedy=REPORT)
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits)) if digits else 1
    digits = digits.rstrip("0") or "0"
    if digits == "0":
        return sign + "0.0"
    in_range = point > -_EXPONENT_FROM and (point <= _EXPONENT_FROM or len(digits) > point)
    if not in_range:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return f"{sign}{digits}{'0' * (point - len(digits))}.0"
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _opaque(field: int, data: bytes) -> str:
    """SQL values inside JSON: decimals as numbers, temporal values as strings, the rest in base64."""
    if field == _DECIMAL and len(data) >= 2:
        return decimal_text(data[0], data[1], data[2:])
    if field in (_DATE, _DATETIME, _TIMESTAMP) and len(data) == 8:
        packed = struct.unpack("<q", data)[0]
        micros, clock = packed & 0xFFFFFF, packed >> 24
        date = clock >> 17
        year_month = date >> 5
        text = f"{year_month // 13:04d}-{year_month % 13:02d}-{date & 31:02d}"
        if field != _DATE:
            text += f" {clock >> 12 & 31:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}.{micros:06d}"
        return f'"{text}"'
    if field == _TIME and len(data) == 8:
        packed = struct.unpack("<q", data)[0]
        sign, packed = ("-", -packed) if packed < 0 else ("", packed)
        micros, clock = packed & 0xFFFFFF, packed >> 24
        return f'"{sign}{clock >> 12 & 1023:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}.{micros:06d}"'
    return f'"base64:type{field}:{base64.b64encode(data).decode()}"'


def decimal_text(digits: int, scale: int, data: bytes) -> str:
    """MySQL's binary decimal as text (strings/decimal.cc, bin2decimal): "-12.50"."""
    if digits < scale:
        raise DecodeError(f"decimal({digits},{scale}) is no decimal", remedy=REPORT)
    negative = not data[:1] or not data[0] & 0x80
    raw = bytes([data[0] ^ 0x80, *data[1:]]) if data else b""
    cursor = ByteCursor(bytes(b ^ 0xFF for b in raw) if negative else raw)
    lead = (digits - scale) % 9
    sizes = [lead] * (lead > 0) + [9] * ((digits - scale) // 9)
    whole = "".join(_digits(cursor, n) for n in sizes).lstrip("0")
    sizes = [9] * (scale // 9) + [scale % 9] * (scale % 9 > 0)
    fraction = "".join(_digits(cursor, n) for n in sizes)
    return ("-" if negative else "") + (whole or "0") + (f".{fraction}" if fraction else "")


def _digits(cursor: ByteCursor, count: int) -> str:
    text = f"{cursor.big_endian(_DIGIT_BYTES[count]):0{count}d}"
    if len(text) > count:
        raise DecodeError(f"{count} digits of a decimal hold {text}", remedy=REPORT)
    return text
