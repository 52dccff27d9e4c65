"""A busy apply says what it did every ten seconds, not twice a second; news of a table comes at once."""

from __future__ import annotations

import time

import pytest

from spark_jobs.session.window_lines import WindowDone, WindowLines
from tidegate.commit_ts import compose


def test_windows_come_together_and_news_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    said = list[str]()
    lines = WindowLines(said.append)

    def window(number: int, notes: str = "", *, is_news: bool = False) -> None:
        lines.add(WindowDone(compose(1_700_000_000_000 + number), 1, 100, 9, 0.25, notes, is_news))

    window(1, " (9 by position)")
    assert len(said) == 1, "the first one, so that a person sees that it works"
    assert "100 changes, 9 tables, 1 segment in 0.25 s (9 by position)" in said[0]
    assert said[0].startswith("silver is complete up to 2023-11-14 22:13:20 UTC (cut ")
    for number in range(2, 12):
        now += 0.5
        window(number)
    assert len(said) == 1
    window(12, "; held: shop.a", is_news=True)
    assert "1,000 changes, 10 windows in 2.50 s" in said[1]
    assert said[2].endswith("in 0.25 s; held: shop.a")
    now += 11
    window(13)
    assert len(said) == 4
    window(14)
    lines.flush()
    lines.flush()
    assert len(said) == 5
