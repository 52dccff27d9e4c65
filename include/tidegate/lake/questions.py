"""Which tables wait for a person's answer, about their DDL or an XA transaction, and which questions are new.

In:  the Delta log of control/table_states, looked at now and then; its rows when it has grown.
Out: names of tables. What was asked is kept by whoever asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.delta.log import DeltaLog
from tidegate.delta.tail import LogTail

if TYPE_CHECKING:
    from tidegate.lake.files import LakeFiles


class NewQuestions:
    """Questions that weren't asked yet. asked: table -> commit_ts of what was asked about."""

    def __init__(self, asked: dict[str, int]) -> None:
        self._asked = dict(asked)
        self._seen = -1
        self._tail: LogTail | None = None
        self._lake: LakeFiles | None = None

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Blocks."""
        from tidegate.lake.files import LakeFiles  # imports pyarrow: in the thread of whoever looks
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
        waiting = {table: state.place.at_ts if state.place else 0 for table, state in questions(self._lake).items()}
        new = sorted(table for table, at_ts in waiting.items() if self._asked.get(table) != at_ts)
        self._asked, self._seen = waiting, version
        return {"tables": new} if new else None
