"""The last line of a capture run, for people."""

from __future__ import annotations

from tidegate.capture.progress import CaptureResult


def test_the_last_line_says_why_it_ended_and_what_it_has() -> None:
    def result(segments: int, seq: int, position: str) -> str:
        return str(CaptureResult("time", segments, 2_500_000 * segments, seq, 7, position, landed=True))

    assert result(0, 0, ":4") == "the run's time is up: nothing is captured yet"
    assert result(1, 9, "binlog.000001:76015") == (
        "the run's time is up: 1 segment, 2.5 MB; captured to binlog.000001:76015 (seq 9)"
    )
