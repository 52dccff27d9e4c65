"""The end of a server's binlog, its tables and its files, for those who look at a pipeline from outside.

In:  a pipeline, how to reach one of its sources.
Out: a standing.SourceAnswer; a failure is an answer too.

A caller with a look every few seconds keeps Seldom. The lists of tables and of files may be long, and a server pays for
their length. Both are asked for once a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql

from tidegate.capture.purging import Binlogs
from tidegate.capture.standing import SourceAnswer
from tidegate.config import Pipeline
from tidegate.errors import Terminal, TidegateError
from tidegate.limits import (
    SELDOM_ASKED_SECONDS,
    SHOWN_TABLES_MAX,
    STANDING_ANSWER_SECONDS,
    TABLES_ANSWER_SECONDS,
)
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.connecting.server_errors import ErrorMeaning, meaning_of
from tidegate.mysql.facts.server_facts import current_position, read_binary_logs, read_clock_ms
from tidegate.mysql.history.retention import RetentionWatch, read_rules
from tidegate.mysql.sql_text.catalog import BASE_TABLES, NAMES, Ask, Name, asked_by, names_of, names_there, rows_of

_BINLOG_OFF: Final = "its binlog is off (log_bin): what changes now is in no log, and silver doesn't get it"


@dataclass(slots=True)
class Seldom:
    """A server's last answers to the questions of once a minute. For one source, and one thread at a time."""

    tables: tuple[Name, ...] | None = None
    binlogs: Binlogs | None = None
    _kept: list[Name] | None = None
    _files_at: float | None = None
    _tables_at: float | None = None
    _watch: RetentionWatch = field(default_factory=lambda: RetentionWatch("", 0))

    def read_files(self, cursor: Any) -> None:
        """Raises MySQLError. Files stay unknown where the account may not see them."""
        if not _is_due(self._files_at):
            return
        try:
            self.binlogs = self._watch.measured(read_rules(cursor), read_binary_logs(cursor))
        except pymysql.err.MySQLError as error:
            if meaning_of(error.args[0]) not in (ErrorMeaning.NOT_GRANTED, ErrorMeaning.REFUSED):
                raise
            self.binlogs = None
        self._files_at = time.monotonic()

    def read_tables(self, info: ConnectionInfo, keeps: Callable[[str, str], bool]) -> None:
        """A server that is too slow for it leaves them as they were."""
        if not _is_due(self._tables_at):
            return
        self._tables_at = time.monotonic()
        patience = {"connect_timeout": STANDING_ANSWER_SECONDS}
        patience["read_timeout"] = TABLES_ANSWER_SECONDS
        with (
            suppress(TidegateError, pymysql.err.MySQLError, OSError),
            connect(info, **patience) as connection,
            connection.cursor() as cursor,
        ):
            self._take_tables(asked_by(cursor), keeps)

    def _take_tables(self, ask: Ask, keeps: Callable[[str, str], bool]) -> None:
        """MariaDB opens each table to say whether it is a view."""
        kept = [name for name in names_there(ask) if keeps(*name)]
        if len(kept) > SHOWN_TABLES_MAX:
            self.tables = None
        elif kept != self._kept:
            self.tables = tuple(names_of(rows_of(ask, NAMES, kept, where=BASE_TABLES)))
            self._kept = kept


def _is_due(read_at: float | None) -> bool:
    return read_at is None or time.monotonic() - read_at >= SELDOM_ASKED_SECONDS


def ask(pipeline: Pipeline, find: Callable[[], ConnectionInfo], seldom: Seldom | None = None) -> SourceAnswer:
    """Ask the server over a short connection. find: how to reach it; it may raise our errors."""
    seldom = seldom or Seldom()
    try:
        info = find()
        with (
            connect(info, connect_timeout=STANDING_ANSWER_SECONDS, read_timeout=STANDING_ANSWER_SECONDS) as connection,
            connection.cursor() as cursor,
        ):
            try:
                seldom.read_files(cursor)  # before the position: a file of the list is never newer than it
                position = str(current_position(cursor) or "")
                cursor.execute("SELECT @@GLOBAL.server_id")
                server_id = int(cursor.fetchone()[0])
                asked_at = time.time()
                said = read_clock_ms(cursor) / 1000
                ahead = said - (asked_at + time.time()) / 2  # it was read about half-way
            except (pymysql.err.MySQLError, OSError) as error:
                raise named(error, info) from error
    except TidegateError as error:
        return SourceAnswer(error=str(error), refused=isinstance(error, Terminal), fault=type(error).__name__)
    if not position:
        return SourceAnswer(server_id, error=_BINLOG_OFF, refused=True, host=info.where)
    seldom.read_tables(info, pipeline.tables.keeps)
    return SourceAnswer(server_id, position, seldom.tables, "", ahead, info.where, seldom.binlogs)
