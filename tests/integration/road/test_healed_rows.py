"""The rows by which the log shows that a DDL is missing: they have the commit_ts of the columns that it gives them.

In:  a real MariaDB; roads without any session: an apply that asks for Spark fails.
Out: silver has these rows, also at a cut right behind them, and after a kill between the columns and the rows.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer.testing

from spark_jobs.apply_steps import merge_into_silver
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.cli.main import app as command_line
from tidegate.local.server import Server
from tidegate.tables import State

pytestmark = [pytest.mark.server, pytest.mark.small_files("apart")]

TABLE = "(id INT PRIMARY KEY, n INT, gone CHAR(5), name VARCHAR(9))"
HIDDEN = {
    "dropped": "DROP gone",
    "wider": "MODIFY n BIGINT",
    "several": "DROP gone, MODIFY n BIGINT FIRST, MODIFY name VARCHAR(90)",
}


class Killed(BaseException):
    """The process ends here."""


def begun(server: Server, folder: Path, database: str) -> Road:
    """Tables of two rows each, in silver."""
    made = [f"CREATE TABLE {name} {TABLE}" for name in HIDDEN]
    filled = [f"INSERT INTO {name} VALUES (1, 10, 'bye', 'a'), (2, 20, NULL, 'b')" for name in HIDDEN]
    road = Road.begun(server, folder, database, *made, *filled)
    applied(road)
    return road


def changed(road: Road, database: str, table: str, *statements: str) -> None:
    """A DDL that the log lacks, and statements that it has. Each table's are the last of a window."""
    with road.server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"ALTER TABLE {table} {HIDDEN[table]}")
        cursor.execute("SET SESSION sql_log_bin = 1")
        for statement in statements:
            cursor.execute(statement)
    road.capture()


def applied(road: Road) -> None:
    road.capture()
    assert not [(name, state.reason) for name, state in road.apply().states.of(State.HELD)]


def test_rows_of_the_transaction_that_shows_a_hidden_ddl_are_in_silver(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    for name in HIDDEN:
        changed(road, database, name, f"INSERT INTO {name} (id, n, name) VALUES (3, 30, 'c')")
        applied(road)
    assert road.assert_equal() == dict.fromkeys(HIDDEN, 3)
    for name in HIDDEN:
        mariadb.query(f"UPDATE {name} SET name = 'later' WHERE id > 1", database=database)
    applied(road)
    assert road.assert_equal() == dict.fromkeys(HIDDEN, 3)


def test_an_apply_that_ends_between_the_columns_and_the_rows_goes_on(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    for name in HIDDEN:
        with monkeypatch.context() as patch:
            changed(road, database, name, f"DELETE FROM {name} WHERE id = 1", f"UPDATE {name} SET n = 21")
            patch.setattr(merge_into_silver, "failpoint", _killed_in_merge)
            with pytest.raises(Killed):
                road.apply()
        applied(road)
    assert road.assert_equal() == dict.fromkeys(HIDDEN, 1)


def _killed_in_merge(name: str) -> None:
    if name == "apply_in_merge":
        raise Killed(name)


def test_rows_at_which_a_table_waited_for_the_servers_answer_are_in_silver(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fresh_database(mariadb)
    road = begun(mariadb, tmp_path, database)
    login = {"login": road.info.user, "password": road.info.password}
    place = {"conn_type": "mysql", "host": road.info.host, "port": road.info.port}
    monkeypatch.setenv("AIRFLOW_CONN_ROAD_ONE", json.dumps({**place, **login}))
    monkeypatch.setitem(HIDDEN, "wider", "CHANGE gone went CHAR(5)")
    changed(road, database, "wider", "INSERT INTO wider VALUES (3, 30, 'x', 'c')")
    assert list(road.apply().states.of(State.HELD))
    words = ["schema", "refresh", str(road.file), f"{database}.wider", "--renamed", "gone=went"]
    done = typer.testing.CliRunner().invoke(command_line, words)
    assert done.exit_code == 0, (done.output, done.exception)
    applied(road)
    assert road.assert_equal()["wider"] == 3
