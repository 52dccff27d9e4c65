"""A chain of foreign keys that act unseen, of which some tables are in silver and others not when apply is killed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.positional import writer as positional_writer
from spark_jobs.window.made import GivenBack
from tests.kit.road import Road
from tests.kit.snapshots import states
from tests.support.servers import FreshDatabase
from tidegate.delta.log import DeltaLog
from tidegate.errors import LakeUnavailable
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]

CHAIN = [
    "CREATE TABLE a (id INT PRIMARY KEY)",
    *(
        f"CREATE TABLE {child} (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES {parent} (id)"
        " ON DELETE CASCADE ON UPDATE CASCADE)"
        for parent, child in ("am", "mg", "gh")
    ),
]
_OTHERS_SECONDS = 1.5  # in which the other tables are committed, unless they wait for this one


class Killed(BaseException):
    """Ends apply like SIGKILL: nobody catches it."""


def _chained(server: Server, database: str, folder: Path, spark: SparkSession, writer: str = "auto") -> Road:
    """Rows 1 to 4 at each link, in silver; then 1 goes from the top, unseen everywhere below, and 2 from m."""
    road = Road(server, folder, include=f"{database}.*", apply=f", writer: {writer}")
    road.capture()
    with server.connect(database) as connection, connection.cursor() as cursor:
        for statement in CHAIN:
            cursor.execute(statement)
        for table in "amgh":
            values = ", ".join(f"({i})" if table == "a" else f"({i}, {i})" for i in range(1, 5))
            cursor.execute(f"INSERT INTO {table} VALUES {values}")
        connection.commit()
        road.capture()
        road.apply(spark)
        cursor.execute("DELETE FROM a WHERE id = 1")
        cursor.execute("DELETE FROM m WHERE id = 2")
        connection.commit()
    road.capture()
    return road


def _failing(monkeypatch: pytest.MonkeyPatch, table: str, error: BaseException, times: int) -> list[str]:
    """A table's commit fails so often, late; the commits of silver that were made, in their order."""
    real, made = DeltaLog.commit, list[str]()

    def commit(log: DeltaLog, read: Any, change: Any, **given: Any) -> Any:
        nonlocal times
        name = str(log.place).rstrip("/").rpartition("/")[2]
        if name == table and change.transactions and times:
            times -= 1
            time.sleep(_OTHERS_SECONDS)
            raise error
        after = real(log, read, change, **given)
        made.append(name)
        return after

    monkeypatch.setattr(DeltaLog, "commit", commit)
    return made


@pytest.mark.parametrize("writer", ["positional", "merge"])
@pytest.mark.parametrize("last", ["m", "g", "h"])
def test_a_chain_that_is_killed_between_its_commits_is_right_after_the_restart(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    last: str,
    writer: str,
) -> None:
    """A table in the middle whose silver has the window's end no longer says which rows went from it."""
    database = fresh_database(mariadb)
    road = _chained(mariadb, database, tmp_path, spark, writer)
    with monkeypatch.context() as patched:
        _failing(patched, last, Killed(), 1)
        with pytest.raises(Killed):
            road.apply(spark)
    app = road.apply(spark)
    assert states(app) == {}, [state.reason for _, state in app.states.items()]
    assert road.assert_equal() == {"a": 3, "m": 2, "g": 2, "h": 2}


def test_a_commit_in_a_chain_that_fails_for_a_moment_holds_nobody(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = fresh_database(mariadb)
    road = _chained(mariadb, database, tmp_path, spark)
    _failing(monkeypatch, "g", LakeUnavailable("the store is busy", where="g", remedy="wait"), 1)
    app = road.apply(spark)
    assert states(app) == {}, [state.reason for _, state in app.states.items()]
    assert road.assert_equal() == {"a": 3, "m": 2, "g": 2, "h": 2}


def test_a_chain_whose_end_catches_up_does_so_together(
    mariadb: Server,
    fresh_database: FreshDatabase,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The positional writer gives g back."""
    database = fresh_database(mariadb)
    road = _chained(mariadb, database, tmp_path, spark, "positional")
    real = positional_writer.check_fit

    def check_fit(snapshot: Any, layout: Any) -> None:
        real(snapshot, layout)
        if str(snapshot.place).rstrip("/").endswith("/g"):
            raise GivenBack("a test says so")

    monkeypatch.setattr(positional_writer, "check_fit", check_fit)
    app = road.apply(spark)
    assert states(app) == {"m": "active", "g": "active"}, [state.reason for _, state in app.states.items()]
    assert road.assert_equal() == {"a": 3, "m": 2, "g": 2, "h": 2}
