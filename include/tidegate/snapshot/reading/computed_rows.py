"""Generated columns of given rows, computed by the server that has their table.

In:  a connection to a MariaDB, a table as it shows it, rows with its stored columns.
Out: the rows with the values computed there. Raises NotComputed where it can't.

The rows go into a temporary table LIKE theirs, with the same expressions, types and collations.
Only this session sees it, and a server with binlog_format=ROW doesn't log it. The stored values
that are read back may differ from the given ones: the caller compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pymysql

from tidegate.errors import UnsupportedValue
from tidegate.limits import ASKED_STATEMENT_BYTES_MAX, ASKED_STATEMENT_ROWS_MAX
from tidegate.mysql.connecting.connection import named
from tidegate.mysql.sql_text.sql import quote_name, text_literal
from tidegate.schema.model.charset_text import TWICE
from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import ZeroDates, canonical
from tidegate.snapshot.reading.by_key import ReadByKey, key_literal, read_where
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.watermark_table import WATERMARK_DATABASE

GRANT: Final = f"GRANT CREATE TEMPORARY TABLES ON {WATERMARK_DATABASE}.*"
_PLACE: Final = (WATERMARK_DATABASE, "asked_rows")
_TABLE: Final = quote_name(*_PLACE)
_DROP: Final = f"DROP TEMPORARY TABLE {_TABLE}"
# A logged row must not be refused by a check, nor get a new AUTO_INCREMENT number.
_INSERT: Final = "SET STATEMENT sql_mode = 'NO_AUTO_VALUE_ON_ZERO', check_constraint_checks = 0 FOR INSERT INTO"
_NOT_GRANTED: Final = frozenset({1044, 1049, 1142})  # 1049: there is no such database
_CLIENT_ERRORS: Final = range(2000, 3000)  # the connection is lost


class NotComputed(Exception):  # noqa: N818 - no fault: a later window has the rows' later changes
    """Why the server doesn't compute them."""


def computed_rows(
    asked: WorkerConnection, version: TableVersion, columns: Sequence[Column], rows: pa.Table
) -> ReadByKey:
    """version: as the server shows it. columns: those to give, the key's among them; the others get
    their defaults. rows: by names of silver. Raises NotComputed, and as ResultStream: then the
    connection must be closed.
    """
    statements = [*_statements(columns, rows)]
    try:
        with asked.raw.cursor() as cursor:
            cursor.execute("SELECT @@binlog_format")
            if _text(cursor.fetchone()[0]) != "ROW":
                raise NotComputed("it would log the question: its binlog_format isn't ROW")
            cursor.execute(f"CREATE TEMPORARY TABLE {_TABLE} LIKE {quote_name(version.database, version.table)}")
            try:
                _drop_unique(cursor)
                for statement in statements:
                    cursor.execute(statement)
            except pymysql.err.MySQLError:
                with suppress(pymysql.err.MySQLError, OSError):  # it goes with the connection at the latest
                    cursor.execute(_DROP)
                raise
            temporary = replace(version, database=_PLACE[0], table=_PLACE[1], indexes=())
            read = read_where(asked, temporary, ("",), ZeroDates.NULL)  # a default may be a zero date
            cursor.execute(_DROP)
    except (pymysql.err.MySQLError, OSError) as error:
        code = error.args[0] if isinstance(error, pymysql.err.MySQLError) and error.args else None
        if not isinstance(code, int) or not code or code in _CLIENT_ERRORS:
            raise named(error, asked.info) from error
        # The server's own words may hold a row's values.
        why = f"it needs {GRANT} and that database" if code in _NOT_GRANTED else f"it answers with error {code}"
        raise NotComputed(why) from error
    name = (version.database, version.table)
    after = asked.versions(version.source, [name]).get(name)
    if after is None or (after.columns, after.key) != (version.columns, version.key):
        raise NotComputed("the table was changed meanwhile")
    return read


def _drop_unique(cursor: Any) -> None:
    """Drop unique indexes: a column that isn't given has its default, the same value in all rows."""
    cursor.execute(f"SHOW INDEX FROM {_TABLE} WHERE Non_unique = 0 AND Seq_in_index = 1 AND Key_name <> 'PRIMARY'")
    for index in cursor.fetchall():
        cursor.execute(f"ALTER TABLE {_TABLE} DROP INDEX {quote_name(_text(index[2]))}")


def _text(cell: Any) -> str:
    return cell.decode() if isinstance(cell, bytes) else str(cell)


def _statements(columns: Sequence[Column], rows: pa.Table) -> Iterator[str]:
    """Each with as many rows as go into one. Raises NotComputed."""
    names = ", ".join(quote_name(column.name) for column in columns)
    taken, size = list[str](), 0
    for row in rows.select([column.silver for column in columns]).to_pylist():
        values = f"({', '.join(map(_literal, columns, row.values()))})"
        if len(values) > ASKED_STATEMENT_BYTES_MAX:
            raise NotComputed("a row of it is too long")
        if taken and (len(taken) == ASKED_STATEMENT_ROWS_MAX or size + len(values) > ASKED_STATEMENT_BYTES_MAX):
            yield f"{_INSERT} {_TABLE} ({names}) VALUES {', '.join(taken)}"
            taken, size = [], 0
        taken.append(values)
        size += len(values)
    yield f"{_INSERT} {_TABLE} ({names}) VALUES {', '.join(taken)}"


def _literal(column: Column, value: Any) -> str:
    """Raises NotComputed where a value of silver may have been several ones at the server."""
    kind = canonical(column).kind
    if value is None:
        return "NULL"
    if column.charset in TWICE or (kind is Kind.ENUM and not value):
        raise NotComputed(f"column {column.name} has text that silver shows alike")
    if kind is Kind.JSON:  # a MariaDB's is text
        return text_literal(value.encode(), "utf8mb4")
    try:
        return key_literal(column, value)
    except UnsupportedValue as error:
        raise NotComputed(f"column {column.name} is {column.type}") from error
