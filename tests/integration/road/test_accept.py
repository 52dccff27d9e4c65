"""A source lost what capture continues, and a person accepts that: the tables that it may have touched wait by name.

In:  a real server whose binlog was purged, or put back to an earlier state; `tidegate accept`, then capture and
     apply as ever.
Out: tables that wait until they are truncated at the source; the others equal to the source.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.kit.road import Road
from tests.support.replica_pair import purge_logs
from tests.support.servers import ROOT
from tidegate.cli.main import app
from tidegate.errors import PositionLost, UsageError
from tidegate.lake.standing import held
from tidegate.local import mariadb as mariadb_package
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


def _accept(road: Road, monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    info = road.info
    monkeypatch.setenv("AIRFLOW_CONN_ROAD_ONE", f"mysql://{info.user}:{info.password}@{info.host}:{info.port}/")
    arguments = ["accept", str(road.file), "one", "--state-dir", str(road.folder / "state"), *options]
    return CliRunner().invoke(app, arguments, catch_exceptions=False, standalone_mode=True).output


def _waiting(road: Road) -> set[str]:
    return {name.rpartition(".")[2] for name in held.held_tables(road.lake)}


def _lose_the_tail(server: Server, road: Road, copy: Path) -> None:
    """The machine comes back as it was; other transactions take the place, and the GTIDs, of what was captured."""
    server.kill()
    shutil.copytree(server.data / "data", copy, symlinks=True)
    server.start()
    server.query("INSERT INTO shop.a VALUES (2)")
    road.capture()
    server.kill()
    shutil.rmtree(server.data / "data")
    shutil.copytree(copy, server.data / "data", symlinks=True)
    server.start()
    server.query("INSERT INTO shop.b VALUES (2)")
    server.query("INSERT INTO shop.b VALUES (3)")


def _purge(server: Server) -> None:
    server.query("INSERT INTO shop.a VALUES (100)")
    purge_logs(server)


def test_what_the_source_lost_is_accepted_and_only_its_tables_wait(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = mariadb_package.MariaDB(tmp_path / "server", mariadb_package.install(ROOT))
    with server:
        server.query("CREATE DATABASE shop")
        road = Road(server, tmp_path, include="shop.*")
        road.capture()
        for table in "abc":
            server.query(f"CREATE TABLE shop.{table} (id INT PRIMARY KEY)")
            server.query(f"INSERT INTO shop.{table} VALUES (1)")
        road.capture()
        road.apply(spark)
        with pytest.raises(UsageError, match="still has its log from where capture stopped"):
            _accept(road, monkeypatch, "--lost")

        _lose_the_tail(server, road, tmp_path / "copy")
        road.apply(spark)  # with what the source lost
        with pytest.raises(PositionLost, match="tidegate accept"):
            road.capture(seconds=30)
        shown = _accept(road, monkeypatch)
        assert "shop.a would wait" in shown
        with pytest.raises(PositionLost):
            road.capture(seconds=30)
        assert "accepted" in _accept(road, monkeypatch, "--lost")
        road.capture()
        road.apply(spark)
        assert _waiting(road) == {"a"}
        assert road.assert_equal() == {"b": 3, "c": 1}
        server.query("TRUNCATE shop.a")
        server.query("INSERT INTO shop.a VALUES (7)")
        road.capture()
        road.apply(spark)
        assert road.assert_equal() == {"a": 1, "b": 3, "c": 1}

        _purge(server)
        with pytest.raises(PositionLost):
            road.capture(seconds=30)
        shown = _accept(road, monkeypatch)
        assert "each table waits until a snapshot has read it again" in shown
        assert "every table of the source would wait" in _accept(road, monkeypatch, "--lost")
        server.query("TRUNCATE shop.a")
        server.query("DROP TABLE shop.b")
        server.query("CREATE TABLE shop.b (id INT PRIMARY KEY)")
        server.query("INSERT INTO shop.b VALUES (9)")
        road.capture()
        road.apply(spark)
        assert _waiting(road) == {"a", "c"}, "what was altered in the gap isn't known of a table that is only emptied"
        assert road.assert_equal() == {"b": 1}
