"""MEMORY tables that a restart emptied: the server logs it at their next use, whatever tidegate has asked before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.own_server import own_server_or_skip
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.tables_there import tables_there

pytestmark = pytest.mark.server


@pytest.mark.parametrize("flavour", ["mariadb", "mysql9"])
def test_asking_how_large_tables_are_leaves_their_emptying_in_the_log(flavour: str, tmp_path: Path) -> None:
    with own_server_or_skip(flavour, tmp_path / "server") as server:
        server.query("CREATE DATABASE d")
        server.query("CREATE TABLE t (a INT) ENGINE=MEMORY", database="d")
        server.query("CREATE TABLE u (a INT)", database="d")
        server.query("INSERT INTO t VALUES (1)", database="d")
        server.kill()
        server.start()
        info = ConnectionInfo(host=server.host, port=server.port, user=server.user, password=server.password)
        rows = {name: there.rows for name, there in tables_there(info, lambda *name: name[0] == "d").items()}
        assert rows == {("d", "t"): None, ("d", "u"): 0}
        server.query("SELECT * FROM t", database="d")
        (newest, *_) = server.query("SHOW BINARY LOGS")[-1]
        logged = str(server.query(f"SHOW BINLOG EVENTS IN '{newest}'"))
        assert "TRUNCATE TABLE `d`.`t`" in logged
