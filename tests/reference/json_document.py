"""The slow twin of json_text.py and json_document.py: binary JSON as Python values, for tests to compare with.

In:  a document's bytes, or differences and the document they apply to.
Out: the server's text. What must hold: no code shared with the twin; layouts as cited there.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from tidegate.errors import DecodeError

_FIXED: Final = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q"}
_WORDS: Final = {0: "null", 1: "true", 2: "false"}
_DEPTH_MAX: Final = 110


@dataclass(frozen=True)
class _Shown:
    """A value of which only the text matters."""

    text: str


def reference_json_text(document: bytes) -> str:
    """As json_text."""
    return _text(_document(document))


def reference_patched_text(document: bytes, differences: bytes) -> str:
    """The text of a document with its differences."""
    root = [_document(document)]
    rest = differences
    try:
        while rest:
            operation, rest = rest[0], rest[1:]
            path, rest = _counted(rest)
            value: Any = None
            if operation != 2:
                made, rest = _counted(rest)
                value = _document(made)
            _patch(root[0], operation, list(_legs(path.decode())), value)
    except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
        raise DecodeError(f"JSON difference doesn't apply: {error}") from None
    return _text(root[0])


def _counted(data: bytes) -> tuple[bytes, bytes]:
    width = {252: 2, 253: 3, 254: 8}.get(data[0], 0)
    if width == 0 and data[0] > 250:
        raise ValueError("no length")
    count = int.from_bytes(data[1 : 1 + width], "little") if width else data[0]
    if 1 + width + count > len(data):
        raise ValueError("cut off")
    return data[1 + width : 1 + width + count], data[1 + width + count :]


def _legs(path: str) -> Iterator[str | int]:
    """Names, and numbers of cells: ~n for the n-th from the end."""
    if not path.startswith("$"):
        raise ValueError(path)
    rest = path[1:]
    while rest:
        if rest.startswith('."'):
            name, end = json.JSONDecoder(strict=False).raw_decode(rest[1:])
            yield name
            rest = rest[1 + end :]
        elif rest.startswith("."):
            end = min(at for at in (rest.find(".", 1), rest.find("[", 1), len(rest)) if at > 0)
            if end == 1:
                raise ValueError(path)
            yield rest[1:end]
            rest = rest[end:]
        elif rest.startswith("[last"):
            back, rest = rest[5:].split("]", 1)
            yield ~int(back[1:] or 0)
        elif rest.startswith("["):
            cell, rest = rest[1:].split("]", 1)
            yield int(cell)
        else:
            raise ValueError(path)


def _patch(root: Any, operation: int, legs: list[str | int], value: Any) -> None:
    parent = root
    for leg in legs[:-1]:
        parent = parent[_place(parent, leg)]
    last = legs[-1]
    if operation == 1 and isinstance(parent, list) and isinstance(last, int):
        if last < 0:
            last = max(len(parent) + last, 0)
        parent[last:last] = [value]
        return
    place = _place(parent, last)
    if operation == 1:
        if place in parent:
            raise KeyError(place)
        parent[place] = value
    elif operation == 0:
        parent[place]  # it must be there
        parent[place] = value
    elif operation == 2:
        del parent[place]
    else:
        raise ValueError(operation)


def _place(parent: Any, leg: str | int) -> Any:
    if isinstance(parent, dict) != isinstance(leg, str) or not isinstance(parent, dict | list):
        raise TypeError("the path leads through another type")
    return leg


def _document(data: bytes) -> Any:
    if not data:
        return _Shown("null")
    try:
        return _value(data[0], data[1:], 0, [len(data)])
    except (IndexError, struct.error, KeyError, UnicodeDecodeError) as error:
        raise DecodeError(f"JSON can't be read: {error}") from None


def _value(kind: int, data: bytes, depth: int, unread: list[int]) -> Any:
    """unread: bytes that no value was read from yet, in a list of one."""
    if kind in (0, 1, 2, 3):
        return _container(kind, data, depth, unread)
    if kind == 4:
        return _Shown(_WORDS[data[0]])
    if kind in _FIXED:
        return _Shown(str(struct.unpack_from(_FIXED[kind], data)[0]))
    if kind == 11:
        return _Shown(_double(struct.unpack_from("<d", data)[0]))
    if kind == 12:
        return _Shown(_quoted(_lengthy(data, unread).decode()))
    if kind == 15:
        return _Shown(_opaque(data[0], _lengthy(data[1:], unread)))
    raise DecodeError(f"JSON type {kind} is not known")


def _spend(count: int, unread: list[int]) -> None:
    unread[0] -= count
    if unread[0] < 0:
        raise DecodeError("JSON has values that overlap")


def _lengthy(data: bytes, unread: list[int]) -> bytes:
    count = used = 0
    while True:
        if used == 5:
            raise DecodeError("JSON length is longer than 5 bytes")
        count |= (data[used] & 127) << 7 * used
        used += 1
        if data[used - 1] < 128:
            break
    _spend(count, unread)
    if used + count > len(data):
        raise DecodeError("JSON is cut off")
    return data[used : used + count]


def _container(kind: int, data: bytes, depth: int, unread: list[int]) -> Any:
    if depth > _DEPTH_MAX:
        raise DecodeError("JSON is nested too deep")
    width, form = (4, "I") if kind in (1, 3) else (2, "H")
    count, size = struct.unpack_from(f"<2{form}", data)
    if not 2 * width <= size <= len(data):
        raise DecodeError("JSON container is longer than its value")
    data = data[:size]
    at = 2 * width
    keys = []
    if kind in (0, 1):
        _spend(count * (width + 2), unread)
        for _ in range(count):
            start, length = struct.unpack_from(f"<{form}H", data, at)
            _spend(length, unread)
            if start + length > size:
                raise DecodeError("JSON is cut off")
            keys.append(data[start : start + length].decode())
            at += width + 2
        if keys != sorted(set(keys), key=_key_order):
            raise DecodeError("JSON object has its keys out of order")
    values = []
    _spend(count * (1 + width), unread)
    for _ in range(count):
        inner, start = struct.unpack_from(f"<B{form}", data, at)
        inlined = inner in ((4, 5, 6, 7, 8) if width == 4 else (4, 5, 6))
        values.append(_value(inner, data[at + 1 :] if inlined else data[start:], depth + 1, unread))
        at += 1 + width
    return dict(zip(keys, values, strict=True)) if kind in (0, 1) else values


def _text(value: Any) -> str:
    if isinstance(value, _Shown):
        return value.text
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return "{" + ", ".join(f"{_quoted(key)}: {_text(value[key])}" for key in sorted(value, key=_key_order)) + "}"


def _key_order(key: str) -> tuple[int, bytes]:
    return len(key.encode()), key.encode()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _double(value: float) -> str:
    number = Decimal(repr(value))
    if not number.is_finite():
        raise DecodeError("JSON holds a number that isn't finite")
    sign, digits, exponent = number.normalize().as_tuple()
    text = "".join(map(str, digits))
    minus = "-" if sign else ""
    point = len(text) + int(exponent)
    if value == 0:
        return f"{minus}0.0"
    if -15 < point <= 15 or (0 < point < len(text)):
        plain = f"{abs(number):f}"
        return minus + (plain.rstrip("0").rstrip(".") if "." in plain else plain) + ("" if int(exponent) < 0 else ".0")
    return f"{minus}{text[0]}{'.' if text[1:] else ''}{text[1:]}e{point - 1}"


def _opaque(field: int, data: bytes) -> str:
    if field == 246 and len(data) > 2:
        return _decimal(data[0], data[1], data[2:])
    if field in (7, 10, 11, 12) and len(data) == 8:
        packed = int.from_bytes(data, "little", signed=True)
        sign = "-" if packed < 0 else ""
        micros, second, minute, hour = (
            abs(packed) >> at & mask for at, mask in ((0, 2**24 - 1), (24, 63), (30, 63), (36, 31))
        )
        if field == 11:
            return f'"{sign}{abs(packed) >> 36 & 1023:02d}:{minute:02d}:{second:02d}.{micros:06d}"'
        months, day = packed >> 46, packed >> 41 & 31
        date = f"{months // 13:04d}-{months % 13:02d}-{day:02d}"
        return f'"{date}"' if field == 10 else f'"{date} {hour:02d}:{minute:02d}:{second:02d}.{micros:06d}"'
    return f'"base64:type{field}:{base64.b64encode(data).decode()}"'


def _decimal(digits: int, scale: int, data: bytes) -> str:
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    whole = digits - scale
    if whole < 0:
        raise DecodeError("no decimal")
    groups = [whole % 9] * (whole % 9 > 0) + [9] * (whole // 9)
    split = len(groups)
    groups += [9] * (scale // 9) + [scale % 9] * (scale % 9 > 0)
    negative = data[0] < 128
    at, parts = 0, []
    for group in groups:
        raw = data[at : at + sizes[group]]
        if len(raw) < sizes[group]:
            raise DecodeError("JSON is cut off")
        number = int.from_bytes(raw, "big") ^ (1 << 8 * len(raw) - 1 if at == 0 else 0)
        parts.append(f"{number ^ (256 ** len(raw) - 1) if negative else number:0{group}d}")
        at += sizes[group]
    left = "".join(parts[:split]).lstrip("0") or "0"
    return ("-" if negative else "") + left + (f".{''.join(parts[split:])}" if scale else "")
