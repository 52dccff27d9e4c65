"""Virtual columns with another value for each session, by their expressions.

In:  tables with a TIMESTAMP, a DATETIME, a TIME and numbers; expressions of virtual and stored columns.
Out: whether a column's value can be read later, by anybody; what a pipeline file can't allow.
"""

from __future__ import annotations

import pytest

from tests.unit.schema.replay.test_history import Session
from tidegate.config import SessionValues
from tidegate.config.table_keys.kept_columns import ALL
from tidegate.schema.follow.computed import computed_beside_key
from tidegate.schema.follow.session_values import computed_by_whoever_reads, of_each_session, stored_by_session
from tidegate.schema.follow.steady_values import computed_alike
from tidegate.schema.model.columns import TableVersion

LOGGED = SessionValues.LOGGED
_STORED = "id INT PRIMARY KEY, ts TIMESTAMP NULL, dt DATETIME, d DATE, t TIME, u TIME(3), n INT, x VARCHAR(9)"


@pytest.mark.parametrize(
    "computed",
    [
        "v INT AS (hour(ts))",
        "v DATE AS (ts)",
        "v INT AS (TS > '2020-01-01')",
        "v VARCHAR(30) AS (concat(x, `ts`))",
        "v BIGINT AS (unix_timestamp(dt))",
        "v TIMESTAMP AS (dt)",
        "v DATETIME AS (from_unixtime(n))",
        "v VARCHAR(9) AS (dayname(d))",
        "v VARCHAR(9) AS (date_format(d, '%W'))",
        "v VARCHAR(9) AS (date_format(d, x))",
        "v INT AS (week(d))",
        "v INT AS (extract(WEEK FROM d))",
        "v VARCHAR(99) AS (password(x))",
        "v INT AS (n ?? 3)",  # not read
        "w INT AS (year(ts)), v INT AS (w + 1)",
    ],
)
def test_a_value_of_the_session(computed: str) -> None:
    assert _hangs(computed)


@pytest.mark.parametrize(
    "computed",
    [
        "v INT AS (hour(dt))",
        "v BIGINT AS (unix_timestamp(ts))",
        "v INT AS (ts IS NULL)",
        "v INT AS (if(ts IS NOT NULL, n, 0))",
        "v TIMESTAMP AS (ts)",
        "v INT AS (hour(ts)) STORED",
        "v VARCHAR(9) AS (date_format(d, '%Y-%m'))",
        "v INT AS (week(d, 1))",
        "v INT AS (extract(YEAR_MONTH FROM d))",
        "v INT AS (n / 7)",
        "v VARCHAR(9) AS ('dayname(')",
    ],
)
def test_one_value_for_everybody(computed: str) -> None:
    assert not _hangs(computed)


@pytest.mark.parametrize(
    "computed",
    [
        "v DATETIME AS (t)",
        "v DATE AS (maketime(n, 0, 0))",
        "v VARCHAR(30) AS (cast(t as datetime))",
        "v INT AS (to_days(sec_to_time(n)))",
        "v INT AS (week(T, 1))",
        "v BOOL AS (t > dt)",
        "v BOOL AS (t NOT BETWEEN '10:00' AND d)",
        "v BOOL AS (t IN (u, dt))",
        "v BOOL AS (t > makedate(2024, n))",
        "v DATETIME AS (coalesce(dt, t))",
        "v VARCHAR(30) AS (CASE WHEN n THEN t ELSE d END)",
        "v DATETIME AS (t + INTERVAL 1 DAY)",
        "v VARCHAR(30) AS (convert(t, datetime(6)))",
        "v VARCHAR(4) AS (cast(t as year))",
        "v YEAR AS (t + INTERVAL 1 HOUR)",
        "v DATE AS (round(t))",
        "v BOOL AS (dt > truncate(u, 0))",
        "v VARCHAR(30) AS (timestampadd(DAY, 1, t))",
        "v INT AS (timestampdiff(MINUTE, t, dt))",
        "v INT AS (timestampdiff(MONTH, t, u))",
        "v INT AS (extract(YEAR FROM t))",
        "v VARCHAR(9) AS (date_format(t, '%Y'))",
        "v VARCHAR(30) AS (timestamp(str_to_date(x, '%H:%i')))",
        "w VARCHAR(30) AS (date(t)), v INT AS (length(w))",
    ],
)
def test_a_time_that_gets_the_date_of_the_day_is_of_whoever_reads_it(computed: str) -> None:
    assert _hangs(computed)
    assert "computed anew by whoever reads it" in computed_by_whoever_reads(_version(computed), ALL, LOGGED)
    *rest, last = computed.split(", v ")
    stored = _version(", v ".join([*rest, f"{last} STORED"]))
    assert stored_by_session(stored, stored.columns[-1])
    assert not computed_alike(stored, stored.columns[-1:])


@pytest.mark.parametrize(
    "computed",
    [
        "v TIME AS (coalesce(t, '10:00'))",
        "v TIME AS (t + INTERVAL 1 HOUR)",
        "v DATETIME AS (timestamp(d, t))",
        "v DATETIME AS (addtime(dt, t))",
        "v VARCHAR(30) AS (concat(d, ' ', t))",
        "v TIME AS (timediff(u, t))",
        "v TIME AS (convert(t, time(3)))",
        "v YEAR AS (cast(d as year))",
        "v INT AS (hour(t) * 60 + minute(t))",
        "v INT AS (timestampdiff(MINUTE, t, u))",
        "v VARCHAR(9) AS (if(t BETWEEN '08:00' AND '18:00' AND d > '2024-01-01', 'day', 'night'))",
        "v VARCHAR(9) AS (date_format(t, '%H:%i'))",
        "v INT AS (extract(HOUR FROM t))",
        "v TIME AS (greatest(t, u, cast(dt as time)))",
        "v DATE AS (str_to_date(x, '%Y-%m-%d'))",
    ],
)
def test_a_time_that_stays_one_is_the_same_on_every_day(computed: str) -> None:
    assert not _hangs(computed)


def _hangs(computed: str) -> bool:
    version = _version(computed)
    return of_each_session(version, computed_beside_key(version)) is not None


def _version(computed: str) -> TableVersion:
    session = Session()
    session.run(f"CREATE TABLE t ({_STORED}, {computed})")
    return session.history.versions("db", "t")[-1]
