"""A payload that was changed gets the CRC-32C that it had, by bytes that mean nothing.

In:  the payload, its events with free bytes, the CRC-32C that is wanted.
Out: other free bytes, or False where there aren't enough.

Capture compares a segment's CRC-32C with that of the server's own bytes, and so finds a server that lost its last
transactions. A payload without some rows must not look like that.

A checksum is linear: flipping a bit anywhere flips certain bits of it, whatever the rest is. The bits to flip are
therefore the solution of 32 equations. The event's own checksum, which follows its free bytes, is flipped along.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from tidegate.binlog.events import CHECKSUM_BYTES
from tidegate.segments.crc32c import crc32c

FREE_BYTES: Final = 8  # that are used, where there are so many: twice as many unknowns as equations


class FreeBytes(NamedTuple):
    """Bytes [begin, end) of the payload without a meaning, in the event that ends at event_end."""

    event_begin: int
    event_end: int
    begin: int
    end: int
    checksum_bytes: int


def keep_crc(payload: bytearray, places: Sequence[FreeBytes], wanted: int) -> bool:
    """Change free bytes so that the payload has this CRC-32C; False, and nothing is changed, where it can't be."""
    place = max(places, key=lambda each: each.end - each.begin, default=None)
    if place is None or place.end == place.begin:
        return False
    base = bytes(payload[place.event_begin : place.event_end])
    behind = len(payload) - place.event_end
    differs = crc32c(bytes(payload)) ^ wanted
    first = place.begin - place.event_begin
    bits = [(first + at, bit) for at in range(min(FREE_BYTES, place.end - place.begin)) for bit in range(8)]
    effects = [_effect(base, _flipped(base, [bit], place.checksum_bytes), behind) for bit in bits]
    chosen = _solved(effects, differs)
    if chosen is None:
        return False
    payload[place.event_begin : place.event_end] = _flipped(base, [bits[at] for at in chosen], place.checksum_bytes)
    return True


def _flipped(event: bytes, bits: Sequence[tuple[int, int]], checksum_bytes: int) -> bytes:
    """An event with other bits, and its checksum."""
    made = bytearray(event)
    for at, bit in bits:
        made[at] ^= 1 << bit
    if checksum_bytes:
        made[-CHECKSUM_BYTES:] = zlib.crc32(bytes(made[:-CHECKSUM_BYTES])).to_bytes(CHECKSUM_BYTES, "little")
    return bytes(made)


def _effect(before: bytes, after: bytes, behind: int) -> int:
    """The effect of an event's change on the CRC-32C of a payload that has so many bytes behind it."""
    zeros = bytes(behind)
    return crc32c(zeros, crc32c(before)) ^ crc32c(zeros, crc32c(after))


def _solved(effects: Sequence[int], wanted: int) -> list[int] | None:
    """The effects that together are wanted, by elimination; None where none are."""
    rows: list[tuple[int, int]] = []  # a value with a top bit of its own, and the effects that make it
    for at, effect in enumerate(effects):
        value, made_of = effect, 1 << at
        for other, others in rows:
            if value ^ other < value:
                value, made_of = value ^ other, made_of ^ others
        if value:
            rows.append((value, made_of))
            rows.sort(reverse=True)
    chosen = 0
    for value, made_of in rows:
        if wanted ^ value < wanted:
            wanted, chosen = wanted ^ value, chosen ^ made_of
    return None if wanted else [at for at in range(len(effects)) if chosen >> at & 1]
