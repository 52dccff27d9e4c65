"""A changed payload gets its old CRC-32C again, by bytes without a meaning.

In:  the payload, its events with free bytes, the wanted CRC-32C.
Out: new free bytes; False if there aren't enough.

Capture compares a segment's CRC-32C with that of the server's own bytes, so it finds a server that
lost its last transactions. A payload from which rows were erased must not look like that.

A checksum is linear: flipping one bit anywhere flips certain bits of the checksum, whatever the
rest is. The bits to flip therefore solve 32 equations. An event's own checksum, which follows its
free bytes, is flipped with them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from tidegate.binlog.format.events import CHECKSUM_BYTES
from tidegate.segments.crc32c import crc32c

FREE_BYTES: Final = 8  # how many are used, if there are so many: twice as many unknowns as equations


class FreeBytes(NamedTuple):
    """Bytes [begin, end) of the payload without a meaning. event_end: the end of their event."""

    event_begin: int
    event_end: int
    begin: int
    end: int
    checksum_bytes: int


def keep_crc(payload: bytearray, places: Sequence[FreeBytes], wanted: int) -> bool:
    """Change free bytes so that the payload has this CRC-32C. If this can't be: False, and nothing
    is changed.
    """
    bits: list[tuple[FreeBytes, int, int]] = []
    for place in sorted(places, key=lambda each: each.begin - each.end):
        first, room = place.begin - place.event_begin, min(place.end - place.begin, FREE_BYTES - len(bits) // 8)
        bits += [(place, first + at, bit) for at in range(room) for bit in range(8)]
    differs = crc32c(bytes(payload)) ^ wanted
    chosen = _solved([_effect(payload, place, at, bit) for place, at, bit in bits], differs)
    if chosen is None:
        return False
    for place in {bits[number][0] for number in chosen}:
        flips = [(at, bit) for of, at, bit in map(bits.__getitem__, chosen) if of is place]
        event = bytes(payload[place.event_begin : place.event_end])
        payload[place.event_begin : place.event_end] = _flipped(event, flips, place.checksum_bytes)
    return True


def _flipped(event: bytes, bits: Sequence[tuple[int, int]], checksum_bytes: int) -> bytes:
    """An event with flipped bits, and the checksum for it."""
    made = bytearray(event)
    for at, bit in bits:
        made[at] ^= 1 << bit
    if checksum_bytes:
        made[-CHECKSUM_BYTES:] = zlib.crc32(bytes(made[:-CHECKSUM_BYTES])).to_bytes(CHECKSUM_BYTES, "little")
    return bytes(made)


def _effect(payload: bytearray, place: FreeBytes, at: int, bit: int) -> int:
    """How flipping a bit of an event changes the payload's CRC-32C."""
    event = bytes(payload[place.event_begin : place.event_end])
    behind = bytes(len(payload) - place.event_end)
    return crc32c(behind, crc32c(event)) ^ crc32c(behind, crc32c(_flipped(event, [(at, bit)], place.checksum_bytes)))


def _solved(effects: Sequence[int], wanted: int) -> list[int] | None:
    """Which effects together give the wanted one, by elimination; None if no choice does."""
    rows: list[tuple[int, int]] = []  # (value with a top bit that no other row has, the effects that it is made of)
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
