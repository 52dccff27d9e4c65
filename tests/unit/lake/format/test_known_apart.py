"""Migration 2: what a released table was known for by its cause is said in columns of its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.unit.lake.format.test_layouts import CONTROL
from tidegate import tables
from tidegate.lake.format import known_apart
from tidegate.lake.standing.held import from_row
from tidegate.standing.causes import Cause
from tidegate.tables import State

PATH = tables.TABLE_STATES.path


def row(state: str, cause: str | None, **cells: Any) -> dict[str, Any]:
    names = known_apart.STATES_BEFORE
    required = {field.name: "d.t" for field in CONTROL[PATH].schema if field.name in names and not field.nullable}
    known = {"recorded_at": None, "commit_ts": 10, "reason": "", "state": state, "cause": cause}
    place = {"place_source": "s", "place_database": "d", "place_table": "t", "place_file": "b", "place_pos": 4}
    return dict.fromkeys(names) | required | known | place | {"place_at_ts": 15, "place_ddl": "ALTER"} | cells


@pytest.mark.parametrize(
    ("before", "state", "cause", "approved_ts", "unread", "times"),
    [
        (row("released", "ddl_asks"), State.RELEASED, None, 15, False, 0),
        (row("released", "ddl_not_read"), State.RELEASED, None, 0, True, 0),
        (row("released", "write_failed", times=2), State.RELEASED, None, 0, False, 2),
        (row("released", None), State.RELEASED, None, 0, False, 0),
        (row("held", "ddl_asks"), State.HELD, Cause.DDL_ASKS, 0, False, 0),
        (row("held", "ddl_not_read"), State.HELD, Cause.DDL_NOT_READ, 0, True, 0),
        (row("active", None), State.ACTIVE, None, 0, False, 0),
    ],
)
def test_a_row_of_format_2_says_the_same(
    before: dict[str, Any], state: State, cause: Cause | None, approved_ts: int, unread: bool, times: int
) -> None:
    columns = [field for field in CONTROL[PATH].schema if field.name in known_apart.STATES_BEFORE]
    schema = pa.schema([field.with_nullable(True) for field in columns])
    (made,) = known_apart.states(pa.Table.from_pylist([before], schema=schema)).to_pylist()
    standing = from_row(made)
    assert (standing.state, standing.cause, standing.approved_ts) == (state, cause, approved_ts)
    assert (standing.is_unread, standing.times) == (unread, times)


def test_no_rows_have_the_columns_all_the_same() -> None:
    columns = [field for field in CONTROL[PATH].schema if field.name in known_apart.STATES_BEFORE]
    made = known_apart.states(pa.schema(columns).empty_table())
    assert set(made.column_names) == set(CONTROL[PATH].schema.names)
