"""The end of a server's binlog, its tables and its files, for those who look at a pipeline from outside.

In:  a pipeline, how to reach one of its sources.
Out: a standing.SourceAnswer; a failure is an answer too.

A caller with a look every few seconds keeps Seldom. The lists of tables and of files may be long, and a server pays for
their length. Both are asked for once a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql

from tidegate.capture.purging import Binlogs
from tidegate.capture.standing import SourceAnswer
from tidegate.config import Pipeline
from tidegate.errors import TidegateError
from tidegate.limits import SELDOM_ASKED_SECONDS, STANDING_ANSWER_SECONDS, TABLES_ANSWER_SECONDS
from tidegate.mysql.catalog import BASE_TABLES, NAMES, Ask, Name, asked_by, names_of, names_there
from tidegate.mysql.connection import ConnectionInfo, connect, named
from tidegate.mysql.retention import RetentionWatch, purge_rules
from tidegate.mysql.server_errors import ErrorMeaning, meaning_of
from tidegate.mysql.server_facts import current_position, read_binary_logs, read_clock_ms

_VIEWS: Final = "SELECT table_schema, table_name FROM information_schema.views"
_PURGING: Final = (
    "SHOW GLOBAL VARIABLES WHERE variable_name IN ('binlog_expire_logs_seconds', 'binlog_expire_logs_auto_purge',"
    " 'expire_logs_days', 'max_binlog_total_size')"
)


@dataclass(slots=True)
class Seldom:
    """A server's last answers to the questions of once a minute. For one source, and one thread at a time."""

    tables: tuple[tuple[str, str], ...] = ()
    binlogs: Binlogs | None = None
    _names: list[Name] = field(default_factory=list)
    _read_at: float | None = None
    _watch: RetentionWatch | None = None

    def read(self, cursor: Any) -> None:
        """Raises MySQLError. Files stay unknown where the account may not see them."""
        if not self._is_due():
            return
        self._read_tables(asked_by(cursor))
        try:
            if self._watch is None:
                cursor.execute(_PURGING)
                rules = purge_rules({str(name).lower(): str(value) for name, value in cursor.fetchall()})
                self._watch = RetentionWatch("", rules, 0)
            self.binlogs = self._watch.measured(read_binary_logs(cursor))
        except pymysql.err.MySQLError as error:
            if meaning_of(error.args[0]) not in (ErrorMeaning.NOT_GRANTED, ErrorMeaning.REFUSED):
                raise
            self.binlogs = None
        self._read_at = time.monotonic()

    @property
    def patience_seconds(self) -> int:
        """How long an answer may take: a list of a hundred thousand tables takes seconds."""
        return TABLES_ANSWER_SECONDS if self._is_due() else STANDING_ANSWER_SECONDS

    def _is_due(self) -> bool:
        return self._read_at is None or time.monotonic() - self._read_at >= SELDOM_ASKED_SECONDS

    def _read_tables(self, ask: Ask) -> None:
        """MariaDB opens every table to say which of them are views; its list of views costs a quarter of that."""
        if "mariadb" not in str(ask("SELECT VERSION()", ())[0][0]).lower():
            self.tables = tuple(names_of(ask(f"{NAMES} WHERE {BASE_TABLES}", ())))
            return
        names = names_there(ask)
        if names != self._names:
            views = set(names_of(ask(_VIEWS, ())))
            self._names, self.tables = names, tuple(name for name in names if name not in views)


def ask(pipeline: Pipeline, find: Callable[[], ConnectionInfo], seldom: Seldom | None = None) -> SourceAnswer:
    """One short connection. find: how to reach the server; it may raise our errors."""
    seldom = seldom or Seldom()
    try:
        info = find()
        with (
            connect(info, connect_timeout=STANDING_ANSWER_SECONDS, read_timeout=seldom.patience_seconds) as connection,
            connection.cursor() as cursor,
        ):
            try:
                seldom.read(cursor)  # before the position: a file of the list is never newer than it
                position = str(current_position(cursor) or "")
                cursor.execute("SELECT @@GLOBAL.server_id")
                server_id = int(cursor.fetchone()[0])
                asked_at = time.time()
                said = read_clock_ms(cursor) / 1000
                ahead = said - (asked_at + time.time()) / 2  # it was read about half-way
            except (pymysql.err.MySQLError, OSError) as error:
                raise named(error, info) from error
    except TidegateError as error:
        return SourceAnswer(error=str(error))
    matched = tuple(pair for pair in seldom.tables if pipeline.tables.keeps(*pair))
    return SourceAnswer(server_id, position, matched, "", ahead, info.where, seldom.binlogs)
