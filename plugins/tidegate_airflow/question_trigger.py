"""Ask a person when a table waits for approval of its DDL.

In:  the Delta log of control/table_states, looked at every few seconds; its rows when it has grown.
Out: an asset event that names the tables whose question is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidegate.delta.log import DeltaLog
from tidegate.delta.tail import LogTail
from tidegate_airflow.lake_trigger import LakeTrigger

if TYPE_CHECKING:
    from tidegate.lake.files import LakeFiles


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
        """Class and arguments, from which the triggerer makes it again."""
        return (
            "tidegate_airflow.question_trigger.QuestionTrigger",
            {
                "lake": self.lake,
                "conn_id": self.conn_id,
                "options": self.options,
                "poll_seconds": self.poll_seconds,
            },
        )

    def follow(self, kept: Any) -> _Questions:
        """The questions that weren't asked yet."""
        return _Questions(kept or {})


class _Questions:
    """asked: table -> commit_ts of the statement that was asked about."""

    def __init__(self, asked: dict[str, int]) -> None:
        self._asked = dict(asked)
        self._seen = -1
        self._tail: LogTail | None = None
        self._lake: LakeFiles | None = None

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Blocks."""
        from tidegate.lake.files import LakeFiles  # imports pyarrow: in a thread, not in the triggerer's loop
        from tidegate.tables import TABLE_STATES

        self._lake = LakeFiles(lake.rstrip("/"), options)
        self._tail = LogTail(DeltaLog(self._lake.uri(TABLE_STATES.path), options))
        self._seen = -1

    @property
    def kept(self) -> dict[str, int]:
        """What waits is asked; what was answered may be asked again."""
        return self._asked

    def look(self) -> dict[str, Any] | None:
        """{"tables": [...]} whose question is new. Blocks."""
        from tidegate.lake.held import questions

        assert self._tail is not None
        assert self._lake is not None
        version = self._tail.version()
        if version == self._seen:
            return None
        waiting = {table: int(event["place_at_ts"] or 0) for table, event in questions(self._lake).items()}
        new = sorted(table for table, at_ts in waiting.items() if self._asked.get(table) != at_ts)
        self._asked, self._seen = waiting, version
        return {"tables": new} if new else None


def asked_tables(events: Sequence[Any]) -> list[str]:
    """The tables that the asset events of a run name, each once, in order."""
    named: list[str] = []
    for event in events:
        named += event.extra.get("payload", {}).get("tables", [])
    return list(dict.fromkeys(named))
