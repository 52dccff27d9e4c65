"""When a source purges what isn't captured yet: by age, by size, by hand."""

from __future__ import annotations

import logging
import time
from typing import Any

import pymysql
import pytest
from pymysql.constants import ER

from tidegate.capture.purging import PurgeRules
from tidegate.mysql.facts.managed import Managed, Service
from tidegate.mysql.history.retention import RetentionWatch, purge_rules, purge_text, read_rules

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
    watch, rules = RetentionWatch("db", 0), PurgeRules(10 * 3600, None)
    found = watch.look(rules, [("b.1", 100), ("b.2", 100), ("b.3", 5)], "b.2", age_seconds=3600)
    assert (found.seconds_left, found.rule, found.oldest_file, found.files_before) == (9 * 3600, "age", "b.1", 1)
    assert watch.look(rules, [("b.2", 100)], "b.2", age_seconds=11 * 3600).seconds_left == 0


def test_by_size_the_servers_own_rate_says_when(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    watch, rules = RetentionWatch("db", 0), PurgeRules(None, 1_000_000)
    first = watch.look(rules, [("b.1", 400_000), ("b.2", 100_000)], "b.2", 0)
    assert first.seconds_left is None, "one look tells no rate"
    clock += 60
    # 60,000 bytes in a minute: 20,000 in the second file, 40,000 in a third; the first was purged meanwhile.
    found = watch.look(rules, [("b.2", 120_000), ("b.3", 40_000)], "b.2", 0)
    assert (found.rule, found.seconds_left) == ("size", (1_000_000 - 160_000) / 1000)


def test_the_sooner_rule_counts_and_a_purged_file_is_said_at_once(caplog: pytest.LogCaptureFixture) -> None:
    watch, rules = RetentionWatch("db:3306", alert_seconds=2 * 3600), PurgeRules(3600, None)
    with caplog.at_level(logging.WARNING):
        found = watch.look(rules, [("b.7", 5)], "b.7", 0)
        watch.look(rules, [("b.7", 6)], "b.7", 0)
    assert [record.getMessage() for record in caplog.records] == [f"db:3306: {purge_text(found)}"], (
        "once, not at each look"
    )
    assert "1.0 hours" in purge_text(found)
    gone = watch.look(rules, [("b.9", 5)], "b.7", 0)
    assert (gone.seconds_left, gone.rule) == (0, "gone")
    assert "b.9" in purge_text(gone)


def test_a_server_that_purges_nothing_alarms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    found = RetentionWatch("db", alert_seconds=1e9).look(PurgeRules(None, None), [("b.1", 5)], "", 1e9)
    assert (found.seconds_left, caplog.records) == (None, [])
    assert purge_text(found) == "the server purges nothing by itself"


class Cursor:
    """Answers as RDS does. hours: rows of mysql.rds_configuration, or the number of its error."""

    def __init__(self, variables: dict[str, str], hours: list[tuple[str | None]] | int) -> None:
        self.variables, self.hours, self.rows = variables, hours, list[tuple[Any, ...]]()

    def execute(self, statement: str) -> None:
        self.rows = []
        if "VARIABLES" in statement:
            self.rows = [pair for pair in self.variables.items() if f"'{pair[0]}'" in statement]
        elif "information_schema" in statement:
            self.rows = [] if isinstance(self.hours, int) else [(1,)]
        elif isinstance(self.hours, int):
            raise pymysql.err.OperationalError(self.hours, "denied")
        else:
            self.rows = [*self.hours]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return self.rows[0] if self.rows else None


MONTH = {"binlog_expire_logs_seconds": "2592000"}
RDS = {**MONTH, "basedir": "/rdsdbbin/mysql-8.4.7.R1/"}
AURORA = {**MONTH, "aurora_version": "3.08.0"}


@pytest.mark.parametrize(
    ("variables", "hours", "rules"),
    [
        (RDS, [("168",)], PurgeRules(7 * DAY, None, "hours")),
        (AURORA, [("24",)], PurgeRules(DAY, None, "hours")),
        (RDS, [(None,)], PurgeRules(0.0, None, "unkept")),
        (AURORA, [], PurgeRules(0.0, None, "unkept")),
        (RDS, ER.TABLEACCESS_DENIED_ERROR, PurgeRules(None, None, "unread")),
        (AURORA, ER.TABLEACCESS_DENIED_ERROR, PurgeRules(None, None, "unread")),
        (MONTH, ER.TABLEACCESS_DENIED_ERROR, PurgeRules(30 * DAY, None)),
    ],
)
def test_a_look_goes_by_amazons_hours_and_not_by_the_servers_month(
    variables: dict[str, str], hours: list[tuple[str | None]] | int, rules: PurgeRules
) -> None:
    """Its own age of a month says nothing there: hidden hours were told as "purged in 30 days at the earliest"."""
    assert read_rules(Cursor(variables, hours)) == rules


def test_azure_with_an_age_of_0_keeps_nothing() -> None:
    azure = Managed(Service.AZURE)
    assert purge_rules({"binlog_expire_logs_seconds": "0"}, azure).by == "unkept"
    assert purge_rules({"binlog_expire_logs_seconds": "3600"}, azure) == PurgeRules(3600.0, None)


def test_a_service_that_keeps_nothing_is_an_alarm_and_one_that_hides_it_is_not_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch, logs = RetentionWatch("db", alert_seconds=60), [("b.1", 5)]
    kept = watch.look(PurgeRules(0.0, None, "unkept"), logs, "b.1", 0)
    assert (kept.seconds_left, kept.rule) == (0.0, "unkept")
    assert "db: the service keeps no binlog file" in caplog.text
    hidden = watch.look(PurgeRules(None, None, "unread"), logs, "b.1", 0)
    assert (hidden.seconds_left, hidden.rule) == (None, "unread")
    assert "can't see the service's binlog retention hours" in purge_text(hidden)
    assert watch.look(PurgeRules(None, None, "unread"), [("b.2", 5)], "b.1", 0).rule == "gone"
