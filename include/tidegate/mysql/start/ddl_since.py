"""Whether a DDL of certain tables stands in the binlog after a position, by what the server shows of its events.

In:  a connection, a position.
Out: the first such statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pymysql
from pymysql.cursors import SSCursor

from tidegate.errors import DDLError
from tidegate.mysql.facts.server_facts import current_position
from tidegate.mysql.start.shown_tables import server_settings
from tidegate.position import Position
from tidegate.schema.ddl.reader import tables_named
from tidegate.schema.model.types import UNKNOWN
from tidegate.table_names import splits

_FRAME: Final = re.compile(r"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|XA)\b", re.IGNORECASE)
_STATEMENTS: Final = {"Query", "Query_compressed"}
_USE: Final = re.compile(r"use `((?:[^`]|``)*)`; ", re.IGNORECASE)

Keeps = Callable[[str, str], bool]
Connection: TypeAlias = "pymysql.connections.Connection[Any]"


def ddl_since(connection: Connection, position: Position, keeps: Keeps, server_version: str) -> str:
    """The first DDL after a position that touches a kept table, or can't be read; "" when there is none."""
    with connection.cursor() as cursor:
        end = current_position(cursor)
        folds_names = server_settings(cursor).folds_names
        cursor.execute("SHOW BINARY LOGS")
        files = [Position.of(str(row[0]), 4) for row in cursor.fetchall()]
        cursor.execute("SELECT @@SESSION.character_set_results")
        charset = cursor.fetchone()[0]
        # A statement's bytes as they are: else MariaDB shows '?' for what isn't UTF-8, and MySQL bytes of no one set.
        cursor.execute("SET SESSION character_set_results = binary")
    try:
        for file in sorted(f for f in files if end is not None and position.number <= f.number <= end.number):
            start = position.offset if file.number == position.number else 4
            with connection.cursor(SSCursor) as cursor:  # a file's events may be gigabytes
                cursor.execute(f"SHOW BINLOG EVENTS IN %s FROM {start:d}", (file.file,))
                for row in cursor:
                    info = _text(row[5])
                    if _text(row[2]) in _STATEMENTS and _touches(info, keeps, server_version, folds_names=folds_names):
                        return info
        return ""
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION character_set_results = %s", (charset,))


def _text(cell: Any) -> str:
    return cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)


def _touches(info: str, keeps: Keeps, server_version: str, *, folds_names: bool) -> bool:
    use = _USE.match(info)
    database, sql = (use[1].replace("``", "`"), info[use.end() :]) if use else ("", info)
    if _FRAME.match(sql):
        return False
    try:
        names = tables_named(sql, database, server_version=server_version, folds_names=folds_names)
    except DDLError:
        return True
    # which character set bytes that aren't UTF-8 are in isn't shown
    return any(UNKNOWN in name or keeps(*pair) for name in names for pair in splits(name))
