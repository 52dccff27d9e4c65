"""When a source purges what isn't captured yet: by age, by size, by hand."""

from __future__ import annotations

import logging
import time

import pytest

from tidegate.capture.purging import PurgeRules
from tidegate.mysql.retention import RetentionWatch, purge_rules, purge_text

DAY = 86400.0


@pytest.mark.parametrize(
    ("variables", "rules"),
    [
        ({"binlog_expire_logs_seconds": "2592000", "binlog_expire_logs_auto_purge": "ON"}, PurgeRules(30 * DAY, None)),
        ({"binlog_expire_logs_seconds": "2592000", "binlog_expire_logs_auto_purge": "OFF"}, PurgeRules(None, None)),
        ({"expire_logs_days": "0.500000", "binlog_expire_logs_seconds": "43200"}, PurgeRules(DAY / 2, None)),
        ({"expire_logs_days": "7"}, PurgeRules(7 * DAY, None)),
        ({"binlog_expire_logs_seconds": "0", "max_binlog_total_size": "1073741824"}, PurgeRules(None, 1 << 30)),
        ({}, PurgeRules(None, None)),
    ],
)
def test_the_rules_of_each_servers_age(variables: dict[str, str], rules: PurgeRules) -> None:
    assert purge_rules(variables) == rules


def test_by_age_what_was_reached_stays_for_the_rest_of_it() -> None:
    watch = RetentionWatch("db", PurgeRules(10 * 3600, None), 0)
    found = watch.look([("b.1", 100), ("b.2", 100), ("b.3", 5)], "b.2", age_seconds=3600)
    assert (found.seconds_left, found.rule, found.oldest_file, found.files_before) == (9 * 3600, "age", "b.1", 1)
    assert watch.look([("b.2", 100)], "b.2", age_seconds=11 * 3600).seconds_left == 0


def test_by_size_the_servers_own_rate_says_when(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    watch = RetentionWatch("db", PurgeRules(None, 1_000_000), 0)
    first = watch.look([("b.1", 400_000), ("b.2", 100_000)], "b.2", 0)
    assert first.seconds_left is None, "one look tells no rate"
    clock += 60
    # 60,000 bytes in a minute: 20,000 in the second file, 40,000 in a third; the first was purged meanwhile.
    found = watch.look([("b.2", 120_000), ("b.3", 40_000)], "b.2", 0)
    assert (found.rule, found.seconds_left) == ("size", (1_000_000 - 160_000) / 1000)


def test_the_sooner_rule_counts_and_a_purged_file_is_said_at_once(caplog: pytest.LogCaptureFixture) -> None:
    watch = RetentionWatch("db:3306", PurgeRules(3600, None), alert_seconds=2 * 3600)
    with caplog.at_level(logging.WARNING):
        found = watch.look([("b.7", 5)], "b.7", 0)
        watch.look([("b.7", 6)], "b.7", 0)
    assert [record.getMessage() for record in caplog.records] == [f"db:3306: {purge_text(found)}"], (
        "once, not at each look"
    )
    assert "1.0 hours" in purge_text(found)
    gone = watch.look([("b.9", 5)], "b.7", 0)
    assert (gone.seconds_left, gone.rule) == (0, "gone")
    assert "b.9" in purge_text(gone)


def test_a_server_that_purges_nothing_alarms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    found = RetentionWatch("db", PurgeRules(None, None), alert_seconds=1e9).look([("b.1", 5)], "", 1e9)
    assert (found.seconds_left, caplog.records) == (None, [])
    assert purge_text(found) == "the server purges nothing by itself"
