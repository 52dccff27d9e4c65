"""The event checksum is zlib's CRC-32, by either road, at every length and alignment."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from tidegate.binlog import crc32 as module

ROADS = [False, True] if module.has_carryless_multiply() else [False]


@pytest.mark.parametrize("carryless", ROADS)
def test_it_is_zlibs_crc32_at_every_length_and_alignment(carryless: bool) -> None:
    checksum = module._compiled_road(carryless=carryless)
    data = np.random.default_rng(7).integers(0, 256, 70_000, dtype=np.uint8)
    for length in [*range(300), 1000, 8191, 8192, 65_537]:
        for start in (0, 1, 7, 15):
            assert checksum(data.ctypes.data + start, length) == zlib.crc32(data[start : start + length].tobytes())


def test_one_flipped_bit_changes_it() -> None:
    data = np.zeros(500, np.uint8)
    sound = module.crc32_at(data.ctypes.data, 500)
    for bit in range(0, 4000, 37):
        data[bit // 8] ^= 1 << bit % 8
        assert module.crc32_at(data.ctypes.data, 500) != sound
        data[bit // 8] ^= 1 << bit % 8
