"""Whether a view of MariaDB sees every XA branch committed before its place in the log.

In:  the log's end and the prepared branches, asked before the view is opened; the view's place; the
     log after the end.
Out: yes; or no: then another view is opened.

MariaDB logs an XA COMMIT before its engine commits it, and tells a view's place by the log. A view
opened in between lacks the branch's rows, and a reader of the log from its place on never gets
them. Until the engine has committed a branch, it is in the list of prepared ones. If a branch was
answered before we ask for the log's end, and isn't in the list after it, its rows are visible. An
answer between the log's end and the view's place is in doubt, and so are the listed branches. Such
a branch is seen correctly if its answer comes after the place, or doesn't come while we wait.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from pymysql.cursors import SSCursor

from tidegate.binlog.format.xa import branch_name
from tidegate.limits import BRANCH_SEEN_SECONDS, CAPTURE_POLL_SECONDS
from tidegate.mysql.facts.branches import prepared_branches
from tidegate.mysql.facts.server_facts import current_position
from tidegate.position import Position

_SAID: Final = re.compile(r"^XA (PREPARE|COMMIT|ROLLBACK) X'([0-9a-f]*)',X'([0-9a-f]*)',(\d+)")


@dataclass(frozen=True, slots=True)
class BranchesBeside:
    """The branches prepared when the log ended at `end`, or soon after."""

    end: Position
    listed: frozenset[str]

    @classmethod
    def now(cls, connection: Any) -> Self:
        """Raises MySQLError."""
        with connection.cursor() as cursor:
            end = current_position(cursor)
            assert end is not None, "a server that tells a view's place has a log"
            return cls(end, frozenset(prepared_branches(cursor)))

    def are_seen(self, connection: Any, at: Position) -> bool:
        """Whether a view opened since, at this place of the same file, sees each branch committed before. Raises
        MySQLError.
        """
        left = set(self.listed)
        with connection.cursor() as cursor:
            until = time.monotonic() + BRANCH_SEEN_SECONDS
            while left and time.monotonic() < until:
                left.intersection_update(prepared_branches(cursor))
                if left:
                    time.sleep(CAPTURE_POLL_SECONDS)
        first: dict[str, str] = {}  # of each branch after the place
        for end, word, name in _said(connection, min(self.end, at)):
            if end > at.offset:
                first.setdefault(name, word)
            elif word == "COMMIT" and end > self.end.offset:
                return False
        gone = self.listed - left
        return all(first.get(name, "PREPARE") != "PREPARE" for name in gone) and not left & first.keys()


def _said(connection: Any, after: Position) -> Iterator[tuple[int, str, str]]:
    """The facts in a file of the log about branches after a place: where it ends, the word, the branch's name."""
    with connection.cursor(SSCursor) as cursor:  # rows as they come: there may be many other events
        cursor.execute("SHOW BINLOG EVENTS IN %s FROM %s", (after.file, after.offset))
        for row in cursor:
            text = row[5].decode("utf-8", "replace") if isinstance(row[5], bytes) else str(row[5])
            if match := _SAID.match(text):
                yield int(row[4]), match[1], branch_name(match[2], match[3], int(match[4]))
