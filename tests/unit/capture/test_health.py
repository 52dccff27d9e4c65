"""Why silver is behind, in words: the slow part is named, and no other.

In:  standings.
Out: the hop that they blame.
"""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.support.pipeline_views import CHASING, table, view
from tidegate.capture.health import Hop, slowest, why
from tidegate.capture.progress import CaptureProgress
from tidegate.capture.silence import LeasedWork, LeaseHolder
from tidegate.standing.causes import Cause
from tidegate.tables import State


@pytest.mark.parametrize(("unapplied", "hop"), [(2_100_000, Hop.APPLY), (0, Hop.CAPTURE)])
def test_before_the_first_cut_what_waits_in_bronze_waits_for_apply(unapplied: int, hop: Hop) -> None:
    """Capture is a second behind a busy server, and apply's first window takes minutes."""
    stands = view(held=False).standing
    assert stands is not None
    eu = replace(stands.sources[0], lag_seconds=0.7, unapplied_bytes=unapplied, nothing_missing=False)
    begins = replace(stands, cut_ts=0, lag_seconds=None, sources=(eu,), tables=())
    at = slowest(begins)
    assert at is not None
    assert at.hop is hop
    if hop is Hop.APPLY:
        assert why(begins) == "Nothing is applied yet. Apply has published no cut yet: 2.1 MB wait for shop__apply."


@pytest.mark.parametrize("state", ["rests", "woke", "runs", "unknown"])
def test_after_a_rest_nobody_is_asked_whether_capture_runs(state: str) -> None:
    """The first change after a quiet time: nothing was missing before it. The page said `9 min behind ... does
    shop__capture run?`
    """
    now = time.time()
    stands = view(held=False, lag=540).standing
    assert stands is not None
    eu = stands.sources[0]
    assert eu.captured is not None
    late = replace(eu, nothing_missing=False, lag_seconds=540.0, behind_bytes=1_200)
    late = replace(late, captured=replace(eu.captured, heard_at=now - 540))
    holders = [holder for holder in stands.holders if holder.work is LeasedWork.APPLY]
    if state == "rests":
        late = replace(late, rests_since=now - 530)
    if state == "woke":
        holders.append(LeaseHolder(LeasedWork.CAPTURE, "eu", "m1", now - 3))
    if state == "runs":
        holders.append(LeaseHolder(LeasedWork.CAPTURE, "eu", "m1", now - 600))
    words = why(replace(stands, sources=(late,), holders=tuple(holders)))
    assert (
        words
        == {
            "rests": "Silver is at most 9 min behind. Capture of eu rested for 9 min; 1.2 kB of binlog came meanwhile,"
            " and shop__capture goes on with it.",
            "woke": "Silver is at most 9 min behind. Capture of eu rested for 9 min; 1.2 kB of binlog came meanwhile,"
            " and shop__capture goes on with it.",
            "runs": "Silver is 9 min behind. Capture of eu is 9 min behind its server, 1.2 kB of binlog. It has run for"
            " 10 min, and its last segment came 9 min ago.",
            "unknown": "Silver is 9 min behind. Capture of eu is 9 min behind its server, 1.2 kB of binlog. Its last"
            " segment came 9 min ago: does shop__capture run?",
        }[state]
    )


def test_a_run_that_has_heard_nothing_yet_does_not_call_the_rest_before_it_a_lag() -> None:
    """The log said `517.0 s behind`, and nothing was missing."""
    progress = CaptureProgress(0, 0, 0.0, 7, 7, 0, CHASING, 517.0, "binlog.000001:4")
    assert progress.lag_text == "nothing has come yet since the last run, 9 min ago"
    assert replace(progress, segments=1, lag_seconds=0.42).lag_text == "0.4 s behind"


@pytest.mark.parametrize("cause", list(Cause))
def test_what_tables_wait_for_is_said_of_every_cause(cause: Cause) -> None:
    """The page said `Nothing is missing, but 5 of 5 tables wait`."""
    stands = view(held=False, lag=0).standing
    assert stands is not None
    held = replace(table("shop.a", State.HELD), cause=str(cause))
    words = why(replace(stands, tables=(held,) * 5))
    assert words.startswith("Bronze has all that the sources wrote, but 5 of 5 tables wait: 5 for ")
    assert "Nothing is missing" not in words
