"""A question ends when its table doesn't wait any more, by whatever hand; run as Airflow's triggerer runs it.

In:  a lake with a table that waits for approval; a stand-in for Airflow's record of the answers.
Out: the event, and what was recorded as the answer.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import held
from tidegate.lake.standing.held import to_row
from tidegate.standing.causes import Cause
from tidegate.standing.standing import Place, Standing
from tidegate.tables import TABLE_STATES, State

pytestmark = pytest.mark.airflow


class Answers:
    """Airflow's record of one answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chosen: list[str] = []
        self.asked = 0
        monkeypatch.setattr("airflow.providers.standard.triggers.hitl.get_hitl_detail_content_detail", self.get)
        monkeypatch.setattr("tidegate_airflow.answer_trigger.update_hitl_detail_response", self.update)

    def get(self, ti_id: Any) -> SimpleNamespace:
        self.asked += 1
        return SimpleNamespace(
            response_received=bool(self.chosen),
            chosen_options=self.chosen,
            params_input={},
            responded_by_user=None,
            responded_at=datetime.now(UTC),
        )

    def update(self, ti_id: Any, chosen_options: list[str], params_input: dict[str, Any]) -> None:
        assert not self.chosen, "Airflow refuses a second answer"
        self.chosen = chosen_options


@pytest.fixture
def lake(tmp_path: Path) -> LakeFiles:
    lake = LakeFiles(str(tmp_path / "lake"))
    ddl = Place("one", "d", "u", "b.000001", 300, 30, "ALTER TABLE u DROP a")
    state = Standing(State.HELD, "may it?", Cause.DDL_ASKS, 20, ddl)
    control.append(lake, TABLE_STATES, [to_row(state, "shop", "d.u", datetime(2026, 5, 4, tzinfo=UTC))])
    return lake


def _event(lake: LakeFiles, meanwhile: Callable[[], object]) -> dict[str, Any]:
    """The event of a trigger that first looks some times, and then something happens."""
    from tidegate_airflow.answer_trigger import AnswerTrigger

    trigger = AnswerTrigger(
        ti_id=uuid.uuid4(),
        about={"d.u": 30},
        lake=lake.root,
        conn_id=None,
        storage={},
        poll_seconds=0.05,
    )
    path, arguments = trigger.serialize()
    assert path == f"{AnswerTrigger.__module__}.AnswerTrigger"
    trigger = AnswerTrigger(**arguments)

    async def first() -> Any:
        events = trigger.run()
        waits = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.5)
        assert not waits.done(), "it waits as long as the table does"
        meanwhile()
        return (await asyncio.wait_for(waits, 60)).payload

    payload: dict[str, Any] = asyncio.run(first())
    return payload


def test_a_question_that_is_answered_elsewhere_ends(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    from tidegate_airflow.approve_operator import ApproveOperator

    answers = Answers(monkeypatch)
    event = _event(lake, lambda: held.release(lake, held.last_states(lake)["d.u"], reason="released by bob"))
    assert answers.chosen == event["chosen_options"] == ["Ended elsewhere"]
    task = ApproveOperator(task_id="approve", pipeline_file="x", table="d.u", about={}, subject="?", body="")
    with pytest.raises(AirflowSkipException, match=r"d\.u doesn't wait for an answer any more"):
        task.execute_complete({"task_instance": None}, event)  # type: ignore[typeddict-item]
    assert held.last_states(lake)["d.u"].reason == "released by bob"


def test_an_answer_that_came_before_the_task_waited_is_taken(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch)
    event = _event(lake, lambda: answers.chosen.append("Approve"))
    assert event["chosen_options"] == ["Approve"]
    assert held.last_states(lake)["d.u"].state is State.HELD


def test_a_lake_that_cannot_be_read_ends_no_question(lake: LakeFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(monkeypatch)
    log = Path(lake.root) / TABLE_STATES.path / "_delta_log"
    away = log.rename(log.with_name("away"))
    log.write_text("a disk that is gone")

    def back() -> None:
        log.unlink()
        away.rename(log)
        held.release(lake, held.last_states(lake)["d.u"])

    assert _event(lake, back)["chosen_options"] == ["Ended elsewhere"]
    assert answers.asked >= 2
