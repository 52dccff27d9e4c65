"""Moments in older rows, by the zone of the session that added the column."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from tidegate.errors import UnsupportedValue
from tidegate.schema.ddl.statement import StatementTime, zone_offset
from tidegate.schema.follow.added_columns import existing_row_value
from tidegate.schema.model.columns import Column

MOMENT = datetime(2020, 1, 1, 12, tzinfo=UTC)
NOON = MOMENT.replace(tzinfo=None)
RAN_US = int(MOMENT.timestamp() * 1e6)


@pytest.mark.parametrize(
    ("zone", "minutes"),
    [
        ("+00:00", 0), ("-00:30", -30), ("+05:30", 330), ("-13:59", -839), ("UTC", 0), ("utc", 0), ("Etc/UTC", 0),
        ("", None), ("SYSTEM", None), ("Europe/Berlin", None), ("+5:30", None), ("UTC-3", None), ("+05:30 ", None),
    ],
)  # fmt: skip
def test_a_zone_of_one_offset(zone: str, minutes: int | None) -> None:
    assert zone_offset(zone) == (None if minutes is None else timedelta(minutes=minutes))


@pytest.mark.parametrize("hours", [0, 5, -7])
def test_a_datetime_is_in_the_sessions_zone_and_a_timestamp_is_a_moment(hours: int) -> None:
    ran = StatementTime(RAN_US, timedelta(hours=hours))
    here, moment = (
        Column(1, "a", kind, default="CURRENT_TIMESTAMP", default_is_expression=True)
        for kind in ("datetime", "timestamp")
    )
    assert existing_row_value(here, ran) == NOON + timedelta(hours=hours)
    assert existing_row_value(moment, ran) == MOMENT
    written = existing_row_value(Column(1, "a", "timestamp", default="2020-01-01 12:00:00"), ran)
    assert written == MOMENT - timedelta(hours=hours)
    assert existing_row_value(Column(1, "a", "datetime", default="2020-01-01 12:00:00"), ran) == NOON


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("datetime", "2020-01-01 12:00:00+00:00"),  # the server converts it to the session's zone
        ("timestamp", "2020-01-01 12:00:00+05:00"),
        ("timestamp", "noon"),
    ],
)
def test_a_literal_with_an_offset_is_not_taken_as_it_stands(kind: str, default: str) -> None:
    with pytest.raises(UnsupportedValue, match="isn't understood"):
        existing_row_value(Column(1, "a", kind, default=default), StatementTime(RAN_US, timedelta()))


@pytest.mark.parametrize(
    ("kind", "default", "us"),
    [
        ("datetime(6)", "CURRENT_TIMESTAMP(6)", 123456),
        ("datetime(6)", "current_timestamp(3)", 123000),
        ("timestamp(3)", "CURRENT_TIMESTAMP(1)", 100000),
        ("datetime", "CURRENT_TIMESTAMP", 0),
    ],
)
def test_a_moment_has_the_digits_of_its_default(kind: str, default: str, us: int) -> None:
    column = Column(1, "a", kind, default=default, default_is_expression=True)
    moment = existing_row_value(column, StatementTime(RAN_US + 123456, timedelta()))
    assert moment.replace(tzinfo=None) == NOON + timedelta(microseconds=us)


@pytest.mark.parametrize(
    ("kind", "default", "why"),
    [
        ("datetime", "CURRENT_TIMESTAMP + INTERVAL 1 DAY", "the expression CURRENT_TIMESTAMP +"),
        ("timestamp", "CURRENT_TIMESTAMP(0) - INTERVAL 1 DAY", "the expression"),
        ("datetime(3)", "CURRENT_TIMESTAMP(6)", "digits of CURRENT_TIMESTAMP"),  # rounded, or cut
        ("datetime(3)", "CURRENT_TIMESTAMP", "digits of CURRENT_TIMESTAMP"),  # MySQL: 0, MariaDB: 3
    ],
)
def test_a_moment_that_only_begins_as_the_present_one_is_not_known(kind: str, default: str, why: str) -> None:
    column = Column(1, "a", kind, default=default, default_is_expression=True)
    with pytest.raises(UnsupportedValue, match=re.escape(why)):
        existing_row_value(column, StatementTime(RAN_US + 123456, timedelta()))
