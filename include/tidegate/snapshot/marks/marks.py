"""Writing marks at a source.

In:  a connection whose account may create and write `tidegate.watermark`.
Out: marks in the source's binlog, each in a transaction of its own.

Why every commit before a low mark is visible to every read that begins after it: write() returns
after the server's commit of the UPDATE, and the server makes transactions visible in the order of
its binlog (MySQL: binlog_order_commits, checked; MariaDB does but for XA COMMIT, waited for). All
reads go to the same server.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Final, Protocol

import pymysql
from pymysql.constants import ER

from tidegate.errors import ConfigError, SourceRefused, SourceUnavailable
from tidegate.mysql.connecting.connection import ConnectionInfo, named
from tidegate.mysql.facts.branches import prepared_branches, see_commits
from tidegate.mysql.facts.server_facts import GTIDS_GIVEN, read_replications, says_read_only
from tidegate.position import Position
from tidegate.snapshot.watermark import BEGIN, CREATE, NAME_BYTES_MAX, WRITE, Mark, MarkKind
from tidegate.tables import WATERMARK, WATERMARK_DATABASE

_CLIENT_ERRORS: Final = 2000  # from here on an error is the connection's, not the server's
_MAY_NOT: Final = frozenset(
    {ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.ACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR}
)
_READ_ONLY: Final = "snapshots are read without marks there"
_NEEDED: Final = {"binlog_format": "ROW", "sql_log_bin": "1", "autocommit": "1"}


class Marks(Protocol):
    """The place of a reader's marks. at_ts: the timestamp of the reading behind a low mark; 0 where there is none."""

    @property
    def at_ts(self) -> int: ...

    def begin(self) -> None: ...

    def over(self, connection: Any) -> Marks: ...

    def write(self, mark: Mark) -> Position | None: ...


class MarksRefused(SourceRefused):
    """Nothing may be written at the server. Snapshots are read without marks in its log."""


class MarkWriter:
    """Writes the marks of one pipeline at one source, over a connection of its own. For one thread at a time."""

    at_ts = 0

    def __init__(self, connection: Any, info: ConnectionInfo, pipeline: str, source: str) -> None:
        """Raises ConfigError for too long names."""
        if max(len(name.encode()) for name in (pipeline, source)) > NAME_BYTES_MAX:
            raise ConfigError(f"a name has more than {NAME_BYTES_MAX} bytes", where=pipeline, remedy="shorten it")
        self._connection = connection
        self._info = info
        self._account = f"'{info.user}'"
        self._names = (pipeline.encode(), source.encode())
        self._lists_branches = False

    def begin(self) -> None:
        """Make the table and our row. Raises SourceRefused (settings or grants), SourceUnavailable."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("SELECT CURRENT_USER()")
                self._account = "@".join(f"'{part}'" for part in str(cursor.fetchone()[0]).rsplit("@", 1))
                self._check(cursor)
                if not self._is_there(cursor):
                    for statement in CREATE:
                        cursor.execute(statement)
                cursor.execute(BEGIN, self._names)
                self._lists_branches = self._may_list_branches(cursor)
        except (pymysql.err.MySQLError, OSError) as error:
            raise self._refused(error) from error

    def over(self, connection: Any) -> MarkWriter:
        """The same, over another connection."""
        writer = copy(self)
        writer._connection = connection  # noqa: SLF001 - of our own class
        return writer

    def write(self, mark: Mark) -> Position | None:
        """One mark, committed when this returns. Raises SourceRefused, SourceUnavailable (not known whether it is)."""
        try:
            with self._connection.cursor() as cursor:
                changed = cursor.execute(WRITE, (mark.to_text(), *self._names))
                if mark.kind is MarkKind.LOW and self._lists_branches:
                    see_commits(cursor)
        except (pymysql.err.MySQLError, OSError) as error:
            refusal = self._refused(error)
            if isinstance(refusal, MarksRefused):  # since begin(): as of a former primary
                remedy = "it is tried again, without marks in its log"
                refusal = SourceUnavailable(refusal.what, where=self._info.where, remedy=remedy)
            raise refusal from error
        if changed != 1:
            raise SourceUnavailable(
                f"our row of {WATERMARK} is gone", where=self._info.where, remedy="leave that table to tidegate"
            )
        return None

    @staticmethod
    def _may_list_branches(cursor: Any) -> bool:
        """Whether the account may list prepared transactions: in MariaDB every account, in MySQL
        those with XA_RECOVER_ADMIN. (MySQL orders XA COMMIT among its commits.)
        """
        try:
            prepared_branches(cursor)
        except pymysql.err.MySQLError as error:
            if error.args and error.args[0] >= _CLIENT_ERRORS:
                raise
            return False
        return True

    def _is_there(self, cursor: Any) -> bool:
        """Whether the table exists: then the account needs no right to create it."""
        cursor.execute(
            "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s", WATERMARK.split(".")
        )
        return cursor.fetchone() is not None

    def _check(self, cursor: Any) -> None:
        cursor.execute(
            "SHOW VARIABLES WHERE Variable_name IN ('binlog_format', 'sql_log_bin', 'autocommit', 'log_bin',"
            " 'binlog_order_commits', 'read_only', 'gtid_mode', 'gtid_slave_pos', 'version')"
        )
        variables = {str(name).lower(): str(value).upper() for name, value in cursor.fetchall()}
        on = {name: {"ON": "1", "OFF": "0"}.get(value, value) for name, value in variables.items()}
        if says_read_only(variables.get("read_only", "")):
            raise MarksRefused("the server is read-only", where=self._info.where, remedy=_READ_ONLY)
        self._check_replicates(cursor, variables)
        for name, wanted in _NEEDED.items():
            if on.get(name, wanted) != wanted:
                raise self._unfit(f"{name} is {variables[name]}, and marks need {wanted}", f"set {name} there")
        if on.get("binlog_order_commits", "1") != "1":
            what = "binlog_order_commits is OFF: what was logged before a mark may not be visible when it is"
            raise self._unfit(what, "set binlog_order_commits=ON at the source")

    def _check_replicates(self, cursor: Any, variables: Mapping[str, str]) -> None:
        """Refuse a replica. A write there gets a GTID that its primary doesn't have, and breaks
        replication sooner or later.
        """
        mariadb = "MARIADB" in variables.get("version", "")
        if not mariadb and variables.get("gtid_mode", "") not in GTIDS_GIVEN:
            return
        replications, hidden = read_replications(cursor, mariadb=mariadb)
        if replications:
            remedy = f"{_READ_ONLY}; was it promoted, RESET REPLICA ALL (MariaDB: RESET SLAVE ALL) there says so"
            raise MarksRefused("the server is a replica", where=self._info.where, remedy=remedy)
        if hidden and (not mariadb or variables.get("gtid_slave_pos")):
            grant = "REPLICA MONITOR" if mariadb else "REPLICATION CLIENT"
            remedy = f"{_READ_ONLY}; GRANT {grant} ON *.* TO {self._account} shows whether it was promoted"
            raise MarksRefused("the server may be a replica", where=self._info.where, remedy=remedy)

    def _unfit(self, what: str, remedy: str) -> SourceRefused:
        return SourceRefused(what, where=self._info.where, remedy=remedy)

    def _refused(self, error: BaseException) -> BaseException:
        refusal, code = named(error, self._info), error.args[0] if error.args else 0
        if code == ER.OPTION_PREVENTS_STATEMENT:
            return MarksRefused("the server is read-only", where=self._info.where, remedy=_READ_ONLY)
        if isinstance(refusal, SourceRefused):
            grants = f"run there: GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO {self._account}"
            if code in _MAY_NOT:
                return MarksRefused(refusal.what, where=self._info.where, remedy=grants)
            refusal.remedy = grants
        return refusal
