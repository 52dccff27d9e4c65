"""What a server's defaults do to a SELECT doesn't come to what is read: no rows that aren't committed, and no limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.snapshot.reading.connection import WorkerConnection

pytestmark = pytest.mark.server

_SET = ("TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "sql_select_limit = 2")
_BACK = ("TRANSACTION ISOLATION LEVEL REPEATABLE READ", "sql_select_limit = DEFAULT")


@pytest.fixture
def odd_server(any_server: Server) -> Iterator[Server]:
    for told in _SET:
        any_server.query(f"SET GLOBAL {told}")
    yield any_server
    for told in _BACK:
        any_server.query(f"SET GLOBAL {told}")


def test_all_rows_are_read_that_are_committed_and_no_others(odd_server: Server, fresh_database: FreshDatabase) -> None:
    place = f"{fresh_database(odd_server)}.t"
    odd_server.query(f"CREATE TABLE {place} (id INT PRIMARY KEY)")
    odd_server.query(f"INSERT INTO {place} VALUES (1), (2), (3)")
    info = ConnectionInfo(odd_server.host, odd_server.port, odd_server.user, odd_server.password)
    with odd_server.connect() as other, other.cursor() as cursor, WorkerConnection(info) as asked:
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO {place} VALUES (4)")
        assert asked.ask(f"SELECT id FROM {place}") == [(1,), (2,), (3,)]
        cursor.execute("ROLLBACK")
