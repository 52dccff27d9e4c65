"""Which stored columns the values of generated columns follow from: those named, through other generated columns."""

from __future__ import annotations

import pytest

from tests.unit.schema.replay.test_history import Session
from tidegate.schema.follow.computed import computed_beside_key, hangs_on

_STORED = "id INT PRIMARY KEY, a INT, b INT, `C d` VARCHAR(9), j JSON"


@pytest.mark.parametrize(
    ("computed", "columns"),
    [
        ("v INT AS (A + 1)", ["a"]),
        ("v INT AS (a + 1), w INT AS (v + `b`) STORED", ["a", "b"]),
        ("v INT AS (if(`c D` like 'b%', 1, j->'$.a'))", ["C d", "j"]),
        ("v INT AS (CASE WHEN a IN (1, 2) THEN b ELSE -id END)", ["id", "a", "b"]),
        ("v INT AS (if(a IS NOT TRUE, b, NULL))", ["a", "b"]),
        ("v VARCHAR(9) AS ('a b')", []),
        ("v INT AS (1 + 2)", []),
        ("v INT AS (a ?? 3)", ["id", "a", "b", "C d", "j"]),  # not read: any may count
    ],
)
def test_the_stored_columns_behind_values(computed: str, columns: list[str]) -> None:
    session = Session()
    session.run(f"CREATE TABLE t ({_STORED}, {computed})")
    version = session.history.versions("db", "t")[-1]
    beside_key = computed_beside_key(version)
    assert [column.name for column in hangs_on(version, beside_key)] == columns
    assert [column.name for column in beside_key] == [
        declared.split()[0] for declared in computed.split(", ") if " AS (" in declared
    ]
