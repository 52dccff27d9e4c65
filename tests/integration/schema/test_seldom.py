"""The tables of a source, as `status` lists them: no views, on either server; new ones come in."""

from __future__ import annotations

import pytest

from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.looking import asked
from tidegate.mysql.looking.asked import Seldom

pytestmark = pytest.mark.server


def test_views_are_no_tables(
    any_server: Server, fresh_database: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "SELDOM_ASKED_SECONDS", 0.0)
    database = fresh_database(any_server)
    seldom, info = (
        Seldom(),
        ConnectionInfo(host=any_server.host, port=any_server.port, user=any_server.user, password=any_server.password),
    )
    with any_server.connect(database) as connection, connection.cursor() as cursor:

        def tables() -> list[str]:
            seldom.read_tables(info, lambda of, _: of == database)
            return [table for _, table in seldom.tables or ()]

        cursor.execute("CREATE TABLE a (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2")
        cursor.execute("CREATE VIEW v AS SELECT id FROM a")
        assert tables() == ["a"]
        assert tables() == ["a"]
        cursor.execute("CREATE TABLE b (id INT PRIMARY KEY)")
        cursor.execute("CREATE VIEW w AS SELECT id FROM b")
        assert tables() == ["a", "b"]
        cursor.execute("DROP TABLE a")
        assert tables() == ["b"]
        cursor.execute("CREATE TABLE c (id INT PRIMARY KEY)")
        monkeypatch.setattr(asked, "SHOWN_TABLES_MAX", 1)
        seldom.read_tables(info, lambda of, _: of == database)
        assert seldom.tables is None
