"""The marks of a wave at a server closed to writes: they are in control/snapshots, not in its log.

In:  the server, bronze as capture lands it, the marks a reader would write.
Out: events of kind `marked` in control/snapshots: a mark, and the two commit_ts around the wave's
     reads.

Why it is as exact as marks in the log. A chunk counts as a transaction at L. It needs one thing:
every transaction at or below L is visible to its reads. Therefore, before the reads, the server is
asked how much of its log is visible (mysql/facts/visible.py). L is the resolved_ts of the newest
captured segment that ends at or before that place: nothing at or below L comes any more, and all of
it lies before the place. H must cover everything in the reads. Therefore, after them, the server is
asked for the end of its log, and H is a resolved_ts beyond that place. The mark is recorded when
capture has come there. On a quiet server the log's end stays, and capture's heartbeats move
resolved_ts.

Apply has the last word on where such a wave ends in its order
(spark_jobs/window/waves/unlogged_marks.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pymysql

from tidegate.config import SnapshotMarks
from tidegate.errors import SourceRefused, SourceUnavailable
from tidegate.lake.bronze.captured_places import CapturedPlaces, Visible
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.limits import SNAPSHOT_LOOK_SECONDS, SNAPSHOT_STANDING_SECONDS
from tidegate.mysql.connecting.connection import named
from tidegate.mysql.facts.branches import prepared_branches, see_commits
from tidegate.mysql.facts.server_facts import check_is, current_position
from tidegate.mysql.facts.visible import visible_place
from tidegate.position import Position
from tidegate.snapshot.marks.marks import Marks, MarksRefused, MarkWriter
from tidegate.snapshot.marks.timestamp_marks import TimestampMarks
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.watermark import Mark, MarkKind
from tidegate.tables import SNAPSHOTS


class UnloggedMarks:
    """Tells the marks of one pipeline and source, over a connection of its own. For one thread at a time."""

    at_ts = 0

    def __init__(self, asked: WorkerConnection, connection: Any, lake: LakeFiles, pipeline: str, source: str) -> None:
        """asked: the server of the reads. connection: to the same one."""
        self._asked, self._info, self._connection = asked, asked.info, connection
        self._control = ControlTables(lake)
        self._names = (pipeline, source)
        self._places = CapturedPlaces(lake, {source: (asked.server_id, asked.server_uuid)})
        self._seen: Visible | None = None

    def begin(self) -> None:
        """Raises SourceRefused when the server doesn't tell what a read sees, SourceUnavailable."""
        if not self._asked.is_mariadb and self._asked.ask("SELECT @@global.gtid_mode")[0][0] != "ON":
            raise SourceRefused(
                "gtid_mode isn't ON: without marks in its log this server doesn't show how much of it a read sees",
                where=self._info.where,
                remedy="set gtid_mode=ON there, or let the account write tidegate.watermark (docs/source.md)",
            )

    def over(self, connection: Any) -> UnloggedMarks:  # noqa: ARG002 - of whoever locks tables
        """The same: nothing is written."""
        return self

    def write(self, mark: Mark) -> Position | None:
        """Take or record one mark. Returns the place of a low mark: the end of the log before the
        reads. Raises SourceRefused, SourceUnavailable.
        """
        if mark.kind is MarkKind.LOW:
            return self._look()
        low_ts, high_ts = self._read_between() if mark.kind is MarkKind.HIGH else (None, self._covered(self._end()))
        event = SnapshotEvent(
            mark.snapshot, *self._names, EventKind.MARKED, datetime.now(UTC), wave=mark.wave, token=mark.token,
            low_ts=low_ts, high_ts=high_ts, options={"mark": mark.to_text(), "server_uuid": self._asked.server_uuid},
        )  # fmt: skip
        self._control.append(SNAPSHOTS, [event.to_row()])
        return None

    def _look(self) -> Position:
        """The place in the log up to which every read from now on sees it."""
        try:
            with self._connection.cursor() as cursor:
                end = current_position(cursor)
                self._seen = visible_place(cursor, mariadb=self._asked.is_mariadb)
                if self._asked.is_mariadb:
                    cursor.execute("COMMIT")
                    if prepared_branches(cursor):
                        see_commits(cursor)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self._info) from error
        if self._seen is None or end is None:
            raise SourceRefused("the server writes no log", where=self._info.where, remedy="set log_bin there")
        return end

    def _end(self) -> Position:
        try:
            with self._connection.cursor() as cursor:
                position = current_position(cursor)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self._info) from error
        assert position is not None, "it was there as the wave began"
        return position

    def _read_between(self) -> tuple[int, int]:
        assert self._seen is not None, "the low mark comes first"
        high_ts = self._covered(self._end())
        low_ts = self._places.visible_ts(self._names[1], self._seen)
        if not low_ts:
            raise self._behind(f"{self._seen.file}:{self._seen.offset}")
        return low_ts, max(low_ts, high_ts)  # of a quiet server, the same place at several times

    def _covered(self, end: Position) -> int:
        """Wait until capture has landed all up to a place."""
        until = time.monotonic() + SNAPSHOT_STANDING_SECONDS
        while (covered_ts := self._places.covered_by(self._names[1], end.file, end.offset)) is None:
            if time.monotonic() > until:
                raise self._behind(str(end))
            time.sleep(SNAPSHOT_LOOK_SECONDS)
        return covered_ts

    def _behind(self, place: str) -> SourceUnavailable:
        return SourceUnavailable(
            f"capture hasn't landed this server's log at {place}, and a wave without marks at the source ends there",
            where=self._info.where,
            remedy="is capture running, and at this server? the wave is read again",
        )


def marks_for(
    asked: WorkerConnection,
    connection: Any,
    lake: LakeFiles,
    names: tuple[str, str],
    how: SnapshotMarks = SnapshotMarks.AUTO,
    report: Callable[[str], None] = lambda _: None,
) -> Marks:
    """Where the marks of a pipeline and source go, ready to be written. Raises SourceRefused, and
    SourceUnavailable, also if it isn't the server of the reads: there, commits before a mark of
    another node of the cluster may not be visible yet.
    """
    if asked.is_tidb:
        return TimestampMarks(asked.info, connection, lake, *names)
    try:
        with connection.cursor() as cursor:
            check_is(asked.server, cursor, asked.info)
    except (pymysql.err.MySQLError, OSError) as error:
        raise named(error, asked.info) from error
    written = MarkWriter(connection, asked.info, *names)
    unlogged = UnloggedMarks(asked, connection, lake, *names)
    if how is SnapshotMarks.AUTO:
        try:
            written.begin()
        except MarksRefused as refused:
            report(f"{names[1]}: read without marks in its log, since marks can't be written: {refused}")
        else:
            return written
    unlogged.begin()
    return unlogged
