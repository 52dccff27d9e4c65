"""Open questions to a person, and new ones. A question is about a table (its DDL, or an XA
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


class NewQuestions:
    """Questions that weren't asked yet.

    asked: what was asked. A table -> commit_ts; `source start_ts` -> start_ts: one entry per
    transaction, since an older one may come later.
    """

    def __init__(self, asked: dict[str, int]) -> None:
        self._asked = dict(asked)
        self._seen: tuple[int, ...] = ()
        self._tails: list[LogTail] = []
        self._lake: LakeFiles | None = None

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Open the logs that `look` reads. Blocks."""
        from tidegate.lake.files import LakeFiles  # imports pyarrow: in the thread of whoever looks
        from tidegate.tables import TABLE_STATES
        from tidegate.tables.prewrites_table import PREWRITES

        self._lake = LakeFiles(lake.rstrip("/"), options)
        paths = [table.path for table in (TABLE_STATES, PREWRITES)]
        self._tails = [LogTail(DeltaLog(self._lake.uri(path), options)) for path in paths]
        self._seen = ()

    @property
    def kept(self) -> dict[str, int]:
        """The asked questions, for the next `look`. An answered table is left out, so it may be
        asked about again.
        """
        return self._asked

    def look(self) -> dict[str, Any] | None:
        """{"tables": [...]}: the tables and sources with new questions; None without any. Blocks."""
        from tidegate.lake.bronze.prewrites import parked_by_pumps
        from tidegate.lake.standing.held import questions

        assert self._lake is not None
        version = tuple(tail.version() for tail in self._tails)
        if version == self._seen:
            return None
        waiting = {table: state.place.at_ts if state.place else 0 for table, state in questions(self._lake).items()}
        named = {table: table for table in waiting}
        for source, parked in parked_by_pumps(self._lake).items():
            of = {f"{source} {prewrite.start_ts}": prewrite.start_ts for prewrite in parked}
            waiting |= of
            named |= dict.fromkeys(of, source)
        new = sorted({named[key] for key, at_ts in waiting.items() if self._asked.get(key) != at_ts})
        self._asked, self._seen = waiting, version
        return {"tables": new} if new else None
