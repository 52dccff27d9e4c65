"""Default literals in each character set that a session or an introducer may give them, against
what a real server puts into the rows that are there.

In:  bytes of ALTER TABLE, through the server's own log.
Out: the server's value, or UnsupportedValue: the table then waits for a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pymysql
import pytest

from tests.kit.decoding import current_binlog, segment_of_file
from tests.support.servers import FreshDatabase
from tidegate.binlog.statements.ddl_events import ddl_statements
from tidegate.errors import UnsupportedValue
from tidegate.local.server import Server
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.follow.added_columns import existing_row_value
from tidegate.schema.model.types import canonical
from tidegate.schema.replay.history import SchemaHistory

pytestmark = pytest.mark.server

_SESSIONS: Final = (
    "SET NAMES utf8mb4",
    "SET NAMES latin1",
    "SET NAMES binary",
    "SET NAMES utf8mb4, character_set_connection = ucs2",
)
_TYPES: Final = ("VARCHAR(30) CHARACTER SET utf8mb4", "VARBINARY(30)")
_LITERALS: Final = (
    "_latin1'é'", "_latin1/**/'é'", "_latin1 -- c\n'é'", "_latin1 # c\n'é'", "_latin1/*!40101 'é' */",
    "/*!40101 _latin1 */'é'", "/*!40101 _latin1'é' */", "_latin1'é' 'ü'", "_latin1'a' 'ü'", "_latin1'a' 'b'",
    "_utf8mb4'é' 'ü'", "N'a' 'é'", "N'é'", "_ucs2'ab'", "_ucs2/**/'ab'", "_ucs2'ab' 'cd'", "_ucs2'\\0a'",
    "_utf32'\\0\\0\\0a'", "_ucs2 0x0061", "_utf16le 0x6100", "_binary'é' 'a'", "_binary'é'", "_ascii'a'",
    "'é' /*!40101 'b' */", "'é' 'b'", "_filename'a@0041'", "'ab'", "'é'", "''", "0x6162", "12",
)  # fmt: skip
KNOWN_AT_LEAST: Final = 100


def test_a_default_is_known_as_the_server_takes_it_or_not_at_all(
    any_server: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(any_server)
    any_server.query("FLUSH BINARY LOGS")
    log = current_binlog(any_server)
    made = list(_added(any_server, database))
    history = SchemaHistory("one")
    for statement in ddl_statements(segment_of_file(log.read_bytes())):
        try:
            history.replay(statement)
        except DdlNotRead:
            continue  # it holds its table
    known, wrong = 0, list[tuple[str, object, object]]()
    for table, what in made:
        column = history.versions(database, table)[-1].columns[-1]
        if column.name != "c":
            continue
        try:
            value = pa.scalar(existing_row_value(column), canonical(column).arrow).as_py()
        except UnsupportedValue:
            continue
        known += 1
        truth = any_server.query(f"SELECT c FROM {table}", database=database)[0][0]
        if value != truth:
            wrong.append((what, value, truth))
    assert not wrong
    assert known >= KNOWN_AT_LEAST


def _added(server: Server, database: str) -> Iterator[tuple[str, str]]:
    """Tables of a row with a column c more, and what was said of it."""
    number = 0
    for session in _SESSIONS:
        with server.connect(database) as connection:
            connection.autocommit(True)
            connection.query(f"{session}, sql_mode = ''".encode())
            for kind in _TYPES:
                for literal in _LITERALS:
                    number += 1
                    connection.query(b"CREATE TABLE t%d (id INT)" % number)
                    connection.query(b"INSERT INTO t%d VALUES (1)" % number)
                    try:
                        connection.query(f"ALTER TABLE t{number} ADD c {kind} DEFAULT {literal}".encode())
                    except pymysql.err.MySQLError:
                        continue
                    yield f"t{number}", f"{session}: {kind} {literal}"
