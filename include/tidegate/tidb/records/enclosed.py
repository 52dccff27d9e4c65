"""A segment's payload: the payloads of a run of WriteBinlog requests, each after its length.

In:  payloads, or a segment.
Out: the other. The same form as a recorded stream's binlog.bin.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from tidegate.errors import StreamCorrupt
from tidegate.remedy import REPORT
from tidegate.segments.segment import Segment

_LENGTH: Final = struct.Struct("<Q")
LENGTH_BYTES: Final = _LENGTH.size


def joined(payloads: Iterable[bytes]) -> bytes:
    return b"".join(part for payload in payloads for part in (_LENGTH.pack(len(payload)), payload))


def payloads_of(segment: Segment) -> Iterator[bytes]:
    """Raises StreamCorrupt."""
    return (payload for _, payload in placed_payloads(segment))


def placed_payloads(segment: Segment) -> Iterator[tuple[int, bytes]]:
    """Each with where it begins in the segment, its length included. Raises StreamCorrupt."""
    data, at = memoryview(segment.payload), 0
    while at < len(data):
        size = _LENGTH.unpack_from(data, at)[0] if at + LENGTH_BYTES <= len(data) else -1
        at += LENGTH_BYTES
        if not 0 <= size <= len(data) - at:
            raise StreamCorrupt("a payload is cut off", where=segment.where, remedy=REPORT)
        yield at - LENGTH_BYTES, bytes(data[at : at + size])
        at += size
