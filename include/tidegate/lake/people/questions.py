"""Open questions to a person, new ones, and whether one is still open. A question is about a table (its DDL, or an XA
transaction), or about a source (transactions its TiDB no longer knows).

In:  the Delta logs of control/table_states and control/prewrites, looked at now and then; their
     rows if one of the logs has grown.
Out: names of tables, and of sources (without a dot). The caller stores what was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.delta.log import DeltaLog
from tidegate.delta.tail import LogTail

if TYPE_CHECKING:
    from tidegate.lake.files import LakeFiles


class OpenQuestions:
    """The questions without an answer.

    open: a table -> commit_ts of its statement; `source start_ts` -> start_ts: one entry per
    transaction, since an older one may come later. asked_as: the table or source of each entry.
    """

    def __init__(self) -> None:
        self.open: dict[str, int] = {}
        self.asked_as: dict[str, str] = {}
        self._seen: tuple[int, ...] = ()
        self._tails: list[LogTail] = []
        self._lake: LakeFiles | None = None

    def begin(self, lake: str, options: dict[str, str]) -> None:
        """Open the logs for `look`. Blocks."""
        from tidegate.lake.files import LakeFiles  # imports pyarrow: in the thread of whoever looks
        from tidegate.tables import TABLE_STATES
        from tidegate.tables.prewrites_table import PREWRITES

        self._lake = LakeFiles(lake.rstrip("/"), options)
        paths = [table.path for table in (TABLE_STATES, PREWRITES)]
        self._tails = [LogTail(DeltaLog(self._lake.uri(path), options)) for path in paths]
        self._seen = ()

    def look(self) -> bool:
        """Read the questions if one of the logs has grown; whether it has. Blocks."""
        from tidegate.lake.bronze.prewrites import parked_by_pumps
        from tidegate.lake.standing.held import questions

        assert self._lake is not None
        version = tuple(tail.version() for tail in self._tails)
        if version == self._seen:
            return False
        waiting = {table: state.place.at_ts if state.place else 0 for table, state in questions(self._lake).items()}
        asked_as = {table: table for table in waiting}
        for source, parked in parked_by_pumps(self._lake).items():
            of = {of_tidb(source, prewrite.start_ts): prewrite.start_ts for prewrite in parked}
            waiting |= of
            asked_as |= dict.fromkeys(of, source)
        self.open, self.asked_as, self._seen = waiting, asked_as, version
        return True

    def waits_for(self, about: dict[str, int]) -> bool:
        """Whether a question about these entries still waits for an answer, also if only to a part of it."""
        return any(self.open.get(key) == at_ts for key, at_ts in about.items())


def of_tidb(source: str, start_ts: int) -> str:
    """The entry of a transaction that its TiDB no longer knows."""
    return f"{source} {start_ts}"


class NewQuestions:
    """Questions beyond the asked ones. asked: entries of OpenQuestions."""

    def __init__(self, asked: dict[str, int]) -> None:
        self._asked = dict(asked)
        self._questions = OpenQuestions()

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Open the logs for `look`. Blocks."""
        self._questions.begin(lake, options)

    @property
    def kept(self) -> dict[str, int]:
        """The asked questions, for the next `look`. An answered table is left out, so it may be
        asked about again.
        """
        return self._asked

    def look(self) -> dict[str, Any] | None:
        """{"tables": [...]}: the tables and sources with new questions; None without any. Blocks."""
        if not self._questions.look():
            return None
        waiting, asked_as = self._questions.open, self._questions.asked_as
        new = sorted({asked_as[key] for key, at_ts in waiting.items() if self._asked.get(key) != at_ts})
        self._asked = waiting
        return {"tables": new} if new else None
