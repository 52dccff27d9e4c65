"""Sends a file's statements to a server, so that many tables are left to compare.

In:  a server, statements, a seed.
Out: databases full of what the file made. Counts of what was sent and what the server accepted.

A test file makes `t1`, asks, and drops it, a hundred times. So most DROPs are left out, and what follows goes on in a
fresh database: `main_alter_table`, `main_alter_table__2` ... Every fourth DROP is sent, since drops count too. Left out
is what would end, harm or reconfigure the server, what turns its binlog off for a session, and what only asks.
"""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from tidegate.errors import ProcessFailed
from tidegate.local.server import Server

_ANSWER_SECONDS: Final = 20
_DROPS_SENT: Final = 0.25
_LOST: Final = frozenset({2006, 2013, 2014, 1927, 0})

# What changes the server itself, other sessions, or files; or says that the log need not have it.
_FORBIDDEN: Final = re.compile(
    rb"^\s*(?:/\*.*?\*/\s*)*(?:shutdown|kill|install|uninstall|change\s|reset|purge|(?:start|stop)\s+(?:slave|replica|all|group)|"
    rb"flush\s+(?!tables?\s*$)|lock\s+(?:tables|instance)|backup|load\s|binlog\s|help|restart|clone|"
    rb"(?:create|drop|alter|rename)\s+(?:or\s+replace\s+)?(?:user|role|server|event|tablespace|logfile|instance|undo|"
    rb"definer\s*=\s*\S+\s+event)|grant|revoke|set\s+(?:password|default\s+role|role)|"
    rb"set\s+.*(?:\bglobal\b|@@global|persist|sql_log_bin|server_id|gtid_seq_no|gtid_next|gtid_domain|pseudo_|"
    rb"binlog_format\s*=\s*.?(?:statement|mixed)|skip_replication|wsrep|debug|default_storage_engine\s*=\s*.?(?:rocksdb|"
    rb"spider|mroonga))|select.*(?:sleep|benchmark|get_lock|into\s+(?:out|dump)file|load_file)|do\s+sleep|analyze\s|"
    rb"explain|show|desc|select|check\s|checksum|handler|repair\s+(?:local|no_write_to_binlog)\b|"
    rb"use\s+(?:mysql|performance_schema|information_schema|sys)\b|"
    rb"(?:drop|create|alter)\s+.*\b(?:mysql|sys)\.)",
    re.IGNORECASE | re.DOTALL,
)
_HARM: Final = re.compile(
    rb"\bmysql\s*\.\s*`?\w|drop\s+database\s+(?:if\s+exists\s+)?`?(?:mysql|sys)\b|\bsleep\s*\(|\bbenchmark\s*\(|get_lock|"
    rb"data\s+directory|sql_log_bin|outfile|dumpfile",
    re.IGNORECASE,
)
_DROP: Final = re.compile(rb"^\s*drop\s+(?:table|tables|database|schema|view)\b", re.IGNORECASE)
_USE_TEST: Final = re.compile(rb"^\s*use\s+`?test`?\s*$", re.IGNORECASE)
_TEST: Final = re.compile(rb"(?<![\w`'.])`?test`?\.(?=[\w`])")


@dataclass(slots=True)
class Played:
    """What came of the files so far."""

    sent: int = 0
    accepted: int = 0
    lost_connections: int = 0
    databases: list[str] = field(default_factory=list)


class Player:
    """One server; one connection per file."""

    def __init__(self, server: Server, seed: int, variable: Callable[[], bytes] = bytes) -> None:
        """variable: a statement for a session before its next one, or nothing."""
        self.server = server
        self._variable = variable
        self.played = Played()
        self._random = random.Random(seed)

    def play(self, name: str, statements: Iterable[bytes]) -> None:
        """One file. A connection that is lost (the server may crash) ends it; the server is waited for."""
        connection, database = self._begin(name, 1)
        number = 1
        try:
            for statement in statements:
                if _FORBIDDEN.match(statement) or _HARM.search(statement):
                    continue
                if _DROP.match(statement) and self._random.random() > _DROPS_SENT:
                    number += 1
                    database = self._database(connection, name, number)
                    continue
                if sets := self._variable():
                    self._send(connection, sets)
                self._send(connection, _for_database(statement, database))
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError):
            self.played.lost_connections += 1
            self._await()
        finally:
            with contextlib.suppress(Exception):
                connection.close()

    def _begin(self, name: str, number: int) -> tuple[Connection[Any], str]:
        connection = self.server.connect(read_timeout=_ANSWER_SECONDS, charset="utf8mb4", conv={})
        connection.encoding = "latin1"  # decodes all that a session's variables make of names and values
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION lock_wait_timeout = 2, SESSION innodb_lock_wait_timeout = 1")
            if self.server.flavour == "mariadb":
                cursor.execute("SET SESSION max_statement_time = 10")
            else:
                cursor.execute("SET SESSION sql_require_primary_key = OFF")
        return connection, self._database(connection, name, number)

    def _database(self, connection: Connection[Any], name: str, number: int) -> str:
        database = name if number == 1 else f"{name}__{number}"
        with contextlib.suppress(pymysql.err.ProgrammingError, pymysql.err.InternalError):
            _run(connection, b"ROLLBACK")
            _run(connection, b"UNLOCK TABLES")
        _run(connection, f"CREATE DATABASE IF NOT EXISTS `{database}`".encode())
        _run(connection, f"USE `{database}`".encode())
        self.played.databases.append(database)
        return database

    def _send(self, connection: Connection[Any], statement: bytes) -> None:
        self.played.sent += 1
        try:
            _run(connection, statement)
        except pymysql.err.MySQLError as error:
            if error.args and error.args[0] in _LOST:
                raise
        else:
            self.played.accepted += 1

    def _await(self) -> None:
        """After a lost connection: a server that crashed is started again. It may still be about to end."""
        try:
            self.server.wait()
        except ProcessFailed:
            process = self.server.process
            if process is None or process.poll() is None:
                raise
            self.server.process = None
            self.server.start()


def _run(connection: Connection[Any], statement: bytes) -> None:
    """Send it as it is, read what comes and throw it away."""
    connection.query(statement)  # type: ignore[arg-type]  # bytes go through as they are
    while (result := connection._result) is not None and result.has_next:  # as PyMySQL's cursor looks at it
        connection.next_result()


def _for_database(statement: bytes, database: str) -> bytes:
    """`test` is where test files live; ours live in a database each."""
    if _USE_TEST.match(statement):
        return f"USE `{database}`".encode()
    return _TEST.sub(f"`{database}`.".encode(), statement)
