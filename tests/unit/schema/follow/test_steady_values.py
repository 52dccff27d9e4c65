"""Stored generated columns that may be computed again, by their expressions.

In:  tables with a TIMESTAMP, a DATETIME and numbers; expressions of virtual and stored columns.
Out: whether no session's variable has a part in a stored value.
"""

from __future__ import annotations

import pytest

from tests.unit.schema.replay.test_history import Session
from tidegate.schema.follow.computed import computed_beside_key
from tidegate.schema.follow.steady_values import computed_alike

_STORED = "id INT PRIMARY KEY, ts TIMESTAMP NULL, dt DATETIME, d DATE, n INT, x VARCHAR(9)"


@pytest.mark.parametrize(
    ("computed", "alike"),
    [
        ("v INT AS (n / 7)", True),  # virtual: of whoever reads
        ("v INT AS (n + 7) STORED", True),
        ("v VARCHAR(30) AS (if(n IS NULL, NULL, concat(upper(x), '-', year(d)))) STORED", True),
        ("v VARCHAR(9) AS (CASE WHEN n IN (1, 2) THEN 'few' ELSE x END) STORED", True),
        ("v DECIMAL(9,4) AS (n / 7) STORED", False),
        ("w DECIMAL(9,4) AS (n / 7) STORED, v INT AS (w + 1)", False),
        ("w DECIMAL(9,4) AS (n / 7), v INT AS (w + 1) STORED", False),
        ("v DATE AS (dt) STORED", False),
        ("v TIME AS (maketime(n, 0, 0)) STORED", False),
        ("v INT AS (hour(ts)) STORED", False),
        ("v BOOL AS (ts = '2020-01-01') STORED", False),
        ("v INT AS (d + INTERVAL 1 DAY) STORED", False),
        ("v INT AS (n ?? 3) STORED", False),  # not read
    ],
)
def test_whether_stored_values_may_be_computed_again(computed: str, alike: bool) -> None:
    session = Session()
    session.run(f"CREATE TABLE t ({_STORED}, {computed})")
    version = session.history.versions("db", "t")[-1]
    assert computed_alike(version, computed_beside_key(version)) is alike
