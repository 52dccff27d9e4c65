"""Wait for the answer to a question: under Required Actions, or anywhere else.

In:  a question's entries, as OpenQuestions has them; the Delta logs of OpenQuestions. All the
     questions of a lake share one look.
Out: the event of Airflow's own trigger. The answer is ENDED, by nobody, once the question ended
     elsewhere: on the page, by a command, or because the source went on. Airflow then refuses a
     later answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from airflow.providers.standard.triggers.hitl import HITLTrigger
from airflow.sdk.execution_time.hitl import update_hitl_detail_response
from airflow.triggers.base import TriggerEvent
from asgiref.sync import sync_to_async

from tidegate.lake.people.questions import OpenQuestions
from tidegate.limits import ANSWER_LOOK_SECONDS, WATCH_PAUSE_SECONDS_MAX
from tidegate_airflow.connections import astorage_options
from tidegate_airflow.looks import looked

ENDED: Final = "Ended elsewhere"


class AnswerTrigger(HITLTrigger):
    """about: the question's entries. lake, conn_id and storage: as in LakeTrigger."""

    def __init__(
        self,
        *,
        ti_id: UUID,
        about: dict[str, int],
        lake: str,
        conn_id: str | None,
        storage: dict[str, str],
        poll_seconds: float = ANSWER_LOOK_SECONDS,
    ) -> None:
        super().__init__(ti_id=ti_id, options=[], params={}, timeout_datetime=None, poke_interval=poll_seconds)
        self.about = about
        self.lake = lake
        self.conn_id = conn_id
        self.storage = storage

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments: the triggerer makes the trigger again from these."""
        return (
            "tidegate_airflow.answer_trigger.AnswerTrigger",
            {
                "ti_id": self.ti_id,
                "about": self.about,
                "lake": self.lake,
                "conn_id": self.conn_id,
                "storage": self.storage,
                "poll_seconds": self.poke_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until there is an answer. An unreadable lake ends no question."""
        pause, began = self.poke_interval, time.monotonic()
        while True:
            try:
                if event := await self._handle_response():  # type: ignore[no-untyped-call]
                    yield event
                    return
                if not await self._waits(began):
                    await sync_to_async(update_hitl_detail_response)(
                        ti_id=self.ti_id, chosen_options=[ENDED], params_input={}
                    )
                    continue
                pause = self.poke_interval
            except Exception as error:  # noqa: BLE001 - looked at again
                pause = min(pause * 2, WATCH_PAUSE_SECONDS_MAX)
                self.log.warning("The question can't be looked at, again in %.0f s: %s", pause, error)
            await asyncio.sleep(pause)

    async def _waits(self, began: float) -> bool:
        """began: an older look may not know the question yet."""
        key = (self.lake, self.conn_id, *sorted(self.storage.items()))
        looks = _LOOKS.setdefault(key, _Looks(self.lake, self.conn_id, self.storage))
        questions = await looks.since(max(began, time.monotonic() - self.poke_interval))
        return questions.waits_for(self.about)


class _Looks:
    """The looks at one lake."""

    def __init__(self, lake: str, conn_id: str | None, storage: dict[str, str]) -> None:
        self._lake = lake
        self._conn_id = conn_id
        self._storage = storage
        self._questions: OpenQuestions | None = None
        self._looked_at = 0.0
        self._looking = asyncio.Lock()

    async def since(self, earliest: float) -> OpenQuestions:
        """The open questions, of a look that began no earlier."""
        async with self._looking:
            if self._questions is None or self._looked_at < earliest:
                looked_at = time.monotonic()
                questions, self._questions = self._questions, None  # opened again after an error
                if questions is None:
                    questions = OpenQuestions()
                    options = await astorage_options(self._conn_id, self._storage)
                    await looked(questions.begin, self._lake, options)
                await looked(questions.look)
                self._questions, self._looked_at = questions, looked_at
            return self._questions


_ENDED_STATES: Final = ("success", "failed", "skipped", "upstream_failed", "removed")
_LOOKS: Final[dict[tuple[Any, ...], _Looks]] = {}


def asked_by_others(ti: Any, task_id: str) -> dict[str, int]:
    """The entries of other runs' open questions. ti: the task with a run's questions. task_id: of the
    mapped task, whose instances ask them.
    """
    entries: dict[str, int] = {}
    for run_id, states in ti.get_task_states(dag_id=ti.dag_id, task_ids=[task_id]).items():
        if run_id != ti.run_id and any(state not in _ENDED_STATES for state in states.values()):
            questions = ti.xcom_pull(task_ids=ti.task_id, map_indexes=-1, run_id=run_id)
            entries |= still_asked(questions or [], states, task_id)
    return entries


def still_asked(questions: Sequence[Any], states: Mapping[str, str | None], task_id: str) -> dict[str, int]:
    """The entries of a run's questions without an answer. states: of its mapped tasks, as Airflow
    names them; before Airflow has mapped them, of the one task.
    """
    entries: dict[str, int] = {}
    for index, question in enumerate(questions):
        if states.get(f"{task_id}_{index}", states.get(task_id)) not in _ENDED_STATES:
            entries |= question.get("about", {})  # a run that an older release began has none
    return entries
