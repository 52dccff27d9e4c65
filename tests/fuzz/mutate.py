"""Damaged binlog files that still look whole: sizes and checksums are made good again after most of the damage.

In:  binlog files, a seeded random.Random.
Out: bytes of a file: bits flipped, numbers set to extremes, bytes taken out or put in, events doubled, left out or
     taken from other files; damage inside compressed events too, which are packed again.
"""

from __future__ import annotations

import contextlib
import random
import struct
import zlib
from dataclasses import dataclass, replace

import pyarrow as pa

from tests.unit.binlog.encoding import events as e

MAGIC = b"\xfebin"
_EXTREMES = (0, 1, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000)
_EXTREMES += (0xFFFFFFFF, (1 << 48) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_ZSTD = b"\x28\xb5\x2f\xfd"
# Where most of a decoder is: TABLE_MAP, rows of all kinds, statements, GTIDs, compressed events.
_RICH = frozenset({2, 19, 20, 21, 22, 23, 24, 25, 30, 31, 32, 33, 39, 40, 42, 162, *range(165, 172)})


@dataclass(frozen=True)
class Event:
    """head: timestamp, type, server id; tail: next position, flags. checksum: whether one follows the body."""

    head: bytes
    tail: bytes
    body: bytes
    checksum: bool

    @property
    def kind(self) -> int:
        return self.head[4]

    def __bytes__(self) -> bytes:
        size = 19 + len(self.body) + (4 if self.checksum else 0)
        whole = self.head + struct.pack("<I", size & 0xFFFFFFFF) + self.tail + self.body
        return whole + struct.pack("<I", zlib.crc32(whole)) if self.checksum else whole


def events_of(content: bytes) -> list[Event]:
    """Events of a whole file. Its first one says whether the others have checksums."""
    found: list[Event] = []
    at, checksum = 4, True
    while at + 19 <= len(content):
        size = int.from_bytes(content[at + 9 : at + 13], "little")
        whole = content[at : at + size]
        if whole[4] == 15:
            checksum = whole[-5] == 1
        end = len(whole) - (4 if checksum or whole[4] == 15 else 0)
        found.append(Event(whole[:9], whole[13:19], whole[19:end], checksum or whole[4] == 15))
        at += size
    return found


def damaged(data: bytes, r: random.Random) -> bytes:
    """One to four small damages."""
    made = bytearray(data)
    for _ in range(r.choice([1, 1, 2, 4])):
        at = r.randrange(len(made) + 1)
        how = r.randrange(6)
        if how == 0 and at < len(made):
            made[at] ^= 1 << r.randrange(8)
        elif how == 1:
            width = r.choice([1, 1, 2, 3, 4, 8])
            number = r.choice(_EXTREMES) & ((1 << 8 * width) - 1)
            made[at : at + width] = number.to_bytes(width, r.choice(["little", "big"]))
        elif how == 2:
            del made[at : at + r.choice([1, 2, 7, 64])]
        elif how == 3:
            made[at:at] = r.randbytes(r.choice([1, 2, 8, 100]))
        elif how == 4 and made:
            start = r.randrange(len(made))
            made[at:at] = made[start : start + r.randrange(1, 60)]
        elif at < len(made):
            made[at] = r.randrange(256)
    return bytes(made)


def _lenenc(data: bytes, at: int) -> tuple[int, int]:
    width = {252: 2, 253: 3, 254: 8}.get(data[at], 0)
    return int.from_bytes(data[at + 1 : at + 1 + width] if width else data[at : at + 1], "little"), at + 1 + width


def _unpacked_payload(body: bytes) -> list[bytes]:
    """Events inside a TRANSACTION_PAYLOAD, without checksums."""
    at, size = 0, 0
    while (field := body[at]) != 0:
        length, at = _lenenc(body, at + 1)
        if field == 3:
            size = _lenenc(body, at)[0]
        at += length
    plain = pa.Codec("zstd").decompress(body[body.index(_ZSTD) :], size, asbytes=True)
    found, at = [], 0
    while at < len(plain):
        length = int.from_bytes(plain[at + 9 : at + 13], "little")
        found.append(plain[at : at + length])
        at += length
    return found


def _damaged_payload(body: bytes, r: random.Random) -> bytes:
    inner = _unpacked_payload(body)
    at = r.randrange(len(inner))
    changed = damaged(inner[at][19:], r)
    size = (19 + len(changed)).to_bytes(4, "little")
    inner[at] = inner[at][:9] + size + inner[at][13:19] + changed
    plain = b"".join(inner) if r.random() < 0.9 else damaged(b"".join(inner), r)
    packed = pa.Codec("zstd").compress(plain, asbytes=True)
    told = len(plain) if r.random() < 0.9 else r.choice(_EXTREMES)
    return e.fields(compression=0, unpacked=told, size=len(packed)) + packed


def _damaged_deflate(body: bytes, r: random.Random) -> bytes:
    """MariaDB's compressed statements and rows."""
    at = next(i for i in range(len(body)) if body[i] == 0x78 and body[i - 1 - (body[i - 2] & 7)] | 0x80 > 0x80)
    front = next(i for i in range(at - 5, at) if body[i] & 0x80 and i + 1 + (body[i] & 7) == at)
    return body[:front] + e.deflated(damaged(zlib.decompress(body[at:]), r))


def damaged_event(event: Event, r: random.Random) -> Event:
    inside = {40: _damaged_payload, **dict.fromkeys(range(165, 172), _damaged_deflate)}.get(event.kind)
    if inside is not None and r.random() < 0.7:
        with contextlib.suppress(Exception):  # what isn't packed as expected is damaged from outside
            return replace(event, body=inside(event.body, r))
    if r.random() < 0.05:  # another kind of event
        event = replace(event, head=event.head[:4] + bytes([r.choice([*_RICH, r.randrange(256)])]) + event.head[5:])
    return replace(event, body=damaged(event.body, r))


def mutated(file: bytes, files: list[bytes], r: random.Random) -> bytes:
    """A file with something wrong; files: of which events may come in."""
    events = events_of(file)
    rich = [i for i, event in enumerate(events) if event.kind in _RICH] or [0]
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        at = r.choice(rich) if r.random() < 0.85 else r.randrange(len(events))
        at = min(at, len(events) - 1)
        how = r.randrange(12)
        if how == 0:
            events.insert(r.randrange(len(events) + 1), events[at])
        elif how == 1 and len(events) > 1:
            del events[at]
        elif how == 2:
            other = events_of(r.choice(files))
            start = r.randrange(len(other))
            events[at:at] = [replace(x, checksum=events[0].checksum) for x in other[start : start + r.randrange(1, 5)]]
        else:
            events[at] = damaged_event(events[at], r)
    content = MAGIC + b"".join(map(bytes, events))
    how = r.random()
    if how < 0.1:
        return damaged(content, r)
    return content[: r.randrange(len(content))] if how < 0.15 else content
