"""Tables whose primary key MySQL made itself, on a server that hides these keys from information_schema."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.road.test_renames import held
from tests.kit.road import Road
from tests.support.own_server import own_server, own_server_or_skip
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo, connect

pytestmark = [pytest.mark.server, pytest.mark.spark]

OPTIONS = (
    "--sql-generate-invisible-primary-key=ON",
    "--show-gipk-in-create-table-and-information-schema=OFF",
)


def test_a_hidden_key_is_in_silver(spark: SparkSession, tmp_path: Path) -> None:
    with own_server_or_skip("mysql9", tmp_path / "server", options=OPTIONS) as server:
        _is_in_silver(server, spark, tmp_path)


def test_a_server_that_says_another_version_needs_no_such_variable(tmp_path: Path) -> None:
    """A MariaDB with `version` set, a fork, a proxy."""
    with own_server("mariadb", tmp_path / "server", options=("--version=8.0.36-proxy",)) as server:
        info = ConnectionInfo(host=server.host, port=server.port, user=server.user, password=server.password)
        with connect(info) as connection:
            assert connection.get_server_info() == "8.0.36-proxy"  # type: ignore[no-untyped-call]


def _is_in_silver(server: Server, spark: SparkSession, folder: Path) -> None:
    server.query("CREATE DATABASE shop")
    server.query("CREATE TABLE shop.before (a INT, b VARCHAR(9))")
    road = Road(server, folder, include="shop.*")
    road.capture()
    server.query("CREATE TABLE shop.later (a INT, b VARCHAR(9))")
    for name in ("before", "later"):
        server.query(f"INSERT INTO shop.{name} VALUES (3, 'c'), (3, 'c')")
        server.query(f"UPDATE shop.{name} SET b = 'd' LIMIT 1")
    road.capture()
    assert not held(road.apply(spark))
    assert road.assert_equal() == {"before": 2, "later": 2}
