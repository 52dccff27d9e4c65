"""The source's side: which tables it has, their columns and key, their rows by its own SELECT.

In:  a connection to the source.
Out: SourceTable values; rows streamed by an unbuffered cursor, so that a table of any size fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pymysql
from pymysql.cursors import SSCursor

from tidegate.mysql.connection import ConnectionInfo, connect, named
from tidegate.verify.cells import Cell, cell
from tidegate.verify.comparison import Row

_SYSTEM: Final = ("mysql", "information_schema", "performance_schema", "sys")
_POSITION: Final = ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
_KEY_SQL: Final = """
    SELECT s.index_name, s.column_name, s.sub_part, c.is_nullable
    FROM information_schema.statistics s LEFT JOIN information_schema.columns c
      ON c.table_schema = s.table_schema AND c.table_name = s.table_name AND c.column_name = s.column_name
    WHERE s.table_schema = %s AND s.table_name = %s AND s.non_unique = 0 ORDER BY s.index_name, s.seq_in_index
"""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of the source. key: indexes into cells; () when it has none."""

    database: str
    table: str
    cells: tuple[Cell, ...]
    key: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.database}.{self.table}"


class SourceSide:
    """One source while it is verified: UTC, utf8mb4, no sql_mode that changes what SELECT shows."""

    def __init__(self, info: ConnectionInfo) -> None:
        self.info = info
        self._connection = connect(info, read_timeout=600)
        try:
            self.mariadb = "mariadb" in str(self.ask("SELECT VERSION()")[0][0]).lower()
            self.ask("SET SESSION sql_mode = ''")
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def ask(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement. Raises SourceRefused or SourceUnavailable."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql, values)
                return list(cursor.fetchall())
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self.info) from error

    def server_id(self) -> int:
        return int(self.ask("SELECT @@server_id")[0][0])

    def position(self) -> tuple[str, int]:
        """(file, offset) of the end of its binlog, by whichever statement this server has."""
        try:
            with self._connection.cursor() as cursor:
                for sql in _POSITION if not self.mariadb else _POSITION[::-1]:
                    try:
                        cursor.execute(sql)
                    except pymysql.err.ProgrammingError:
                        continue
                    row = cursor.fetchone()
                    return (str(row[0]), int(row[1])) if row else ("", 0)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self.info) from error
        return "", 0

    def tables(self, keeps: Callable[[str, str], bool]) -> list[tuple[str, str]]:
        """(database, table) of every table that is kept."""
        rows = self.ask(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND table_schema NOT IN (%s, %s, %s, %s)"
            " ORDER BY table_schema, table_name",
            _SYSTEM,
        )
        return [(str(d), str(t)) for d, t in rows if keeps(str(d), str(t))]

    def describe(self, database: str, table: str) -> SourceTable:
        """Its columns, each with its way of comparing, and the key that names a row to people."""
        columns = self.ask(
            "SELECT column_name, data_type, column_type FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            (database, table),
        )
        cells = tuple(cell(str(n), str(d), _text(t)) for n, d, t in columns)
        return SourceTable(database, table, cells, self._key(database, table, [c.name for c in cells]))

    def _key(self, database: str, table: str, names: list[str]) -> tuple[int, ...]:
        """PRIMARY, else the first unique index without NULLs and prefixes."""
        indexes: dict[str, list[tuple[Any, ...]]] = {}
        for index, *part in self.ask(_KEY_SQL, (database, table)):
            indexes.setdefault(str(index), []).append(tuple(part))
        for _, parts in sorted(indexes.items(), key=lambda item: item[0] != "PRIMARY"):
            if all(column is not None and prefix is None and nullable == "NO" for column, prefix, nullable in parts):
                return tuple(names.index(str(column)) for column, _, _ in parts)
        return ()

    def rows(self, table: SourceTable) -> Iterator[Row]:
        """All rows, over a connection of its own: an unbuffered cursor blocks the one it is on."""
        name = ".".join("`" + part.replace("`", "``") + "`" for part in (table.database, table.table))
        sql = f"SELECT {', '.join(c.source_sql for c in table.cells)} FROM {name}"
        converts = [(n, c.from_source) for n, c in enumerate(table.cells) if c.from_source is not None]
        connection = connect(self.info, cursorclass=SSCursor, read_timeout=600)
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_mode = ''")
                cursor.execute(sql)
                for found in cursor:
                    row = list(found)
                    for n, convert in converts:
                        if row[n] is not None:
                            row[n] = convert(row[n])
                    yield tuple(row)
        except (pymysql.err.MySQLError, OSError) as error:
            raise named(error, self.info) from error
        finally:
            connection.close()


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
