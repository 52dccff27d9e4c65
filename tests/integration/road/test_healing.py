"""DDL that the log lacks (SET sql_log_bin=0), end to end: healed from events, or held until the server is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
import typer.testing
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.cli.main import app as command_line
from tidegate.errors import LakeUnavailable
from tidegate.lake import control
from tidegate.lake.standing import held as held_tables
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


def _unlogged(server: Server, database: str, *statements: str) -> None:
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        for statement in statements:
            cursor.execute(statement)


@contextmanager
def _metadata(server: Server, kind: str) -> Iterator[None]:
    server.query(f"SET GLOBAL binlog_row_metadata = '{kind}'")
    try:
        yield
    finally:
        server.query("SET GLOBAL binlog_row_metadata = 'FULL'")


def _run(road: Road, *words: str) -> typer.testing.Result:
    return typer.testing.CliRunner().invoke(command_line, [*words[:2], str(road.file), *words[2:]])


@pytest.fixture
def connected(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Road, str]:
    """A road that has begun, with the Airflow connection that a command finds its source by; and its database."""
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    found = {"conn_type": "mysql", "host": road.info.host, "port": road.info.port}
    monkeypatch.setenv(
        "AIRFLOW_CONN_ROAD_ONE", json.dumps({**found, "login": road.info.user, "password": road.info.password})
    )
    road.capture()
    return road, database


def test_with_full_metadata_a_hidden_ddl_is_healed_and_its_table_catches_up(
    mariadb: Server, connected: tuple[Road, str], spark: SparkSession
) -> None:
    road, database = connected
    mariadb.query(
        "CREATE TABLE a (id INT PRIMARY KEY, n INT, gone CHAR(5), e ENUM('x'), b INT NOT NULL)", database=database
    )
    mariadb.query("CREATE TABLE k (id INT PRIMARY KEY, other INT NOT NULL)", database=database)
    mariadb.query("INSERT INTO a VALUES (1, 10, 'bye', 'x', 1), (2, 20, NULL, 'x', 2)", database=database)
    mariadb.query("INSERT INTO k VALUES (1, 1), (2, 2)", database=database)
    _unlogged(
        mariadb,
        database,
        "ALTER TABLE a DROP gone, MODIFY n BIGINT, MODIFY e ENUM('x', 'neu') AFTER id",
        "ALTER TABLE k DROP PRIMARY KEY, ADD PRIMARY KEY (other)",
    )
    mariadb.query("INSERT INTO a VALUES (3, 'neu', 4294967296, 3)", database=database)
    mariadb.query("UPDATE k SET id = 5 WHERE other = 2", database=database)
    mariadb.query("INSERT INTO k VALUES (5, 6)", database=database)
    road.capture()
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state == "held"], app.states
    assert road.assert_equal() == {"a": 3, "k": 3}
    kinds = control.read(road.lake, tables.SCHEMA_HISTORY).to_pylist()
    healed = {row["table"]: row for row in kinds if row["kind"] == "healed"}
    assert healed.keys() == {"a", "k"}
    before = next(row for row in kinds if row["table"] == "a" and row["kind"] == "create")
    ids = {cell["name"]: cell["id"] for cell in json.loads(before["columns"])}
    assert all(ids[cell["name"]] == cell["id"] for cell in json.loads(healed["a"]["columns"]))
    told = [json.loads(line) for line in _run(road, "schema", "log", f"{database}.a", "--json").output.splitlines()]
    assert [(line["kind"], line["version"]) for line in told] == [("create", 1), ("healed", 2)]
    assert "- gone" in told[1]["changes"]
    shown = _run(road, "schema", "log", f"{database}.a").output.splitlines()
    assert shown[0].startswith("one, version 1: create, 20")
    assert f"  {before['ddl'].split('(')[0]}" in shown[1], "a statement is readable in a narrow terminal"
    assert "    - gone" in shown
    _a_later_ddl_goes_on_from_the_healed_version(road, spark, database)


def _a_later_ddl_goes_on_from_the_healed_version(road: Road, spark: SparkSession, database: str) -> None:
    road.server.query(f"ALTER TABLE {database}.a ADD note VARCHAR(10) DEFAULT 'none' AFTER id")
    road.server.query(f"INSERT INTO {database}.a (id, b) VALUES (4, 4)")
    road.capture()
    road.apply(spark)
    assert road.assert_equal() == {"a": 4, "k": 3}


def _away(*_: object, **__: object) -> None:
    raise LakeUnavailable("the store is away")


def test_a_hidden_column_holds_its_table_until_the_server_has_been_asked(
    mariadb: Server, connected: tuple[Road, str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    road, database = connected
    for name in ("full", "bare", "fine"):
        mariadb.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, a INT)", database=database)
        mariadb.query(f"INSERT INTO {name} VALUES (1, 1)", database=database)
    hidden = "ADD c VARCHAR(9) NOT NULL DEFAULT 'früher' FIRST"
    _unlogged(mariadb, database, *(f"ALTER TABLE {name} {hidden}" for name in ("full", "bare")))
    mariadb.query("INSERT INTO full VALUES ('new', 2, 2)", database=database)
    with _metadata(mariadb, "MINIMAL"):
        mariadb.query("INSERT INTO bare VALUES ('new', 2, 2)", database=database)
        mariadb.query("INSERT INTO fine VALUES (2, 2)", database=database)
    road.capture()
    app = road.apply(spark)
    held = {name.split(".")[1]: state for name, state in app.states.items() if state.state == "held"}
    assert held.keys() == {"full", "bare"}
    assert "event has 3 columns, schema_history version 1 has 2 (event: c, id, a)" in held["full"].reason
    assert "column c came" in held["full"].reason
    assert "event has 3 columns, schema_history version 1 has 2" in held["bare"].reason
    assert "the event doesn't name its columns" in held["bare"].reason
    done = _run(road, "schema", "refresh", f"{database}.fine")
    assert "is not held" in str(done.exception)
    with monkeypatch.context() as patch:  # it ends between its two commits
        patch.setattr(held_tables, "release", _away)
        assert "the store is away" in str(_run(road, "schema", "refresh", f"{database}.bare").exception)
    for name in ("full", "bare"):
        done = _run(road, "schema", "refresh", f"{database}.{name}")
        assert done.exit_code == 0, (done.output, done.exception)
    road.apply(spark)
    assert road.assert_equal() == {"full": 2, "bare": 2, "fine": 2}
    silver = pl.read_delta(road.lake.uri(tables.silver_path(database, "bare"))).sort("id")
    assert silver["c"].to_list() == ["früher", "new"]


def test_a_refresh_is_refused_when_the_table_changed_again_or_a_rename_is_in_doubt(
    mariadb: Server, connected: tuple[Road, str], spark: SparkSession
) -> None:
    road, database = connected
    mariadb.query("CREATE TABLE t (id INT PRIMARY KEY, a INT)", database=database)
    mariadb.query("CREATE TABLE u (id INT PRIMARY KEY, a INT)", database=database)
    mariadb.query("INSERT INTO t VALUES (1, 1)", database=database)
    mariadb.query("INSERT INTO u VALUES (1, 1)", database=database)
    _unlogged(mariadb, database, "ALTER TABLE t CHANGE a b INT", "ALTER TABLE u ADD c INT")
    mariadb.query("INSERT INTO t VALUES (2, 2)", database=database)
    mariadb.query("INSERT INTO u VALUES (2, 2, 2)", database=database)
    road.capture()
    states = road.apply(spark).states
    assert "that may be a rename" in states[f"{database}.t"].reason
    done = _run(road, "schema", "refresh", f"{database}.t")
    assert "--renamed a=b" in str(done.exception)
    done = _run(road, "schema", "refresh", f"{database}.t", "--renamed", "a=b")
    assert done.exit_code == 0, (done.output, done.exception)
    mariadb.query("ALTER TABLE u ADD d INT", database=database)
    done = _run(road, "schema", "refresh", f"{database}.u")
    assert "ALTER TABLE u ADD d INT); a snapshot reads it anew" in str(done.exception)
    road.capture()
    road.apply(spark)
    assert road.assert_equal() == {"t": 2}
    assert pl.read_delta(road.lake.uri(tables.silver_path(database, "t"))).sort("id")["b"].to_list() == [1, 2]
