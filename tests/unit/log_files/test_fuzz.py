"""`tidegate decode` on damaged files: no crash, no hang, only typed errors, and books in which every byte stands."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.log_decode import GOLDEN, Decoded, decoded
from tests.support.seeds import many
from tidegate.errors import StreamCorrupt, UnsupportedValue

SEEDS = [path for path in GOLDEN if path.stat().st_size < 20_000]
SLOW = settings(max_examples=many(300, 5000), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
BYTES = st.integers(0, 255)


def events_of(content: bytes) -> list[bytes]:
    found, at = [], 4
    while at + 19 <= len(content):
        size = int.from_bytes(content[at + 9 : at + 13], "little")
        found.append(content[at : at + size])
        at += size
    return found


def sealed(event: bytes, checksum: bool) -> bytes:
    """With the checksum that its bytes have now, so that the damage gets past it."""
    if not checksum or len(event) < 23:
        return event
    return event[:-4] + zlib.crc32(event[:-4]).to_bytes(4, "little")


def run(content: bytes) -> Decoded | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz.000001"
        path.write_bytes(content)
        try:
            found = decoded([path], zero_dates="text")
        except (StreamCorrupt, UnsupportedValue):
            return None  # not a binlog
    ledger = found.stats[0]["ledger"]
    assert ledger["decoded"] + sum(ledger["ignored"].values()) + ledger["quarantined"] == len(content)
    return found


@SLOW
@given(
    seed=st.sampled_from(SEEDS),
    damage=st.lists(st.tuples(st.integers(0, 19_999), BYTES), min_size=1, max_size=4),
    cut=st.integers(0, 40_000),
)
def test_flipped_and_missing_bytes(seed: Path, damage: list[tuple[int, int]], cut: int) -> None:
    content = bytearray(seed.read_bytes())
    for at, value in damage:
        content[at % len(content)] = value
    run(bytes(content[:cut]))


@SLOW
@given(
    seed=st.sampled_from(SEEDS),
    damage=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2000), BYTES), min_size=1, max_size=3),
)
def test_events_that_lie_with_a_right_checksum(seed: Path, damage: list[tuple[int, int, int]]) -> None:
    content = seed.read_bytes()
    events = events_of(content)
    checksum = events[0][-5] == 1
    for number, at, value in damage:
        event = bytearray(events[number % len(events)])
        place = 4 if at % 9 == 0 else 19 + at % max(len(event) - 19, 1)  # its type, or a byte of its body
        if place < len(event):
            event[place] = value
        events[number % len(events)] = sealed(bytes(event), checksum)
    run(content[:4] + b"".join(events))


@SLOW
@given(seed=st.sampled_from(SEEDS), order=st.lists(st.integers(0, 400), min_size=1, max_size=60))
def test_events_in_any_order(seed: Path, order: list[int]) -> None:
    content = seed.read_bytes()
    events = events_of(content)
    run(content[:4] + events[0] + b"".join(events[number % len(events)] for number in order))


@settings(SLOW, max_examples=many(100, 2000))
@given(st.binary(max_size=400))
def test_garbage(garbage: bytes) -> None:
    run(garbage)
    run(b"\xfebin" + garbage)
    run(SEEDS[0].read_bytes()[: 4 + len(events_of(SEEDS[0].read_bytes())[0])] + garbage)
