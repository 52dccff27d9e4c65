"""Why silver is behind, in words: the slow part is named, and no other.

In:  standings.
Out: the hop that they blame.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.pipeline_views import view
from tidegate.capture.health import Hop, slowest, why


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
