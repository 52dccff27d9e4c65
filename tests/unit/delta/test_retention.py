"""Durations as Delta's table properties have them."""

from __future__ import annotations

import pytest

from tidegate.delta.table.log_retention import interval_us, log_ms, tombstones_ms, transactions_ms
from tidegate.errors import DeltaUnsupported

SECOND, DAY = 1_000_000, 86_400_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", 7 * DAY),
        ("INTERVAL 30 DAYS", 30 * DAY),
        ("  2 weeks ", 14 * DAY),
        ("1 day 12 hours", DAY * 3 // 2),
        ("interval 0 seconds", 0),
        ("interval 1 day -1 hours", 23 * 3600 * SECOND),
        ("1.5 seconds", SECOND * 3 // 2),
        ("3 minutes 2 seconds 1 millisecond 1 microsecond", 182 * SECOND + 1001),
    ],
)
def test_an_interval_is_a_duration(text: str, expected: int) -> None:
    assert interval_us(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "interval", "week", "1", "1 month", "interval 1 year", "-1 day", "1.5 days", "1 day x", "1 days2 hours"],
)
def test_what_is_not_one_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="it isn't"):
        interval_us(text)


def test_the_defaults_are_deltas() -> None:
    assert tombstones_ms({}) == 7 * DAY // 1000
    assert log_ms({}) == 30 * DAY // 1000
    assert log_ms({"delta.enableExpiredLogCleanup": "False"}) is None
    assert transactions_ms({}) is None
    with pytest.raises(DeltaUnsupported, match=r"delta\.logRetentionDuration is 'soon'"):
        log_ms({"delta.logRetentionDuration": "soon"})
