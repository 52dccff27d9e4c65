"""Every mode of silver answers alike in SQL, in memory and to verify, and each key of the pipeline file has one."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tidegate import tables
from tidegate.config.table_keys.tables import Tables
from tidegate.merge.past import NO_PAST, PASTS, Past, past_named, past_of
from tidegate.merge.silver_sql import SilverShape
from tidegate.verify.silver_side import DOUBTFUL, LIVE

EVERY = pytest.mark.parametrize("past", [NO_PAST, *PASTS.values()], ids=["current", *PASTS])
VALUES = {"boolean": [True, False], "bigint": [None, 7]}
ARROW = {"boolean": pa.bool_(), "bigint": pa.int64()}


def rows_of(past: Past) -> pa.Table:
    """A row of every combination of the mode's own values, numbered."""
    rows: list[tuple[Any, ...]] = list(itertools.product(*(VALUES[column.type] for column in past.columns)))
    own = {c.name: pa.array([row[at] for row in rows], ARROW[c.type]) for at, c in enumerate(past.columns)}
    return pa.table({"id": range(len(rows)), tables.COMMIT_TS: pa.array([5] * len(rows), pa.int64()), **own})


def ids(rows: pa.Table) -> list[int]:
    numbers: list[int] = rows.column("id").to_pylist()
    return numbers


def selected(rows: pa.Table, select: str) -> pa.Table:
    with duckdb.connect() as database:
        return database.register("rows", rows).execute(f"SELECT {select}").to_arrow_table()


def where(rows: pa.Table, condition: str) -> list[int]:
    return ids(selected(rows, f"id FROM rows WHERE {condition} ORDER BY id"))


def test_each_key_of_the_pipeline_file_has_its_mode() -> None:
    assert tuple(PASTS) == Tables.PASTS
    assert set(Tables.PASTS) <= Tables.model_fields.keys()
    assert [past_named([word]).word for word in PASTS] == list(PASTS)
    assert past_named([]) is NO_PAST


def test_verify_knows_each_mode_by_its_mark() -> None:
    assert LIVE.keys() == DOUBTFUL.keys() == {past.mark for past in PASTS.values()}


@EVERY
def test_a_table_of_a_mode_is_known_by_its_columns(past: Past) -> None:
    assert past_of([column.name for column in SilverShape((), ("id",), past=past).all_columns]) is past
    assert list(past.begun) == [column.name for column in past.columns]
    assert past.taken.keys() <= past.begun.keys()
    assert past.rows_stay == (past is not NO_PAST)


@EVERY
def test_sql_memory_and_verify_agree_on_the_live_rows(past: Past) -> None:
    rows = rows_of(past)
    live = ids(past.live_rows(rows))
    assert live == where(rows, past.live) == where(rows, LIVE.get(past.mark, "true"))
    assert set(live) <= set(where(rows, past.open))
    assert live


@pytest.mark.parametrize("past", PASTS.values(), ids=PASTS)
def test_a_row_begins_live_and_ends_as_a_row_of_the_past(past: Past) -> None:
    begun = ", ".join(f"{value} AS {name}" for name, value in past.begun.items())
    live = selected(rows_of(past), f"id, {tables.COMMIT_TS}, {begun} FROM rows WHERE id = 0")
    assert where(live, past.live) == [0]
    assert where(live, DOUBTFUL[past.mark]) == []
    ended = past.ended(9)
    values = ", ".join(f"{ended.get(name, name)} AS {name}" for name in live.column_names)
    gone = selected(live, f"{values} FROM rows")
    assert where(gone, past.live) == where(gone, past.open) == where(gone, DOUBTFUL[past.mark]) == []
    assert past.ended_in == "" or gone.column(past.ended_in).null_count == 0


@EVERY
def test_what_is_staged_has_the_columns_that_it_says(past: Past) -> None:
    ops = pa.array([tables.OP_UPSERT, tables.OP_DELETE], pa.int8())
    batch = pa.record_batch({tables.OP: ops, tables.COMMIT_TS: pa.array([3, 4], pa.int64()), "id": [1, 2]})
    staged = past.staged(batch)
    assert staged.schema.names == [*batch.schema.names, *(column.name for column in past.staged_columns)]
    kept = past.rows_stay and not past.versions
    assert staged.column(tables.OP).to_pylist() == [tables.OP_UPSERT, tables.OP_UPSERT if kept else tables.OP_DELETE]
