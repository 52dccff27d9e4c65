"""Whether a source is too busy to be read now, by the bounds in the pipeline file.

In:  bounds; connections to the source and to a replica of it.
Out: is_busy(), asked before each wave; a line when reading pauses and why, and one when it goes on;
     the same to `tell`.

A figure may be unavailable. If our account may not see it, that is an error. If the cause may pass,
reading pauses: a replica that is silent, or whose replication has stopped, may be far behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pymysql
from pymysql.constants import ER

from tidegate.errors import SourceRefused, SourceUnavailable
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.snapshot.reading.connection import WorkerConnection

_SYNTAX: Final = frozenset({ER.PARSE_ERROR, ER.UNKNOWN_SYSTEM_VARIABLE})
_DENIED: Final = frozenset({ER.SPECIFIC_ACCESS_DENIED_ERROR, ER.ACCESS_DENIED_ERROR})


@dataclass(frozen=True, slots=True)
class LoadBounds:
    """No wave begins above these bounds; 0: not checked. replica: the replica whose lag counts."""

    threads_running: int = 0
    history_list: int = 0
    replica_lag_seconds: int = 0
    replica: ConnectionInfo | None = None


class LoadGuard:
    """The guard of one source. It asks the source over the reader's connection, and the replica over its own."""

    def __init__(
        self,
        bounds: LoadBounds,
        source: str,
        report: Callable[[str], None],
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """tell: takes why a pause begins, and "" when one ends; once each."""
        self._tell = tell
        self._bounds, self._source, self._report = bounds, source, report
        self._pauses = False
        if bounds.replica_lag_seconds and bounds.replica is None:
            report(f"{source}: names no replica_conn_id: the lag of its replicas isn't looked at")

    def is_busy(self, asked: WorkerConnection) -> bool:
        """Raises SourceRefused where the account may not look, SourceUnavailable."""
        why = self._why(asked)
        if why and not self._pauses:
            self._report(f"{self._source}: reading pauses, {why}; it goes on by itself")
            self._tell(why)
        elif self._pauses and not why:
            self._report(f"{self._source}: reading goes on")
            self._tell("")
        self._pauses = bool(why)
        return self._pauses

    def _why(self, asked: WorkerConnection) -> str:
        bounds = self._bounds
        if asked.is_tidb:  # several servers, of which one doesn't tell
            return ""
        if bounds.threads_running and (running := _status(asked, "Threads_running")) > bounds.threads_running:
            return f"Threads_running is {running} (snapshot.threads_running_max: {bounds.threads_running})"
        if bounds.history_list and (length := _history_list(asked)) > bounds.history_list:
            return f"InnoDB's history list has {length} entries (snapshot.history_list_max: {bounds.history_list})"
        if bounds.replica_lag_seconds and bounds.replica is not None:
            return _why_replica(bounds.replica, bounds.replica_lag_seconds)
        return ""


def _status(asked: WorkerConnection, name: str) -> int:
    rows = asked.ask(f"SHOW GLOBAL STATUS LIKE '{name}'")
    return int(rows[0][1]) if rows else 0


def _history_list(asked: WorkerConnection) -> int:
    if asked.is_mariadb:
        return _status(asked, "Innodb_history_list_length")
    try:
        rows = asked.ask("SELECT `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'")
    except (SourceRefused, SourceUnavailable) as error:
        if _code(error.__cause__) in _DENIED:
            raise SourceRefused(
                "our account may not see the length of InnoDB's history list",
                where=asked.info.where,
                remedy=f"run: GRANT PROCESS ON *.* TO '{asked.info.user}', or leave out snapshot.history_list_max",
            ) from error
        raise
    return int(rows[0][0])


def _why_replica(info: ConnectionInfo, lag_max: int) -> str:
    try:
        with connect(info) as connection, connection.cursor() as cursor:
            rows = _replications(cursor)
    except (pymysql.err.MySQLError, OSError, SourceUnavailable) as error:
        if _code(error) in _DENIED:
            raise SourceRefused(
                "our account may not see how far the replica is",
                where=info.where,
                remedy=f"run there: GRANT REPLICATION CLIENT (MariaDB: REPLICA MONITOR) ON *.* TO '{info.user}'",
            ) from error
        return f"its replica can't be asked: {named(error, info)}"
    if not rows:
        raise SourceRefused(
            "the server of replica_conn_id is no replica", where=info.where, remedy="give a replica, or leave it out"
        )
    lags = [row.get("seconds_behind_source") for row in rows]
    if None in lags:
        return f"replication stands still at {info.where}"
    lag = max(int(seconds) for seconds in lags if seconds is not None)
    over = f"the replica at {info.where} is {lag} s behind (snapshot.replica_lag_seconds_max: {lag_max})"
    return over if lag > lag_max else ""


def _replications(cursor: pymysql.cursors.Cursor) -> list[dict[str, int | None]]:
    statements = ("SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS")  # MariaDB, MySQL, before 8.0.22
    for statement in statements:
        try:
            cursor.execute(statement)
        except pymysql.err.MySQLError as error:
            if _code(error) not in _SYNTAX or statement == statements[-1]:
                raise
        else:
            names = [str(column[0]).lower().replace("master", "source") for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return []


def _code(error: BaseException | None) -> int:
    return int(error.args[0]) if isinstance(error, pymysql.err.MySQLError) and error.args else 0
