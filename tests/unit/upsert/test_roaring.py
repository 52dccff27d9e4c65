"""The bytes of deletion vectors: every set of positions comes back, and damaged bytes are refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.upsert.deletions import z85
from tidegate.upsert.deletions.roaring import MAGIC, DamagedBitmap, decode, encode

# Positions within a container, across containers, and beyond 32 bits.
NUMBERS = st.one_of(st.integers(0, 200_000), st.integers(0, 1 << 40))


def ascending(numbers: set[int]) -> np.ndarray:
    return np.array(sorted(numbers), np.int64)


@settings(deadline=None)
@given(st.sets(NUMBERS, max_size=300))
def test_any_positions_come_back(numbers: set[int]) -> None:
    assert decode(encode(ascending(numbers))).tolist() == sorted(numbers)


@pytest.mark.parametrize("count", [4095, 4096, 4097, 65536])
def test_a_container_comes_back_on_both_sides_of_the_array_limit(count: int) -> None:
    positions = np.sort(np.random.default_rng(count).permutation(65536)[:count]).astype(np.int64) + 5 * 65536
    assert (decode(encode(positions)) == positions).all()


def bitmap(body: bytes) -> bytes:
    return struct.pack("<IQI", MAGIC, 1, 0) + body


def test_the_bytes_are_those_of_the_specification() -> None:
    """By hand: an array, then bits, then a second upper half. No runs: every writer gives the same bytes."""
    many = np.arange(0, 65536, 2)
    positions = np.concatenate([[3, 9], 2 * 65536 + many, [(1 << 32) + 5]]).astype(np.int64)
    described = struct.pack("<HHHH", 0, 1, 2, len(many) - 1) + struct.pack("<II", 24, 28)
    low = struct.pack("<II", 12346, 2) + described + struct.pack("<HH", 3, 9) + b"\x55" * 8192
    high = struct.pack("<IIHHIH", 12346, 1, 0, 0, 16, 5)
    written = struct.pack("<IQI", MAGIC, 2, 0) + low + struct.pack("<I", 1) + high
    assert encode(positions) == written
    assert (decode(written) == positions).all()


def test_runs_are_read_without_and_with_offsets() -> None:
    """By hand after RoaringFormatSpec: writers that optimise leave runs behind."""
    run = struct.pack("<HHHHH", 2, 3, 1, 100, 9)  # 3..4 and 100..109
    one = struct.pack("<I", 12347) + b"\x01" + struct.pack("<HH", 7, 11) + run
    assert decode(bitmap(one)).tolist() == [7 * 65536 + n for n in [3, 4, *range(100, 110)]]
    head = struct.pack("<I", 12347 | 3 << 16) + b"\x05"  # containers 0 and 2 are runs
    described = struct.pack("<8H", 0, 11, 1, 1, 2, 11, 3, 0)
    containers = run + struct.pack("<HH", 5, 6) + run + struct.pack("<H", 8)
    found = decode(bitmap(head + described + bytes(16) + containers)).tolist()
    inside = [3, 4, *range(100, 110)]
    assert found == [*inside, 65541, 65542, *(131072 + n for n in inside), 3 * 65536 + 8]


@settings(deadline=None)
@given(st.sets(NUMBERS, min_size=1, max_size=50), st.data())
def test_bytes_that_end_early_are_refused(numbers: set[int], data: st.DataObject) -> None:
    whole = encode(ascending(numbers))
    with pytest.raises(DamagedBitmap):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(DamagedBitmap):
        decode(whole + b"\0")


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<IQ", MAGIC - 1, 0),
        bitmap(struct.pack("<II", 9, 0)),
        bitmap(struct.pack("<II", 12346, 1 << 17)),
        bitmap(struct.pack("<II", 12346, 1) + struct.pack("<HHIHH", 0, 1, 16, 9, 3)),  # 9 before 3
        bitmap(struct.pack("<II", 12346, 1) + struct.pack("<HHI", 0, 4999, 16) + b"\xff" * 8192),  # says 5000
        bitmap(struct.pack("<I", 12347) + b"\x01" + struct.pack("<HHHHH", 0, 5, 1, 65530, 60000)),  # a run too long
        struct.pack("<IQI", MAGIC, 1, 1 << 31) + struct.pack("<IIHHIH", 12346, 1, 0, 0, 16, 5),  # no int64
    ],
)
def test_contradictions_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedBitmap):
        decode(data)


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_base85_comes_back(data: bytes) -> None:
    text = z85.encode(data)
    assert z85.decode(text)[: len(data)] == data
    assert len(text) == -(-len(data) // 4) * 5


def test_base85_as_zeromq_rfc_32_shows_it() -> None:
    assert z85.encode(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    for wrong in ("Hell", "Hell\n", "#####"):
        with pytest.raises(ValueError, match=r"multiple|alphabet|four bytes"):
            z85.decode(wrong)
