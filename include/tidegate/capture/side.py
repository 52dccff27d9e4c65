"""The second connection to a source: its facts, and its clock.

In:  a connection's settings, the pipeline's source.
Out: facts that were found good, the clock when asked.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Self

import pymysql

from tidegate.config import Source
from tidegate.wire.connection import ConnectionInfo, connect, named
from tidegate.wire.source import cautions, preflight, read_clock_ms, read_facts

log = logging.getLogger(__name__)


class Side:
    """Open as long as the stream beside it; a lost one is made anew with it."""

    def __init__(self, info: ConnectionInfo, source: Source, connection: pymysql.connections.Connection[Any]) -> None:
        self._info = info
        self._connection = connection
        self.facts = read_facts(connection, info)
        preflight(self.facts, source.flavour, source.dump, semi_sync=source.semi_sync)
        for caution in cautions(self.facts, semi_sync=source.semi_sync):
            log.warning("%s", caution)
        self.clock_ahead_ms = self.clock_ms() - int(time.time() * 1000)

    @classmethod
    def open(cls, info: ConnectionInfo, source: Source) -> Self:
        """Raises SourceUnavailable, SourceRefused."""
        connection = connect(info, read_timeout=30, write_timeout=30)
        try:
            return cls(info, source, connection)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        self._connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001  no farewell to a dead server

    def clock_ms(self) -> int:
        """The source's own clock. Raises SourceUnavailable."""
        try:
            with self._connection.cursor() as cursor:
                return read_clock_ms(cursor)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self._info) from error
