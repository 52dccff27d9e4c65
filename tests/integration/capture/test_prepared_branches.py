"""Capture begins where no XA branch is prepared: what it wrote would lie below the beginning, its COMMIT above."""

from __future__ import annotations

import pytest

from tests.support.servers import FreshDatabase
from tidegate.errors import SourceUnavailable
from tidegate.local.server import Server
from tidegate.mysql.connection import ConnectionInfo
from tidegate.mysql.start.prepared import wait_for_prepared

pytestmark = pytest.mark.server


def test_a_prepared_branch_is_waited_for_and_named(
    any_server: Server, fresh_database: FreshDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    database = fresh_database(any_server)
    info = ConnectionInfo(any_server.host, any_server.port, any_server.user, any_server.password)
    accounts = any_server.query("SELECT user, host FROM mysql.user WHERE user = %s", (any_server.user,))
    any_server.query("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        for sql in ("XA START 'branch7'", "INSERT INTO t VALUES (1)", "XA END 'branch7'", "XA PREPARE 'branch7'"):
            cursor.execute(sql)
        try:
            if any_server.flavour == "mysql":
                wait_for_prepared(info, "here", wait_seconds=0.3)
                assert "GRANT XA_RECOVER_ADMIN" in caplog.text, "the account may not look, and says so"
                for account in accounts:
                    any_server.query("GRANT XA_RECOVER_ADMIN ON *.* TO %s@%s", account)
            with pytest.raises(SourceUnavailable, match=r"here: 1 XA transactions are prepared.*branch7.*XA ROLLBACK"):
                wait_for_prepared(info, "here", wait_seconds=0.3)
        finally:
            cursor.execute("XA COMMIT 'branch7'")
    wait_for_prepared(info, "here", wait_seconds=0.3)
    if any_server.flavour == "mysql":
        for account in accounts:
            any_server.query("REVOKE XA_RECOVER_ADMIN ON *.* FROM %s@%s", account)
