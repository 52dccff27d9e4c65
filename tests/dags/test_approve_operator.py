"""What a person is asked about a held table, and what their answer writes; called as Airflow's task runner calls it.

In:  a lake in which a table waits for two XA transactions that nobody answered, and another one for its DDL.
Out: questions; control/prewrites and control/table_states after an answer.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tidegate.lake import control
from tidegate.lake.bronze import prewrites
from tidegate.lake.figures.status import way_out
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import held
from tidegate.lake.standing.held import to_row
from tidegate.segments.prewrites import Prewrite
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Place, Standing
from tidegate.tables import TABLE_STATES, State
from tidegate.tables.prewrites_table import PrewriteState

pytestmark = pytest.mark.airflow

PARKED = PrewriteState.PARKED


def _branch(name: str, answer_ts: int, *tables: str) -> Prewrite:
    return Prewrite("one", f"X'{name}',X'',1", 5, 1, 1, tables, PARKED, answer_ts, "b.000001", 400)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    lake = LakeFiles(str(tmp_path / "lake"))
    found = tmp_path / "shop.yaml"
    found.write_text(
        f"pipeline: shop\nlake: {{path: {lake.root}}}\nsources: {{one: {{conn_id: x, flavour: mysql}}}}\n"
        "tables: {include: ['d.*'], routes: [{match: 'd.t_\\d+', to: d.t}]}\nxa: {orphans: ask}\n"
    )
    at, ddl = datetime(2026, 5, 4, tzinfo=UTC), Place("one", "d", "u", "b.000001", 300, 30, "ALTER TABLE u DROP a")
    states = {
        "d.t": Standing(State.HELD, "parked", Cause.PARKED, 20, Place("one", "d", "t_1", "b.000001", 400, 40)),
        "d.u": Standing(State.HELD, "may it?", Cause.DDL_ASKS, 20, ddl),
    }
    control.append(lake, TABLE_STATES, [to_row(state, "shop", name, at) for name, state in states.items()])
    branches = [_branch("aa", 40, "d.t_1", "d.other"), _branch("bb", 40, "d.t_2"), _branch("cc", 40, "d.other")]
    late = _branch("dd", 90, "d.t_1")  # parked further on in the log, while the table waited already
    prewrites.record(control.ControlTables(lake), [*branches, late])
    return found


def _lake(file: Path) -> LakeFiles:
    return LakeFiles(str(file.parent / "lake"))


def _answer(file: Path, table: str, option: str) -> Any:
    from tidegate_airflow.approve_operator import ApproveOperator, table_questions

    (question,) = table_questions(str(file), [table])
    task = ApproveOperator(task_id="approve", pipeline_file=str(file), **question)
    user = {"id": "7", "name": "ann"}
    event = {
        "chosen_options": [option],
        "params_input": {},
        "responded_by_user": user,
        "responded_at": datetime.now(UTC),
    }
    return task.execute_complete({"task_instance": None}, event)  # type: ignore[typeddict-item]


def _states(file: Path) -> dict[str, tuple[str, str]]:
    rows = control.newest(
        _lake(file), prewrites.PREWRITES, by=prewrites.PREWRITES.key, order=["answer_ts", "recorded_at"]
    )
    return {row["id"][2:4]: (row["state"], row["decided_by"]) for row in rows.to_pylist()}


def test_a_question_names_the_transactions_that_hold_the_table_and_no_others(file: Path) -> None:
    from tidegate_airflow.approve_operator import table_questions

    of_xa, of_ddl = table_questions(str(file), [])
    assert (of_xa["table"], of_xa["about"], len(of_xa["branches"])) == ("d.t", {"d.t": 40}, 2)
    assert "X'aa'" in of_xa["body"]
    assert "d.other" in of_xa["body"], "an answer is for all tables of a transaction"
    assert "X'cc'" not in of_xa["body"]
    assert "X'dd'" not in of_xa["body"]
    assert (of_ddl["table"], of_ddl["branches"]) == ("d.u", [])
    assert "tidegate prewrites shop" in way_out(held.last_states(_lake(file))["d.t"])


@pytest.mark.parametrize(("option", "state"), [("Commit", "committed"), ("Roll back", "rolled_back")])
def test_an_answer_decides_what_was_asked_about_with_the_name_of_who_gave_it(
    file: Path, option: str, state: str
) -> None:
    _answer(file, "d.t", option)
    said = (state, "ann in Airflow")
    assert _states(file) == {"aa": said, "bb": said, "cc": ("parked", ""), "dd": ("parked", "")}


def test_keeping_it_held_decides_nothing_and_what_was_decided_meanwhile_stays(file: Path) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    with pytest.raises(AirflowSkipException, match="tidegate prewrites"):
        _answer(file, "d.t", "Keep holding")
    assert {state for state, _ in _states(file).values()} == {"parked"}
    from tidegate_airflow.approve_operator import ApproveOperator, table_questions

    (question,) = table_questions(str(file), ["d.t"])
    told = [replace(_branch("aa", 40, "d.t_1"), state=PrewriteState.ROLLED_BACK, decided_by="bob")]
    prewrites.record(control.ControlTables(_lake(file)), told)
    task = ApproveOperator(task_id="approve", pipeline_file=str(file), **question)
    event = {
        "chosen_options": ["Commit"],
        "params_input": {},
        "responded_by_user": None,
        "responded_at": datetime.now(UTC),
    }
    task.execute_complete({"task_instance": None}, event)  # type: ignore[typeddict-item]
    assert _states(file)["aa"] == ("rolled_back", "bob")
    assert _states(file)["bb"] == ("committed", "an unknown user in Airflow")


def test_a_ddl_is_approved_as_before(file: Path) -> None:
    _answer(file, "d.u", "Approve")
    found = held.last_states(_lake(file))["d.u"]
    assert (found.state, found.reason) == (State.RELEASED, "approved in Airflow by ann")


def test_a_table_that_somebody_let_go_meanwhile_is_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command came between the operator's look and its word: no task fails for it."""
    seen = held.questions(_lake(file))
    held.release(_lake(file), seen["d.u"], reason="released by bob")
    monkeypatch.setattr(held, "questions", lambda _: seen)
    _answer(file, "d.u", "Approve")
    assert held.last_states(_lake(file))["d.u"].reason == "released by bob"


@pytest.mark.parametrize(("option", "state"), [("Commit", "committed"), ("Roll back", "rolled_back")])
def test_what_a_tidb_cannot_tell_is_asked_under_its_sources_name(file: Path, option: str, state: str) -> None:
    from tidegate_airflow.approve_operator import table_questions

    parked = Prewrite("one", "tidb 7", 7, 0, 0, ("d.t_1",), PARKED, answer_pos=9)
    prewrites.record(control.ControlTables(_lake(file)), [parked])
    (question,) = table_questions(str(file), ["one"])
    assert (question["about"], question["branches"]) == ({"one 7": 7}, ["one tidb 7 7"])
    assert "wrote to d.t_1" in question["body"]
    assert [one["table"] for one in table_questions(str(file), [])] == ["d.t", "d.u", "one"]
    assert "tidb" not in table_questions(str(file), ["d.t"])[0]["body"]
    _answer(file, "one", option)
    (found,) = [one for one in prewrites.standing(_lake(file), 0)["one"] if prewrites.of_pump(one)]
    assert (found.state, found.decided_by, found.answer_pos) == (state, "ann in Airflow", 9)
    assert prewrites.parked_by_pumps(_lake(file)) == {}


def test_what_another_run_asks_about_is_not_asked_again(file: Path) -> None:
    from tidegate_airflow.answer_trigger import still_asked
    from tidegate_airflow.approve_operator import table_questions

    asked: list[Any] = list(table_questions(str(file), []))
    for states, left in (
        ({"approve": None}, []),  # Airflow hasn't mapped them yet
        ({"approve_0": "deferred", "approve_1": "deferred"}, []),
        ({"approve_0": "deferred", "approve_1": "success"}, ["d.u"]),
        ({"approve_0": "skipped", "approve_1": "running"}, ["d.t"]),
        ({"approve": "upstream_failed"}, ["d.t", "d.u"]),
    ):
        again = table_questions(str(file), [], still_asked(asked, states, "approve"))
        assert [question["table"] for question in again] == left, states
    later = {"d.u": 29}  # of another statement
    assert [question["table"] for question in table_questions(str(file), ["d.u"], later)] == ["d.u"]


def _hold(file: Path, *names: str) -> None:
    at, ddl = datetime(2026, 5, 4, 1, tzinfo=UTC), Place("one", "d", "u", "b.000001", 300, 31, "ALTER TABLE u DROP `a`")
    state = Standing(State.HELD, "may it?", Cause.DDL_ASKS, 20, ddl)
    control.append(_lake(file), TABLE_STATES, [to_row(state, "shop", name, at) for name in names])


def test_thousands_of_tables_are_ten_questions_and_the_last_one_is_about_all_others(file: Path) -> None:
    from tidegate_airflow.approve_operator import ApproveOperator, table_questions

    _hold(file, *(f"d.w{number:04}" for number in range(3000)))
    *alone, others = [question for question in table_questions(str(file), []) if not question["branches"]]
    assert [question["table"] for question in alone] == ["d.u", *(f"d.w{number:04}" for number in range(8))]
    assert (others["table"], len(others["about"])) == ("2992 more tables", 2992)
    assert "`d.w0008`: `ALTER TABLE u DROP a`" in others["body"]
    assert "and 2972 more" in others["body"]
    for_three = {**others, "about": dict(list(others["about"].items())[:3])}
    task = ApproveOperator(task_id="approve", pipeline_file=str(file), **for_three)
    user, now = {"id": "7", "name": "ann"}, datetime.now(UTC)
    event = {"chosen_options": ["Approve"], "params_input": {}, "responded_by_user": user, "responded_at": now}
    task.execute_complete({"task_instance": None}, event)  # type: ignore[typeddict-item]
    released = [name for name, state in held.last_states(_lake(file)).items() if state.state is State.RELEASED]
    assert sorted(released) == ["d.w0008", "d.w0009", "d.w0010"]


def test_a_table_that_waits_for_transactions_of_another_question_is_in_that_one(file: Path) -> None:
    from tidegate_airflow.approve_operator import table_questions

    place = Place("one", "d", "other", "b.000001", 400, 40)
    parked = Standing(State.HELD, "parked", Cause.PARKED, 20, place)
    rows = [to_row(parked, "shop", name, datetime(2026, 5, 4, tzinfo=UTC)) for name in ("d.other", "d.zz")]
    control.append(_lake(file), TABLE_STATES, rows)
    prewrites.record(control.ControlTables(_lake(file)), [_branch("ee", 40, "d.other", "d.zz")])
    of_xa = [question["about"] for question in table_questions(str(file), []) if question["branches"]]
    assert of_xa == [{"d.other": 40, "d.zz": 40}, {"d.t": 40}]
