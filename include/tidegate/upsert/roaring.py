"""Positions of dead rows as bytes: Delta's 64-bit Roaring bitmap array.

In:  ascending int64 positions, or bytes. Out: the other.

Layout, all little-endian (delta-io PROTOCOL.md "Deletion Vector Format"; RoaringFormatSpec, "standard"): magic
1681511377 u32; count u64; per upper 32 bits in ascending order: key u32 and a 32-bit bitmap. A bitmap: cookie 12346
u32 and container count u32, or (count - 1) << 16 | 12347 and a bit per container that is made of runs; per container
key u16 and cardinality - 1 u16; offsets u32 (with runs: only from 4 containers on); then containers: sorted u16 up to
a cardinality of 4096, else 8 KiB of bits; runs: count u16, then start u16 and length - 1 u16.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]

MAGIC: Final = 1681511377
_NO_RUNS: Final = 12346
_RUNS: Final = 12347
_ARRAY_MAX: Final = 4096
_BITMAP_BYTES: Final = 8192
_OFFSETS_FROM: Final = 4


class DamagedBitmap(Exception):  # noqa: N818 - becomes LakeRefused with a place
    """The bytes contradict themselves."""


def encode(positions: Positions) -> bytes:
    """positions: ascending, distinct, at least 0."""
    upper = positions >> 32
    keys, starts = np.unique(upper, return_index=True)
    edges = [*starts.tolist(), len(positions)]
    parts = [struct.pack("<IQ", MAGIC, len(keys))]
    for number, key in enumerate(keys.tolist()):
        parts.append(struct.pack("<I", key))
        parts += _bitmap(positions[edges[number] : edges[number + 1]] & 0xFFFFFFFF)
    return b"".join(parts)


def _bitmap(values: Positions) -> list[bytes]:
    keys, starts, counts = np.unique(values >> 16, return_index=True, return_counts=True)
    low = (values & 0xFFFF).astype("<u2")
    described = np.stack([keys, counts - 1], axis=1).astype("<u2")
    sizes = np.where(counts <= _ARRAY_MAX, 2 * counts, _BITMAP_BYTES)
    offsets = (8 + 8 * len(keys) + np.concatenate([[0], np.cumsum(sizes)[:-1]])).astype("<u4")
    parts = [struct.pack("<II", _NO_RUNS, len(keys)), described.tobytes(), offsets.tobytes()]
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        members = low[start : start + count]
        if count <= _ARRAY_MAX:
            parts.append(members.tobytes())
            continue
        bits = np.zeros(1 << 16, np.uint8)
        bits[members] = 1
        parts.append(np.packbits(bits, bitorder="little").tobytes())
    return parts


class _Reader:
    def __init__(self, data: bytes | memoryview) -> None:
        self.data = memoryview(data)
        self.at = 0

    def take(self, count: int) -> memoryview:
        if self.at + count > len(self.data):
            raise DamagedBitmap(f"{len(self.data)} bytes end in mid-container")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def shorts(self, count: int) -> npt.NDArray[np.int64]:
        return np.frombuffer(self.take(2 * count), "<u2").astype(np.int64)


def decode(data: bytes | memoryview) -> Positions:
    """Ascending positions. Raises DamagedBitmap."""
    reader = _Reader(data)
    magic = reader.number(4)
    if magic != MAGIC:
        raise DamagedBitmap(f"it starts with {magic}, not {MAGIC}")
    parts, last = [np.zeros(0, np.int64)], -1
    for _ in range(reader.number(8)):
        key = reader.number(4)
        if key <= last or key >> 31:
            raise DamagedBitmap(f"upper half {key} after {last}")
        parts += [values + (key << 32) for values in _containers(reader)]
        last = key
    if reader.at != len(reader.data):
        raise DamagedBitmap(f"{len(reader.data) - reader.at} bytes behind the last container")
    positions = np.concatenate(parts)
    if len(positions) > 1 and not (positions[1:] > positions[:-1]).all():
        raise DamagedBitmap("positions aren't ascending")
    return positions


def _containers(reader: _Reader) -> list[Positions]:
    cookie = reader.number(4)
    runs = cookie & 0xFFFF == _RUNS
    if not runs and cookie != _NO_RUNS:
        raise DamagedBitmap(f"cookie {cookie}")
    count = (cookie >> 16) + 1 if runs else reader.number(4)
    if count > 1 << 16:
        raise DamagedBitmap(f"{count} containers")
    flags = np.zeros(count, np.uint8)
    if runs:
        flags = np.unpackbits(np.frombuffer(reader.take((count + 7) // 8), np.uint8), bitorder="little")[:count]
    described = reader.shorts(2 * count).reshape(-1, 2)
    if not runs or count >= _OFFSETS_FROM:
        reader.take(4 * count)  # containers follow each other in order
    return [
        (int(key) << 16) + _container(reader, int(less) + 1, run=bool(flag))
        for (key, less), flag in zip(described.tolist(), flags.tolist(), strict=True)
    ]


def _container(reader: _Reader, cardinality: int, *, run: bool) -> Positions:
    if run:
        pairs = reader.shorts(2 * reader.number(2)).reshape(-1, 2)
        lengths = pairs[:, 1] + 1
        firsts = np.repeat(pairs[:, 0] - np.concatenate([[0], np.cumsum(lengths)[:-1]])[: len(pairs)], lengths)
        members = firsts + np.arange(len(firsts))
    elif cardinality <= _ARRAY_MAX:
        members = reader.shorts(cardinality)
    else:
        bits = np.frombuffer(reader.take(_BITMAP_BYTES), np.uint8)
        members = np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int64)
    if len(members) != cardinality or (len(members) and members[-1] >= 1 << 16):
        raise DamagedBitmap(f"a container of {len(members)} says {cardinality}")
    return members
