"""The live files of bronze above a low-water mark, kept up to date from look to look.

In:  bronze's Delta log.
Out: BronzeFiles per source, in order of seq: those with anything above the mark.

A look reads the new commits. It reads the whole log the first time, when the mark falls, when a
source joins, and when commits have left the log. Memory: the files above the mark, without their
text in the log.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Mapping
from typing import Any

from tidegate.delta.tail import LogTail
from tidegate.lake.bronze.log import BronzeFile, bronze_log, files_of
from tidegate.lake.files import LakeFiles
from tidegate.limits import BRONZE_TAIL_COMMITS_MAX


class FilesAbove:
    """Not thread-safe."""

    def __init__(self, lake: LakeFiles) -> None:
        self._log = bronze_log(lake, self._may_be_wanted)
        self._tail = LogTail(self._log)
        self._version = -1
        self._low_ts = 0
        self._sources: frozenset[str] = frozenset()
        self._files: dict[str, list[BronzeFile]] = {}

    def of(self, sources: Collection[str], low_ts: int) -> Mapping[str, list[BronzeFile]]:
        """The files of these sources with anything above low_ts. Raises LakeUnavailable,
        LakeRefused.
        """
        newest = self._tail.version()
        carried = 0 <= self._version <= newest <= self._version + BRONZE_TAIL_COMMITS_MAX
        if not carried or low_ts < self._low_ts or not self._sources.issuperset(sources):
            self._sources |= frozenset(sources)
            self._load(low_ts)
        elif not all(self._take(version) for version in range(self._version + 1, newest + 1)):
            self._load(self._low_ts)
        return {source: [file for file in self._files.get(source, ()) if file.top_ts > low_ts] for source in sources}

    def let_go(self, low_ts: int) -> None:
        """Drop files with nothing above a mark: nobody looks below it any more."""
        if low_ts > self._low_ts:
            self._low_ts = low_ts
            for source, files in self._files.items():
                self._files[source] = [file for file in files if file.top_ts > low_ts]

    def _may_be_wanted(self, add: Mapping[str, Any]) -> bool:
        return add["partitionValues"]["source"] in self._sources

    def _load(self, low_ts: int) -> None:
        state = self._log.state()
        self._log.forget()
        self._low_ts, self._files = low_ts, {}
        for file in files_of(state):
            if file.top_ts > low_ts:
                self._files.setdefault(file.source, []).append(file)
        self._version = state.version

    def _take(self, version: int) -> bool:
        """Take in one commit; False when it is no longer in the log."""
        actions = self._log.actions(version)
        if actions is None:
            return False
        gone = {action["remove"]["path"] for action in actions if "remove" in action}
        if gone:
            self._files = {source: [kept for kept in of if kept.path not in gone] for source, of in self._files.items()}
        for file in (BronzeFile.of(action["add"]) for action in actions if "add" in action):
            if file.source in self._sources and file.top_ts > self._low_ts:
                insort(self._files.setdefault(file.source, []), file, key=lambda known: known.min_seq)
        self._version = version
        return True
