"""What control/table_states says of a table is one value: written, read, released, asked about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tidegate import tables
from tidegate.errors import LakeRefused
from tidegate.lake import control
from tidegate.lake.figures.status import way_out
from tidegate.lake.files import LakeFiles
from tidegate.lake.people.questions import NewQuestions, OpenQuestions
from tidegate.lake.standing import held
from tidegate.remedy import Needs
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Place, Standing
from tidegate.tables import State

PLACE = Place("s", "d", "t", "b.000001", 300, 30, "ALTER TABLE t DROP a")
BEGAN = datetime(2026, 5, 4, tzinfo=UTC)


def recorded(lake: LakeFiles, minute: int, **states: Standing) -> None:
    at = BEGAN + timedelta(minutes=minute)
    rows = [held.to_row(state, "shop", f"d.{name}", at) for name, state in states.items()]
    control.append(lake, tables.TABLE_STATES, rows)


def test_the_last_state_of_each_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    asks = Standing(State.HELD, "may it?", Cause.DDL_ASKS, 20, PLACE)
    recorded(lake, 1, t=Standing(State.ACTIVE, applied_ts=10), u=Standing(State.HELD, "why", Cause.MISMATCH, 5))
    recorded(lake, 2, t=asks)
    found = held.last_states(lake)
    assert found["d.t"] == asks
    assert (found["d.t"].pipeline, found["d.t"].table) == ("shop", "d.t")
    assert found["d.t"].since == BEGAN + timedelta(minutes=2)
    assert found["d.u"].place is None
    assert set(held.held_tables(lake)) == {"d.t", "d.u"}
    assert set(held.questions(lake)) == {"d.t"}


def test_a_release_approves_what_was_asked_and_keeps_what_was_not_read(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    unread = Standing(State.HELD, "odd", Cause.DDL_NOT_READ, 20, PLACE)
    recorded(lake, 1, t=Standing(State.HELD, "may it?", Cause.DDL_ASKS, 20, PLACE), u=unread)
    assert (unread.judgeable, unread.state.waits) == (True, True)
    for state in held.held_tables(lake).values():
        held.release(lake, state, reason="somebody")
    found = held.last_states(lake)
    assert {name: (state.state, state.approved_ts, state.is_unread) for name, state in found.items()} == {
        "d.t": (State.RELEASED, PLACE.at_ts, False),
        "d.u": (State.RELEASED, 0, True),
    }
    assert {state.reason for state in found.values()} == {"somebody"}
    assert {state.applied_ts for state in found.values()} == {20}


def test_a_question_is_new_once_per_statement(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    recorded(lake, 1, t=Standing(State.HELD, "may it?", Cause.DDL_ASKS, 20, PLACE))
    looks = NewQuestions({})
    looks.open(str(tmp_path), {})
    assert looks.look() == {"tables": ["d.t"]}
    assert looks.look() is None
    assert looks.kept == {"d.t": 30}
    told = way_out(held.last_states(lake)["d.t"])
    assert "tidegate release shop d.t" in told


def test_a_question_waits_until_its_table_goes_on_or_stands_at_another_statement(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    asks = Standing(State.HELD, "may it?", Cause.DDL_ASKS, 20, PLACE)
    recorded(lake, 1, t=asks, u=asks)
    questions = OpenQuestions()
    questions.begin(str(tmp_path), {})
    assert questions.look()
    assert not questions.look(), "nothing is read while the log stands"
    assert [questions.waits_for(about) for about in ({"d.t": 30}, {"d.t": 29}, {"d.v": 30})] == [True, False, False]
    held.release(lake, held.last_states(lake)["d.t"], reason="somebody")
    assert questions.look()
    assert not questions.waits_for({"d.t": 30})
    assert questions.waits_for({"d.t": 30, "d.u": 30}), "a part of it waits"


def test_the_way_out_of_what_lacks_rows_is_a_command_that_can_be_copied() -> None:
    for needs in (Needs.ROWS, Needs.COLUMNS):
        state = Standing(State.HELD, "why", Cause.NEEDS_ROWS, 20, PLACE, needs=needs, pipeline="shop", table="d.t")
        assert "tidegate snapshot start shop d.t;" in way_out(state)


def test_of_a_source_that_no_snapshot_reads_none_is_promised() -> None:
    for needs in (Needs.ROWS, Needs.COLUMNS):
        state = Standing(State.HELD, "why", Cause.NEEDS_ROWS, 20, PLACE, needs=needs, pipeline="shop", table="d.t")
        told = way_out(state, lambda source: source == PLACE.source)
        assert "TRUNCATE d.t" in told
        assert "tidegate snapshot" not in told


def test_a_row_that_says_what_cannot_be_is_refused_by_name(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    recorded(lake, 1, t=Standing(State.HELD, "why", Cause.MISMATCH, 5))
    (row,) = control.read(lake, tables.TABLE_STATES).to_pylist()
    for odd in ({"cause": "write_failed"}, {"cause": "no cause"}, {"state": "active"}):
        with pytest.raises(LakeRefused, match=r"control/table_states has an impossible row of d.t, of 20"):
            held.from_row({**row, **odd})
