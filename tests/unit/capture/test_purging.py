"""What is lost if capture stays down until tomorrow, by the server's own settings and files."""

from __future__ import annotations

import pytest

from tidegate.capture.purging import Binlogs, PurgeRules, forecast, if_down
from tidegate.capture.source import Retention
from tidegate.position import Position

NO_RULE = PurgeRules(None, None)
FILES = (("b.000008", 100), ("b.000009", 200), ("b.000010", 50))


@pytest.mark.parametrize(
    ("captured", "end", "behind"),
    [
        (("b.000010", 40), ("b.000010", 60), 20),
        (("b.000008", 90), ("b.000010", 60), 10 + 200 + 60),
        (("b.000010", 40), ("b.000011", 5), 10 + 5),
        (("b.000010", 40), ("b.000012", 5), None),
        (("b.000010", 40), ("b.000010", 30), None),
        (("a.000010", 40), ("b.000010", 60), None),
        (("b.000010", 60), ("b.000010", 60), 0),
    ],
)
def test_bytes_behind_a_place_are_those_of_all_files_after_it(
    captured: tuple[str, int], end: tuple[str, int], behind: int | None
) -> None:
    """A file that the list lacks makes it unknown; so does a place that isn't before the end."""
    assert Binlogs(FILES, NO_RULE).behind_bytes(Position.of(*captured), Position.of(*end)) == behind


def test_a_file_that_is_newer_than_the_list_is_not_gone() -> None:
    binlogs = Binlogs(FILES, PurgeRules(3600.0, None))
    assert forecast(binlogs, "b.000011", 60).rule == "age"
    assert forecast(binlogs, "b.000007", 60).rule == "gone"
    assert forecast(binlogs, "other.000011", 60).rule == "gone"


@pytest.mark.parametrize(
    ("retention", "says"),
    [
        (Retention(0.0, "gone", "b.9", 0), "purged already: the oldest file is b.9"),
        (Retention(None, "", "b.1", 0), "Nothing: the server purges no binlog by itself."),
        (Retention(30 * 86_400.0, "age", "b.1", 0), "in 30 days at the earliest (binlog_expire_logs_seconds)"),
        (Retention(0.0, "size", "b.1", 0), "at any moment (max_binlog_total_size)"),
        (
            Retention(0.0, "unkept", "b.1", 0),
            "Changes: the service keeps no binlog file, and may purge what isn't captured",
        ),
        (Retention(None, "unread", "b.1", 0), "Not known: this account can't see the service's binlog retention hours"),
        (Retention(8 * 3600.0, "hours", "b.1", 0), "in 8.0 h (binlog retention hours)"),
        (Retention(7200.0, "age", "b.1", 0), "Changes: the server may purge what isn't captured in 2.0 h"),
    ],
)
def test_the_answer_is_a_sentence(retention: Retention, says: str) -> None:
    assert says in if_down(retention)
