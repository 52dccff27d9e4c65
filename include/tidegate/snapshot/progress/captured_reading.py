"""Check that a reader uses the server that capture reads, and find waves whose end mark capture will never get.

In:  bronze/segments: the server of the newest one; tables with the waves waiting for apply's
     answer.
Out: SourceUnavailable once capture reads another server; lost waves, and end marks.

Apply always refuses rows of another server than the log's, so a reader there would work in vain. A server may die after
a high mark was written, and before capture gets the mark. Then apply never answers the wave. The wave is certainly lost
once capture reads another server and apply has come to capture's position at that time: the mark would lie below it. If
apply answers a wave that the reader counts as lost, its rows are only read twice.

An end mark can be lost likewise, when its reader is long gone. It is written again as soon as
capture reads a server without it: a table with two ends is as whole as after the first one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from tidegate.errors import SourceUnavailable
from tidegate.lake.figures.status import bronze_files, captured_server, cut_ts
from tidegate.lake.files import LakeFiles
from tidegate.limits import SNAPSHOT_WAITING_SECONDS
from tidegate.segments.segment import Server
from tidegate.snapshot.progress.events import SnapshotState, TableProgress


class CapturedReading:
    """The reading of one source. here: the server of the reads; where: how it is reached."""

    def __init__(self, lake: LakeFiles, source: str, here: Server, where: str) -> None:
        self._lake, self._source, self._here, self._where = lake, source, here, where
        self._again_at = 0.0  # by time.monotonic()
        self._lost_from: dict[str, int] = {}  # token -> the cut at which it is lost

    def lost(self, active: Iterable[TableProgress]) -> list[tuple[TableProgress, str]]:
        """Tables with the tokens of their lost waves. Bronze is looked at now and then.

        Raises SourceUnavailable when capture reads another server, LakeUnavailable.
        """
        if time.monotonic() < self._again_at:
            return []
        captured = self._checked()
        gone = [
            (table, token)
            for table in active
            for token, server in table.waiting_at.items()
            if captured not in (None, server)
        ]
        for _, token in gone:
            if token not in self._lost_from:
                self._lost_from[token] = max(file.resolved_ts for file in bronze_files(self._lake)[self._source])
        reached = cut_ts(self._lake) if gone else 0
        self._again_at = time.monotonic() + SNAPSHOT_WAITING_SECONDS
        return [(table, token) for table, token in gone if self._lost_from[token] <= reached]

    def _checked(self) -> Server | None:
        captured = captured_server(self._lake, self._source)
        if captured is not None and captured != self._here:
            raise SourceUnavailable(
                f"capture reads server_id {captured[0]}, and snapshots are read from server_id {self._here[0]}",
                where=self._where,
                remedy="it is tried again, at the server that is captured then",
            )
        return captured


def lost_ends(lake: LakeFiles, tables: Iterable[TableProgress]) -> list[TableProgress]:
    """Those whose end mark was written at another server than capture reads now. Raises LakeUnavailable."""
    ended = [table for table in tables if table.state is SnapshotState.ENDED and table.ended_at is not None]
    captured = {source: captured_server(lake, source) for source in {table.source for table in ended}}
    return [table for table in ended if captured[table.source] not in (None, table.ended_at)]
