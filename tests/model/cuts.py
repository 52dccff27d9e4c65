"""Segments, a value log and bronze for the model of two machines, as the product's rules ask them.

In:  Cuts: a transaction each, or a heartbeat.
Out: the Segment that a Cut stands for; what recover() and check_attaches() look at of a log and of bronze.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.segments import segment
from tidegate.capture.value_log.file import Pointer, Record
from tidegate.errors import LakeUnavailable
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag


class Cut(NamedTuple):
    """A segment of one transaction, or of none: a heartbeat. Timestamps: 2 n of transaction n, 2 n + 1 after it."""

    seq: int
    prev: int
    resolved: int
    start: int
    end: int
    txn: int


@cache
def made(cut: Cut) -> Segment:
    return replace(
        segment(cut.seq),
        start_pos=cut.start,
        end_pos=cut.end,
        prev_commit_ts=cut.prev,
        max_commit_ts=cut.resolved,
        resolved_ts=cut.resolved,
        payload_crc32c=cut.txn,
        flags=SegmentFlag(0),
    )


class FakeBronze:
    source = "one"

    def __init__(self, cuts: tuple[Cut, ...], is_up: bool = True) -> None:
        self._cuts, self._is_up = cuts, is_up

    def last_segments(self) -> list[Segment]:
        if not self._is_up:
            raise LakeUnavailable("it is away", remedy="wait")
        return [made(cut) for cut in self._cuts[-1:]]

    def segment(self, seq: int) -> Segment | None:
        return made(self._cuts[seq - 1]) if seq <= len(self._cuts) else None

    def newest_first(self) -> Iterator[Segment]:
        return map(made, reversed(self._cuts))


class FakeLog:
    folder = Path("log")

    def __init__(self, cuts: tuple[Cut, ...]) -> None:
        self._cuts = cuts

    def newest(self) -> Segment | None:
        return made(self._cuts[-1]) if self._cuts else None

    def tail(self) -> Segment | None:
        """Nothing goes from this log."""

    def heads(self, after_seq: int = 0) -> Iterator[Record]:
        return (Record(Pointer(1, cut.seq, 1), made(cut)) for cut in self._cuts if cut.seq > after_seq)
