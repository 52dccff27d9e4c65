"""The marks of a wave read at a timestamp of PD's: a TiDB needs neither writes nor locks.

In:  TiDB's SQL port, the marks a reader would write.
Out: the timestamp of a wave's reads; events of kind `marked` in control/snapshots.

Why it is exact. A wave takes a timestamp L from PD that nobody else has, and each of its statements
sees exactly the commits below L. Therefore H = L: every transaction below L is visible to the reads, and
the reads have nothing else. Apply knows those transactions once the cut has come to L: no Pump
reports a commit at or below its resolved_ts any more, and a later commit is above L, so it wins.
For a prewrite that waits for its answer at L only its commit_ts counts, whenever it was begun and
whenever its answer comes. Therefore apply takes no wave before its cut has come to L
(spark_jobs/window/waves/unlogged_marks.py).

Each wave has a timestamp of its own: garbage collection must not pass it while it is read. Tables
without a key are read whole at one (moment_reading.py).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pymysql

from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.mysql.connecting.connection import ConnectionInfo, named
from tidegate.position import Position
from tidegate.pump.cluster import told_tso
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.snapshot.watermark import Mark, MarkKind
from tidegate.tables import SNAPSHOTS


class TimestampMarks:
    """Tells the marks of one pipeline and source. For one thread at a time. at_ts: the timestamp of
    the wave's reads.
    """

    def __init__(self, info: ConnectionInfo, connection: Any, lake: LakeFiles, pipeline: str, source: str) -> None:
        self._info, self._connection = info, connection
        self._control = ControlTables(lake)
        self._names = (pipeline, source)
        self.at_ts = 0

    def begin(self) -> None:
        """There is nothing to prepare."""

    def over(self, connection: Any) -> TimestampMarks:  # noqa: ARG002 - of whoever locks tables
        """The same: nothing is written."""
        return self

    def go_on(self, at_ts: int) -> None:
        """With an earlier run's wave."""
        self.at_ts = at_ts

    def write(self, mark: Mark) -> Position | None:
        """Take or tell one mark. Raises SourceRefused, SourceUnavailable, LakeUnavailable."""
        if mark.kind is MarkKind.LOW:
            self.at_ts = self._tso() - 1
            return None
        here_ts = self.at_ts + 1
        low_ts, high_ts = (here_ts, here_ts) if mark.kind is MarkKind.HIGH else (None, self._tso())
        event = SnapshotEvent(
            mark.snapshot, *self._names, EventKind.MARKED, datetime.now(UTC), wave=mark.wave, token=mark.token,
            low_ts=low_ts, high_ts=high_ts, options={"mark": mark.to_text(), "server_uuid": ""},
        )  # fmt: skip
        self._control.append(SNAPSHOTS, [event.to_row()])
        return None

    def _tso(self) -> int:
        try:
            with self._connection.cursor() as cursor:
                return told_tso(cursor)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self._info) from error
