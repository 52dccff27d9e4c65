"""Ask a person when a table waits for approval of its DDL.

In:  the Delta log of control/table_states, looked at every few seconds; its rows when it has grown.
Out: an asset event that names the tables whose question is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.lake.people.questions import NewQuestions
from tidegate_airflow.lake_trigger import LakeTrigger


class QuestionTrigger(LakeTrigger):
    """Fires when tables of the pipeline wait for approval that it hasn't fired for."""

    kept_key = "asked"

    def __init__(
        self,
        lake: str,
        conn_id: str | None = None,
        options: dict[str, str] | None = None,
        *,
        poll_seconds: float = 2.0,
    ) -> None:
        super().__init__(lake, conn_id, options, poll_seconds=poll_seconds)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments: the triggerer makes the trigger again from these."""
        return (
            "tidegate_airflow.question_trigger.QuestionTrigger",
            {
                "lake": self.lake,
                "conn_id": self.conn_id,
                "options": self.options,
                "poll_seconds": self.poll_seconds,
            },
        )

    def follow(self, kept: Any) -> NewQuestions:
        """Follows the questions that weren't asked yet."""
        return NewQuestions(kept or {})


def asked_tables(events: Sequence[Any]) -> list[str]:
    """The tables that the asset events of a run name, each once, in order."""
    named: list[str] = []
    for event in events:
        named += event.extra.get("payload", {}).get("tables", [])
    return list(dict.fromkeys(named))
