"""Ask a source again and again where its binlog ends.

In:  how to reach it; where it was when nothing was missing.
Out: `file:offset`, from the server's memory, over one connection that is kept.

With several hosts it asks the one still at capture's position; only without one, the first that answers.
"""

from __future__ import annotations

from typing import Any

import pymysql

from tidegate.errors import SourceRefused, SourceUnavailable
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.facts.server_facts import current_position


class PositionAsker:
    """The end of a source's binlog, over one connection opened when first asked. For one thread at a time."""

    def __init__(self, info: ConnectionInfo, left_at: str = "") -> None:
        self._info = info
        self._host = info.each[0]
        self._left_at = left_at
        self._connection: Any = None

    def position(self) -> str:
        """`file:offset`, or "" when the server has no binlog. Raises SourceRefused or SourceUnavailable."""
        return self._first() if self._connection is None else self._asked()

    def _first(self) -> str:
        """With several hosts it keeps the one that is where capture left it; the word of another must wake capture."""
        said, error = None, None
        for host in self._info.each:
            try:
                self._connection, self._host = connect(host, read_timeout=30), host
                said = self._asked()
            except (SourceUnavailable, SourceRefused) as failure:
                error = failure
            else:
                if said == self._left_at or not self._info.others:
                    return said
            self.close()
        if said is None and error is not None:
            raise error
        return said or ""

    def _asked(self) -> str:
        try:
            with self._connection.cursor() as cursor:
                return str(current_position(cursor) or "")
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self._host) from error

    def close(self) -> None:
        """End the connection; asking again would open another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
