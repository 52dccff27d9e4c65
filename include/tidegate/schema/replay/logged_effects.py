"""The effects of a logged statement, where its text alone doesn't say: a new table or none, a base table or a
temporary one.

In:  the statement and its event's facts, the server, the settings at the baseline.
Out: whether IF NOT EXISTS made a table; whether a statement may be about a temporary table.

Seen on MySQL 9.7 and MariaDB 11.4: MySQL logs CREATE TABLE IF NOT EXISTS also when the table is there, without the
number of an atomic DDL; MariaDB 11 doesn't log it then. Both write the number when InnoDB made the table. DDL of a
temporary table is logged by sessions with binlog_format STATEMENT (in MariaDB also MIXED), with the flag of
thread-bound statements. MySQL sets that flag as well in a procedure with a temporary table before, but then as an
atomic DDL.
"""

from __future__ import annotations

import re
from typing import Final

from tidegate.config import matches
from tidegate.errors import DDLError
from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.ddl.tree import AlterTable, Statement, TableName, Truncate
from tidegate.schema.model.server import ServerVersion
from tidegate.schema.model.server_settings import ServerSettings

# From here on MariaDB is known not to log an IF NOT EXISTS that found its table.
_QUIET_SINCE: Final = 110000
_MADE_WITH_ROWS: Final = re.compile(r"START\s+TRANSACTION\s*$", re.IGNORECASE)
_MAKES_DATABASE: Final = re.compile(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:DATABASE|SCHEMA)\s+(?!IF\b)", re.IGNORECASE)


def surely_new(name: TableName, statement: DdlStatement, server: ServerVersion, settings: ServerSettings) -> bool:
    """Whether CREATE TABLE IF NOT EXISTS of a table that nobody knows made it."""
    if statement.said.atomic or (server.mariadb and server.number >= _QUIET_SINCE):
        return True
    if not server.mariadb and _MADE_WITH_ROWS.search(statement.sql):  # CREATE ... SELECT, as MySQL logs it
        return True
    return matches(settings.kept, *name) and not matches(settings.left_out, *name)


def makes_database(sql: str) -> bool:
    """Whether a statement shows that its database was new: CREATE DATABASE without IF NOT EXISTS."""
    return _MAKES_DATABASE.match(sql) is not None


def check_base_table(parsed: Statement, statement: DdlStatement, hidden: set[TableName]) -> None:
    """Raises DDLError for a statement perhaps about a temporary table. hidden: temporary tables made by the log."""
    if not statement.said.thread_specific or not isinstance(parsed, AlterTable | Truncate):
        return
    if statement.flavour == "mariadb" or not statement.said.atomic or parsed.table in hidden:
        raise DDLError(
            "it may be about a temporary table of that name: the binlog doesn't say",
            remedy="set binlog_format=ROW in every session, then create the table anew",
        )
