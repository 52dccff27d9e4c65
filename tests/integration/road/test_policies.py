"""Policies on DDL, end to end: what is asked for waits and catches up, what is ignored leaves silver as it was."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import typer.testing
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.cli.main import app as command_line
from tidegate.lake.figures import status
from tidegate.local.server import Server
from tidegate.remedy import Needs
from tidegate.snapshot.progress.automatic import waiting
from tidegate.standing.causes import Cause

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_table_waits_for_its_approval_while_others_go_on_and_then_catches_up(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    policies = "]}\nddl: {drop_column: ask, truncate: ignore, drop_table: ignore}\nmaintain: {schedule: ''"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", exclude: [{policies}")
    road.capture()
    for name in ("a", "b", "kept"):
        mariadb.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT, c CHAR(5))", database=database)
        mariadb.query(f"INSERT INTO {name} VALUES (1, 1, 'one'), (2, 2, 'two')", database=database)
    road.capture()
    road.apply(spark)
    mariadb.query("INSERT INTO a VALUES (3, 3, 'three')", database=database)
    mariadb.query("ALTER TABLE a DROP c", database=database)
    mariadb.query("TRUNCATE b", database=database)
    mariadb.query("INSERT INTO b VALUES (2, 20, 'new')", database=database)
    mariadb.query("DROP TABLE kept", database=database)
    road.capture()
    app = road.apply(spark)
    assert {n: s.cause for n, s in app.states.items() if s.state == "held"} == {f"{database}.a": Cause.DDL_ASKS}
    assert _silver(road, database, "b") == [(1, 1), (2, 20)], "what TRUNCATE removed stays, what came joins it"
    assert _silver(road, database, "kept") == [(1, 1), (2, 2)]
    told = next(table for table in status.table_statuses(road.lake) if table.table == f"{database}.a")
    assert told.ddl == "ALTER TABLE a DROP c"
    assert f"tidegate release road {database}.a" in told.way_out

    mariadb.query("ALTER TABLE a ADD d INT DEFAULT 7", database=database)
    mariadb.query("DELETE FROM a WHERE id = 1", database=database)
    road.capture()
    road.apply(spark)
    assert _silver(road, database, "a") == [(1, 1), (2, 2)], "it waits where it was asked"
    done = typer.testing.CliRunner().invoke(command_line, ["release", str(road.file), f"{database}.a"])
    assert done.exit_code == 0, done.output
    app = road.apply(spark)
    assert app.states[f"{database}.a"].state == "active"
    silver = pl.read_delta(road.lake.uri(tables.silver_path(database, "a"))).sort("id")
    assert "c" not in silver.columns
    assert silver.select("id", "n", "d").rows() == [(2, 2, 7), (3, 3, 7)]


def test_a_gate_isn_t_passed_by_the_words_of_a_remedy_in_the_statement(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """A reason quotes the statement; once its words had the table read anew, and the column went."""
    database = fresh_database(mariadb)
    policies = "]}\nddl: {drop_column: stop}\nmaintain: {schedule: ''"
    road = Road(mariadb, tmp_path, include=f"{database}.*", extra=f", exclude: [{policies}")
    road.capture()
    mariadb.query("CREATE TABLE t (id INT PRIMARY KEY, b INT)", database=database)
    mariadb.query("INSERT INTO t VALUES (1, 10)", database=database)
    road.capture()
    road.apply(spark)
    words = Needs.COLUMNS.words().replace("*/", "")
    mariadb.query(f"ALTER TABLE t DROP b /* {words[:95]} */", database=database)
    mariadb.query("INSERT INTO t VALUES (2)", database=database)
    road.capture()
    app = road.apply(spark)
    name = f"{database}.t"
    assert words[:60] in app.states[name].reason
    assert (app.states[name].cause, app.states[name].lacks_rows) == (Cause.DDL_STOPS, False)
    assert name not in waiting(road.pipeline, road.lake)
    silver = pl.read_delta(road.lake.uri(tables.silver_path(database, "t")))
    assert silver.select("id", "b").rows() == [(1, 10)]


def test_silvers_columns_say_their_type_and_comment_at_the_source_and_follow_both(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    odd = "it''s `x` \\\\ \"q\"; DROP TABLE t -- ü"
    mariadb.query(f"CREATE TABLE t (id INT UNSIGNED PRIMARY KEY COMMENT '{odd}', n DECIMAL(9,2))", database=database)
    road = Road(mariadb, tmp_path, include=f"{database}.*")
    road.capture()
    mariadb.query("INSERT INTO t VALUES (1, 1)", database=database)
    road.capture()
    road.apply(spark)
    text = 'it\'s `x` \\ "q"; DROP TABLE t -- ü'
    assert _comments(road, database) == {"id": ("int(10) unsigned", text), "n": ("decimal(9,2)", "")}
    mariadb.query(
        "ALTER TABLE t MODIFY n DECIMAL(9,2) COMMENT 'money', ADD e ENUM('a') COMMENT 'new'", database=database
    )
    mariadb.query("ALTER TABLE t MODIFY e ENUM('a','b') COMMENT 'newer'", database=database)
    mariadb.query("INSERT INTO t VALUES (2, 2, 'b')", database=database)
    road.capture()
    road.apply(spark)
    assert _comments(road, database) == {
        "id": ("int(10) unsigned", text),
        "n": ("decimal(9,2)", "money"),
        "e": ("enum('a','b')", "newer"),
    }
    assert road.assert_equal() == {"t": 2}


def _comments(road: Road, database: str) -> dict[str, tuple[str, str]]:
    schema = DeltaTable(road.lake.uri(tables.silver_path(database, "t"))).schema()
    fields = [field for field in schema.fields if not field.name.startswith(tables.SYSTEM_PREFIX)]
    said = {field.name: field.metadata for field in fields}
    return {name: (str(of["tidegate.source"]), str(of.get("comment", ""))) for name, of in said.items()}


def _silver(road: Road, database: str, table: str) -> list[tuple[int, int]]:
    rows = pl.read_delta(road.lake.uri(tables.silver_path(database, table))).sort("id")
    return [(int(n), int(m)) for n, m in rows.select("id", "n").rows()]
