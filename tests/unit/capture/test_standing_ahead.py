"""A cut from the future isn't shown as one of which nothing is missing."""

from __future__ import annotations

from dataclasses import replace

from tidegate.capture.standing import CaptureStanding, SourceAnswer, SourceStanding
from tidegate.cli.status import status_lines


def test_a_cut_from_the_future_is_said_and_nothing_counts_as_complete() -> None:
    source = SourceStanding("one", None, SourceAnswer(), nothing_missing=True, lag_seconds=0.0, changed_at="-")
    good = CaptureStanding("p", 1 << 61, 0.0, (source,), (), (), ())
    poisoned = replace(good, ahead=True)
    assert (good.nothing_missing, poisoned.nothing_missing) == (True, False)
    assert "its cut is in the future" in status_lines(poisoned)[0]
    assert "nothing is missing" in status_lines(good)[0]
    assert poisoned.to_json()["ahead"]
