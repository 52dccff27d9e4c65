"""Asks the source now and then for its prepared XA branches, so apply can recognise the unanswered
ones.

In:  a cursor on the second connection; segments as they are cut.
Out: names of branches, and where the server's log ended after its reply.

A branch leaves the server's list after its answer is in the log. If a branch is missing in a reply,
and has no answer up to the log's end after this reply, no answer will come. Capture puts the reply
into bronze once it has everything up to there. It has its place in the log like everything else,
and says the same a year later.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import pymysql

from tidegate.limits import PREPARED_ASKED_SECONDS
from tidegate.mysql.connecting.server_errors import CLIENT_ERRORS
from tidegate.mysql.facts.branches import prepared_branches
from tidegate.mysql.facts.server_facts import current_position
from tidegate.position import Position
from tidegate.segments.segment import Segment
from tidegate.tables import SegmentFlag

log = logging.getLogger(__name__)

Reply = tuple[bytes, Position]  # names as JSON, and where the log ended


class PreparedWatch:
    """The watch of one connection. reply: a reply not in bronze yet."""

    def __init__(self, timeout_seconds: float, where: str) -> None:
        self.reply: Reply | None = None
        self._where = where
        self._timeout_seconds = timeout_seconds
        self._look_at = time.monotonic() + min(timeout_seconds, PREPARED_ASKED_SECONDS)
        self._asks = _ASKS
        self._seen = False  # rows of a prepared transaction

    def note(self, segments: Iterable[Segment]) -> None:
        """Segments that were cut."""
        if any(segment.flags & SegmentFlag.HAS_PREWRITE for segment in segments):
            self._asks, self._seen = _ASKS, True

    def look(self, ask: Callable[[Callable[[Any], Reply | None]], Reply | None]) -> None:
        """Ask, if it is time and branches may be prepared. Raises the errors of `ask`."""
        if time.monotonic() < self._look_at or not self._asks or self.reply is not None:
            return
        self._look_at = time.monotonic() + self._timeout_seconds
        self.reply = ask(self._prepared)
        self._asks -= 1
        if self.reply is not None and self.reply[0] != b"[]":
            self._asks = _ASKS

    def _prepared(self, cursor: Any) -> Reply | None:
        try:
            names = prepared_branches(cursor)
        except pymysql.err.OperationalError as error:
            if not error.args or error.args[0] < CLIENT_ERRORS:
                if self._seen:  # else it matters to nobody; `tidegate check` says it once
                    log.warning("%s: XA RECOVER is refused (%s); GRANT XA_RECOVER_ADMIN", self._where, error.args[-1])
                return None
            raise
        position = current_position(cursor)
        return None if position is None else (json.dumps(names).encode(), position)


# Of replies without a name: what was prepared last may have been too young at the first of them.
_ASKS: Final = 2
