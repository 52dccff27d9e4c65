"""Which falls of a checkpoint are an owner of TiCDC's that died, and which are two changefeeds."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.support.changefeed_writer import ts
from tidegate.changefeed import falls
from tidegate.errors import SourceRefused, SourceUnwilling


def test_falls_that_are_long_past_count_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run may last for months, and an owner of TiCDC's die in any of them."""
    now, one = [0.0], falls.Falls("one")
    monkeypatch.setattr(falls, "time", SimpleNamespace(monotonic=lambda: now[0]))
    for _ in range(5):
        now[0] += 2 * 3600
        for _ in range(3):
            with pytest.raises(SourceUnwilling):
                one.look(ts(15), ts(20))
        one.look(ts(20), ts(20))
    with pytest.raises(SourceUnwilling):
        one.look(ts(15), ts(20))
    one.look(ts(20), ts(20))
    with pytest.raises(SourceRefused, match="fell 3 times"):
        one.look(ts(15), ts(20))
