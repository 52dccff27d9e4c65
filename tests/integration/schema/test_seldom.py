"""The tables of a source, as `status` lists them: no views, on either server; new ones come in."""

from __future__ import annotations

import pytest

from tests.support.servers import FreshDatabase
from tidegate import limits
from tidegate.local.server import Server
from tidegate.mysql import asked
from tidegate.mysql.asked import Seldom

pytestmark = pytest.mark.server


def test_views_are_no_tables(
    any_server: Server, fresh_database: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "SELDOM_ASKED_SECONDS", 0.0)
    database = fresh_database(any_server)
    seldom = Seldom()
    assert seldom.patience_seconds == limits.TABLES_ANSWER_SECONDS
    with any_server.connect(database) as connection, connection.cursor() as cursor:

        def tables() -> list[str]:
            seldom.read(cursor)
            return sorted(table for of, table in seldom.tables if of == database)

        cursor.execute("CREATE TABLE a (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2")
        cursor.execute("CREATE VIEW v AS SELECT id FROM a")
        assert tables() == ["a"]
        assert tables() == ["a"]
        cursor.execute("CREATE TABLE b (id INT PRIMARY KEY)")
        cursor.execute("CREATE VIEW w AS SELECT id FROM b")
        assert tables() == ["a", "b"]
        cursor.execute("DROP TABLE a")
        assert tables() == ["b"]
