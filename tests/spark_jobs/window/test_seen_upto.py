"""Where a view's place lies among what capture read of several logs.

In:  segments of the server that a wave was read from, and of a log whose numbers are lower.
Out: the commit_ts of the last transaction that the view sees: none of the other log.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark_jobs.window.waves.waves import seen_upto
from tidegate.segments.window import SegmentRef
from tidegate.snapshot.watermark import Manifest
from tidegate.snapshot.waves import EndedWave
from tidegate.tables import SegmentFlag


def ref(seq: int, place: str, server: str = "a", *, commit_ts: int = 0) -> SegmentRef:
    """Of 100 bytes; a transaction of its own, at commit_ts, else at 10 * seq."""
    file, _, start = place.partition(":")
    at = commit_ts or 10 * seq
    row = ("d.t",), SegmentFlag(0), "p", 0, seq
    return SegmentRef("s", seq, file, int(start), int(start) + 100, at, at, at, *row, server_uuid=server)


WAVE = EndedWave("snap", 1, "token", 10, 45, "a", (Manifest("d", "t"),), at="binlog.000005:300")
SEEN = [
    ref(1, "binlog.000005:0"),
    ref(2, "binlog.000005:100"),
    ref(3, "binlog.000005:200"),
    ref(4, "binlog.000005:300"),
]


def seen(refs: list[SegmentRef], wave: EndedWave = WAVE) -> int | None:
    """In a window that begins where the wave does."""
    return seen_upto(cast("Any", None), cast("Any", SimpleNamespace(low_ts=10, refs=refs)), "s", wave, 10)


def test_what_lies_before_the_place_is_seen() -> None:
    assert seen(SEEN) == 30
    assert seen([*SEEN, *SEEN]) == 30, "a segment may come twice"


@pytest.mark.parametrize("high_ts", [45, 1000], ids=["marks in the log", "marks in the lake, placed by apply"])
@pytest.mark.parametrize("server", ["b", "a"], ids=["failover", "its log was reset"])
def test_a_log_that_began_after_the_wave_isnt_seen_though_its_numbers_are_lower(server: str, high_ts: int) -> None:
    later = [ref(5, "binlog.000002:0", server), ref(6, "binlog.000002:100", server)]
    assert seen([*SEEN, *later], replace(WAVE, high_ts=high_ts)) == 30


def test_nor_are_changes_of_another_server_while_ours_named_no_table_of_the_wave() -> None:
    assert seen([SEEN[0], ref(5, "binlog.000005:120", "b")], replace(WAVE, high_ts=1000)) == 10
