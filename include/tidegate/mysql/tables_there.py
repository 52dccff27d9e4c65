"""Which tables a server has, about how large each is, and since when.

In:  how to reach a server.
Out: a There per base table, of every database that the account may see.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import pymysql

from tidegate.mysql.connection import ConnectionInfo, connect, named

# A restart empties MEMORY tables, which MySQL logs at their next use. This column uses them too, and is logged never.
ROWS_ABOUT: Final = "IF(engine = 'MEMORY', NULL, table_rows)"
_TABLES: Final = (
    f"SELECT table_schema, table_name, {ROWS_ABOUT}, UNIX_TIMESTAMP(create_time) FROM information_schema.tables"
    " WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
)


class There(NamedTuple):
    """rows: about how many, as the storage engine estimates. made_at: Unix time, in seconds. None: nobody knows."""

    rows: int | None
    made_at: float | None


def tables_there(info: ConnectionInfo) -> dict[tuple[str, str], There]:
    """The tables by database and table. Raises SourceRefused, SourceUnavailable."""
    try:
        with connect(info) as connection, connection.cursor() as cursor:
            cursor.execute(_TABLES)
            return {
                (str(database), str(table)): There(
                    None if rows is None else int(rows), None if made_at is None else float(made_at)
                )
                for database, table, rows, made_at in cursor.fetchall()
            }
    except (pymysql.err.MySQLError, OSError) as error:
        raise named(error, info) from error
