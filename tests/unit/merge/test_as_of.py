"""A table with history as it was: the same for each engine, and as a cut of then has it."""

from __future__ import annotations

import json

import duckdb
import polars as pl
import pytest

from tidegate import tables
from tidegate.delta.table.live_file import LiveFile
from tidegate.merge.past.as_of import as_of, ends_by, polars_as_of

ROWS = pl.DataFrame(
    {
        "id": [1, 1, 2, 3, 4, 5],
        "_tg_valid_from": [10, 20, 10, 40, 10, None],
        "_tg_valid_to": [20, None, 30, None, None, None],
        "_tg_is_current": [False, True, False, True, False, True],  # of 4 by another writer: nobody ended it since
    }
)
AT = {
    9: [],
    10: [(1, 10, None, True), (2, 10, None, True), (4, 10, None, False)],
    19: [(1, 10, None, True), (2, 10, None, True), (4, 10, None, False)],
    20: [(1, 10, 20, False), (1, 20, None, True), (2, 10, None, True), (4, 10, None, False)],
    30: [(1, 10, 20, False), (1, 20, None, True), (2, 10, 30, False), (4, 10, None, False)],
    40: [(1, 10, 20, False), (1, 20, None, True), (2, 10, 30, False), (3, 40, None, True), (4, 10, None, False)],
}


@pytest.mark.parametrize("at", AT)
def test_versions_are_as_they_were(at: int) -> None:
    with duckdb.connect() as database:
        database.register("rows", ROWS.to_arrow())
        shown = database.sql(as_of('"rows"', at))
        assert shown.columns == ROWS.columns
        assert sorted(shown.fetchall(), key=lambda row: row[:2]) == AT[at]
    frame = polars_as_of(ROWS.lazy(), at).collect()
    assert frame.schema == ROWS.schema
    assert sorted(frame.rows(), key=lambda row: row[:2]) == AT[at]


def _stats(begins: tuple[int, int], ends: tuple[int, int] | None, nulls: int, none_begins: int = 0) -> str:
    low, high = {tables.VALID_FROM: begins[0]}, {tables.VALID_FROM: begins[1]}
    if ends is not None:
        low[tables.VALID_TO], high[tables.VALID_TO] = ends
    counts = {tables.VALID_TO: nulls, tables.VALID_FROM: none_begins}
    return json.dumps({"numRecords": 4, "minValues": low, "maxValues": high, "nullCount": counts})


@pytest.mark.parametrize(
    ("stats", "wanted"),
    [
        (_stats((10, 90), (20, 99), 1), True),
        (_stats((10, 90), None, 4), True),
        (_stats((10, 100), (20, 100), 0), True),
        (_stats((10, 101), (20, 99), 1), False),
        (_stats((10, 90), (20, 101), 1), False),
        (_stats((10, 90), None, 1), False),
        (_stats((10, 90), (20, 99), 1, none_begins=1), False),
        ("", False),
    ],
)
def test_no_version_begins_or_ends_later(stats: str, wanted: bool) -> None:
    assert ends_by([], 100)
    assert ends_by([LiveFile({"path": "a", "size": 1, "stats": stats})], 100) is wanted
