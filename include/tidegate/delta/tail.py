"""The newest version of a table, for callers that ask again and again.

In:  a table's log.
Out: its version, or NO_TABLE.

Commits are named by version: one look for the next name gives the answer, and no file of the table
is held. Nothing heavy is imported: Airflow's processes import this.
"""

from __future__ import annotations

from typing import Final

from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import LAST_CHECKPOINT, commit_name, commit_version, hinted
from tidegate.delta.table.state import NO_TABLE

# Every so many looks it checks that the known version still exists: a look at a store costs money.
_LOOKS_TRUSTED: Final = 20


class LogTail:
    """Follows a log's end. Not thread-safe."""

    def __init__(self, log: DeltaLog) -> None:
        self._store = log.store
        self._known = NO_TABLE
        self._looks = 0

    def version(self) -> int:
        """The newest version; NO_TABLE without a table. A table made anew starts again at its own
        first version.

        An unchanged table costs one look at its log. Raises LakeUnavailable, LakeRefused.
        """
        self._looks += 1
        if self._known == NO_TABLE or (self._looks % _LOOKS_TRUSTED == 0 and not self._has(self._known)):
            self._known = self._last()
        while self._known != NO_TABLE and self._has(self._known + 1):
            self._known += 1
        return self._known

    def _has(self, version: int) -> bool:
        return self._store.stat(commit_name(version)) is not None

    def _last(self) -> int:
        """Lists the log from its last checkpoint on, if it names one: many commits may lie before
        it.
        """
        hint = hinted(self._store.get(LAST_CHECKPOINT)) or 0
        return max(self._commits(commit_name(hint)) or self._commits(""), default=NO_TABLE)

    def _commits(self, start: str) -> list[int]:
        versions = (commit_version(entry.name) for entry in self._store.names(start))
        return [version for version in versions if version is not None]
