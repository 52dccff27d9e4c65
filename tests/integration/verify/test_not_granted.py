"""A table that our account may not read is named with its missing grant, and isn't called different."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.verify.report import Outcome
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

pytestmark = pytest.mark.server

TABLES = ("read", "hidden", "written", "half", "keyless", "shard_1", "shard_2")


def test_a_table_without_a_grant_is_not_verified_and_says_which(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """It was called different: the server hides such a table, and shows of another one the granted columns alone."""
    database = fresh_database(any_server)
    road = Road(
        any_server,
        tmp_path,
        include=f"{database}.*",
        extra=f", routes: [{{match: '{database}.shard_.', to: {database}.shards}}]",
    )
    road.capture()
    for name in TABLES:
        any_server.query(f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY, a INT)")
        any_server.query(f"INSERT INTO {database}.{name} VALUES (1, 1)")
    account = f"'v_{database[-12:]}'@'%'"
    any_server.query(f"CREATE USER {account} IDENTIFIED BY 'secret-1'")
    any_server.query(f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {account}")
    for rights, name in (
        ("SELECT", "read"),
        ("SELECT", "shard_1"),
        ("INSERT", "written"),
        ("SELECT (id)", "half"),
        ("SELECT (a)", "keyless"),
    ):
        any_server.query(f"GRANT {rights} ON {database}.{name} TO {account}")
    road.capture()
    road.apply()
    info = replace(road.info, user=account[1:].partition("'")[0], password="secret-1")
    report = verify(road.pipeline, {"one": info}, road.lake.root, {}, VerifyOptions(timeout_seconds=20))
    results = {result.table.partition(".")[2]: result for result in report.tables}
    for name in ("hidden", "written", "half", "keyless", "shard_2"):
        assert results[name].outcome is Outcome.UNVERIFIED, results[name]
        grant = f"; run there: GRANT SELECT ON `{database}`.`{name}` TO {account}"
        assert results[name].reason.endswith(grant)
    for name in ("read", "shard_1"):
        assert results[name].outcome is Outcome.EQUAL, results[name]
    assert not report.passed
