"""Whether the server's log still has the events it sent, checked now and then while capture is
connected.

In:  questions to the server over the second connection, the stream's place in its log.
Out: nothing; or SourceUnavailable, which ends the connection: the next one compares the captured
     log with the server's (mysql/history/continuity.py), and reports the difference.

After RESET MASTER, or RESET BINARY LOGS AND GTIDS, the server's dump thread waits in a removed
file, and sends heartbeats from there. They look like those of a quiet server, and no later commit
ever comes. We take our place before we ask the server, so a log without a reset ends there or after
it. A log that has grown since the reset, or was begun with a larger number (RESET ... TO n),
doesn't end before our place. Then GTIDs are compared (MySQL's), and its file is looked for. If the
stream has moved since the last look, there was no reset, and nothing is asked. A proxy may ask
another server than the sending one: such a log isn't compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tidegate.config import Flavour
from tidegate.errors import SourceUnavailable
from tidegate.limits import CLOCK_ASKED_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import (
    SERVER_IDS,
    SourceFacts,
    owned_gtids,
    read_binary_logs,
    read_binlog_status,
    server_of,
)
from tidegate.position import MysqlGtidSet, Position

Ask = Callable[[Callable[[Any], Any]], Any]


class LogEndWatch:
    """The check of one connection of capture. at: its host, and the host's facts."""

    def __init__(self, at: ConnectionInfo, facts: SourceFacts) -> None:
        self._at = at
        self._facts = facts
        self._look_at = time.monotonic() + CLOCK_ASKED_SECONDS
        self._stood: Position | None = None  # at the last look

    def look(self, ask: Ask, reached: Position | None, gtid_executed: str) -> None:
        """Look, when it is time. reached, gtid_executed: where the stream is, and its captured part.

        Raises SourceUnavailable if the log lacks sent events.
        """
        if self._facts.position is None or reached is None or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + CLOCK_ASKED_SECONDS
        stands, self._stood = reached == self._stood, reached
        if not stands:  # what sends isn't reset; and while commits are written, the server's answer waits for them
            return
        why: str = ask(lambda cursor: self._lost(cursor, reached, gtid_executed))
        if why:
            raise SourceUnavailable(
                f"the server's binlog no longer has the events that it sent: {why}",
                where=self._at.where,
                remedy="it was reset (RESET MASTER, RESET BINARY LOGS AND GTIDS), or its files were removed. The next"
                " connection compares the captured log with the server's",
            )

    def _lost(self, cursor: Any, reached: Position, gtid_executed: str) -> str:
        """The missing part of the log, for a person; "" when nothing is missing."""
        compared = gtid_executed and self._facts.flavour is Flavour.MYSQL
        # A transaction is sent before its commit ends: until then it is owned, and afterwards executed.
        owned = _owned(cursor) if compared else ""
        row = read_binlog_status(cursor)
        if row is None or not self._is_same(cursor):
            return ""
        end = Position.of(str(row[0]), int(row[1]))
        if end.base != reached.base:
            return ""
        if end < reached:
            return f"it ends at {end}, capture is at {reached}"
        executed = "".join(str(row[4]).split()) if compared else gtid_executed
        if executed != gtid_executed:
            lacking = MysqlGtidSet.parse(gtid_executed).minus(MysqlGtidSet.parse(executed)).minus(owned_gtids(owned))
            if lacking.intervals:
                return f"it lacks the captured GTIDs {lacking}"
        if end.file != reached.file and reached.file not in dict(read_binary_logs(cursor)):
            return f"{reached.file} is gone, where capture is; it ends at {end}"
        return ""

    def _is_same(self, cursor: Any) -> bool:
        cursor.execute(SERVER_IDS)
        asked = server_of({str(name).lower(): str(value) for name, value in cursor.fetchall()})
        return asked == (self._facts.server_id, self._facts.server_uuid)


def _owned(cursor: Any) -> str:
    cursor.execute("SELECT @@GLOBAL.gtid_owned")
    return str(cursor.fetchone()[0] or "")
