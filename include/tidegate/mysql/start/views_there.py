"""The views of a server where capture starts: a later RENAME TABLE of one of them moves no table.

In:  a connection, the position where the stream starts, the names the pipeline keeps.
Out: a TableVersion per view: no table has its name (kind "baseline", engine "view").

They are read without a look at the log. If a view is made or dropped meanwhile, it is unknown, or
the log says it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pymysql

from tidegate.config import OWN_DATABASES
from tidegate.mysql.sql_text.catalog import NAMES, asked_by, names_of, names_there, rows_of
from tidegate.mysql.start.recorded import without_columns
from tidegate.position import Position
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.model.unlogged import VIEW
from tidegate.schema.replay.history import BASELINE

Connection: TypeAlias = "pymysql.connections.Connection[Any]"


def views_there(
    connection: Connection, source: str, keeps: Callable[[str, str], bool], position: Position
) -> list[TableVersion]:
    """Raises MySQLError."""
    with connection.cursor() as cursor:
        ask = asked_by(cursor)
        kept = [name for name in names_there(ask) if name[0].lower() not in OWN_DATABASES and keeps(*name)]
        shown = rows_of(ask, NAMES, kept, where="table_type = 'VIEW'")
        names = sorted(names_of(shown))
    return [
        replace(without_columns(source, database, view, position, BASELINE), status=VersionStatus.DROPPED, engine=VIEW)
        for database, view in names
    ]
