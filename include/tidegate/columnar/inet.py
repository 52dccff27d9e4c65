"""MariaDB's UUID, INET4 and INET6 as the server's own text.

In:  4 or 16 bytes.
Out: text exactly as SELECT shows it; DecodeError for another number of bytes.

It differs from C's inet_ntop: a single group of zeros also becomes "::" (MariaDB
sql/sql_type_inet.cc, Inet6::to_string). If several runs of zeros are the longest, the first one
does.
"""

from __future__ import annotations

import struct
import uuid

from tidegate.errors import DecodeError
from tidegate.remedy import REPORT


def uuid_text(value: bytes) -> str:
    _check(value, 16)
    return str(uuid.UUID(bytes=value))


def inet4_text(value: bytes) -> str:
    _check(value, 4)
    return ".".join(map(str, value))


def inet6_text(value: bytes) -> str:
    _check(value, 16)
    groups = struct.unpack(">8H", value)
    start, length = _longest_zeros(groups)
    tail = [f"{group:x}" for group in groups[start + length :]]
    if start == 0 and (length == 6 or (length == 5 and groups[5] == 0xFFFF)):  # an IPv4 address at the end
        tail[-2:] = [inet4_text(value[12:])]
    if not length:
        return ":".join(tail)
    return ":".join(f"{group:x}" for group in groups[:start]) + "::" + ":".join(tail)


def _check(value: bytes, size: int) -> None:
    if len(value) != size:
        raise DecodeError(f"a UUID or address of {len(value)} bytes instead of {size}", remedy=REPORT)


def _longest_zeros(groups: tuple[int, ...]) -> tuple[int, int]:
    """(start, length) of the first of the longest runs of zeros; (0, 0) without zeros."""
    best, at = (0, 0), 0
    while at < len(groups):
        end = at
        while end < len(groups) and groups[end] == 0:
            end += 1
        if end - at > best[1]:
            best = (at, end - at)
        at = end + 1
    return best
