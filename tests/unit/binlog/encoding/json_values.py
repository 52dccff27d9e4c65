"""MySQL's binary JSON, and the server's own text of it, for tests: written from the format's description.

In:  a Python value: None, bool, int, float, str, list, dict, or Opaque (a field type and its bytes, with its text).
Out: bytes as in a JSON column's value, and the text that SELECT shows.

Layout: mysql-server sql-common/json_binary.h. Objects are sorted by key length, then bytes.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Opaque:
    """A value of a type that JSON has not: its field type, its bytes, and what SELECT shows (JSON text)."""

    field: int
    data: bytes
    text: str


@dataclass(frozen=True)
class Large:
    """A container in the large form although it is small, which readers must accept."""

    value: Any


def binary_json(value: Any) -> bytes:
    kind, data = _encode(value)
    return bytes([kind]) + data


def _length(count: int) -> bytes:
    made = b""
    while count > 127:
        made += bytes([count & 127 | 128])
        count >>= 7
    return made + bytes([count])


def _encode(value: Any) -> tuple[int, bytes]:
    """(type, bytes behind it)."""
    if value is None or isinstance(value, bool):
        return 4, bytes([0 if value is None else 1 if value else 2])
    if isinstance(value, int):
        for kind, form in ((5, "<h"), (6, "<H"), (7, "<i"), (8, "<I"), (9, "<q"), (10, "<Q")):
            try:
                return kind, struct.pack(form, value)
            except struct.error:
                continue
        raise ValueError(value)
    if isinstance(value, float):
        return 11, struct.pack("<d", value)
    if isinstance(value, str):
        data = value.encode()
        return 12, _length(len(data)) + data
    if isinstance(value, Opaque):
        return 15, bytes([value.field]) + _length(len(value.data)) + value.data
    if not isinstance(value, Large):
        small = _container(value, 2)
        if small is not None:
            return (0 if isinstance(value, dict) else 2), small
    inner = value.value if isinstance(value, Large) else value
    large = _container(inner, 4)
    assert large is not None
    return (1 if isinstance(inner, dict) else 3), large


def _container(value: list[Any] | dict[str, Any], width: int) -> bytes | None:
    """None when the small form has no room for it."""
    keys = sorted((k.encode() for k in value), key=lambda k: (len(k), k)) if isinstance(value, dict) else []
    values = [value[k.decode()] for k in keys] if isinstance(value, dict) else value
    at = 2 * width + len(keys) * (width + 2) + len(values) * (1 + width)
    limit = 1 << 8 * width
    key_entries, value_entries, tail = b"", b"", b""
    for key in keys:
        if at + len(tail) >= limit:
            return None
        key_entries += (at + len(tail)).to_bytes(width, "little") + struct.pack("<H", len(key))
        tail += key
    parts = [tail]
    at += len(tail)
    for inner in values:
        kind, data = _encode(inner)
        if kind in (4, 5, 6) or (width == 4 and kind in (7, 8)):
            value_entries += bytes([kind]) + data.ljust(width, b"\0" if kind != 5 or data[1] < 128 else b"\xff")
            continue
        if at >= limit:
            return None
        value_entries += bytes([kind]) + at.to_bytes(width, "little")
        parts.append(data)
        at += len(data)
    if at >= limit or len(values) >= limit:
        return None
    head = len(values).to_bytes(width, "little") + at.to_bytes(width, "little")
    return head + key_entries + value_entries + b"".join(parts)


def json_shown(value: Any) -> str:
    """As SELECT shows it. Doubles: only such as Python and the server write alike (no exponents)."""
    if isinstance(value, Large):
        return json_shown(value.value)
    if isinstance(value, Opaque):
        return value.text
    if isinstance(value, list):
        return "[" + ", ".join(map(json_shown, value)) + "]"
    if isinstance(value, dict):
        keys = sorted(value, key=lambda k: (len(k.encode()), k.encode()))
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {json_shown(value[k])}" for k in keys) + "}"
    return json.dumps(value, ensure_ascii=False)
