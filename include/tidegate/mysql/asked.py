"""The end of a server's binlog, and its tables: asked once, for those who look at a pipeline from outside.

In:  a pipeline, how to reach one of its sources.
Out: a standing.Server; what goes wrong is an answer too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import pymysql

from tidegate.capture.standing import SourceAnswer
from tidegate.config import Pipeline
from tidegate.errors import TidegateError
from tidegate.limits import STANDING_ANSWER_SECONDS
from tidegate.mysql.connection import ConnectionInfo, connect, named
from tidegate.mysql.server_facts import current_position, read_clock_ms

_TABLES: Final = (
    "SELECT table_schema, table_name FROM information_schema.tables"
    " WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
)


def ask(pipeline: Pipeline, find: Callable[[], ConnectionInfo]) -> SourceAnswer:
    """One short connection. find: how to reach the server; it may raise our errors."""
    try:
        info = find()
        with (
            connect(info, connect_timeout=STANDING_ANSWER_SECONDS, read_timeout=STANDING_ANSWER_SECONDS) as connection,
            connection.cursor() as cursor,
        ):
            try:
                position = str(current_position(cursor) or "")
                cursor.execute("SELECT @@GLOBAL.server_id")
                server_id = int(cursor.fetchone()[0])
                cursor.execute(_TABLES)
                rows = [(str(row[0]), str(row[1])) for row in cursor.fetchall()]
                asked_at = time.time()
                said = read_clock_ms(cursor) / 1000
                ahead = said - (asked_at + time.time()) / 2  # it was read about half-way
            except (pymysql.err.MySQLError, OSError) as error:
                raise named(error, info) from error
    except TidegateError as error:
        return SourceAnswer(error=str(error))
    matched = tuple(pair for pair in rows if pipeline.tables.keeps(*pair))
    return SourceAnswer(server_id, position, matched, clock_ahead_seconds=ahead)
