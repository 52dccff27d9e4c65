"""Which tables a server has, about how large each is, and since when.

In:  how to reach a server.
Out: a There per base table, of the wanted ones that the account may see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import pymysql

from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.sql_text.catalog import BASE_TABLES, asked_by, names_there, rows_of

# A restart empties MEMORY tables, which MySQL logs at their next use. This column uses them too, and is logged never.
ROWS_ABOUT: Final = "IF(engine = 'MEMORY', NULL, table_rows)"
_TABLES: Final = (
    f"SELECT table_schema, table_name, {ROWS_ABOUT}, UNIX_TIMESTAMP(create_time) FROM information_schema.tables"
)


class There(NamedTuple):
    """rows: about how many, as the storage engine estimates. made_at: Unix time, in seconds. None: nobody knows."""

    rows: int | None
    made_at: float | None


def tables_there(info: ConnectionInfo, keeps: Callable[[str, str], bool]) -> dict[tuple[str, str], There]:
    """The wanted tables by database and table. Raises SourceRefused, SourceUnavailable."""
    try:
        with connect(info) as connection, connection.cursor() as cursor:
            ask = asked_by(cursor)
            names = [name for name in names_there(ask) if keeps(*name)]
            return {
                (str(database), str(table)): There(
                    None if rows is None else int(rows), None if made_at is None else float(made_at)
                )
                for database, table, rows, made_at in rows_of(ask, _TABLES, names, where=BASE_TABLES)
            }
    except (pymysql.err.MySQLError, OSError) as error:
        raise named(error, info) from error
