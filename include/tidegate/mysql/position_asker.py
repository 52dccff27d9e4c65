"""Ask a source again and again where its binlog ends.

In:  how to reach it.
Out: `file:offset`, from the server's memory, over one connection that is kept.
"""

from __future__ import annotations

from typing import Any

import pymysql

from tidegate.mysql.connection import ConnectionInfo, connect, named
from tidegate.mysql.server_facts import current_position


class PositionAsker:
    """The end of a source's binlog, over one connection opened when first asked. For one thread at a time."""

    def __init__(self, info: ConnectionInfo) -> None:
        self._info = info
        self._connection: Any = None

    def position(self) -> str:
        """`file:offset`, or "" when the server has no binlog. Raises SourceRefused or SourceUnavailable."""
        if self._connection is None:
            self._connection = connect(self._info, read_timeout=30)
        try:
            with self._connection.cursor() as cursor:
                return str(current_position(cursor) or "")
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self._info) from error

    def close(self) -> None:
        """End the connection; asking again would open another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
