"""The cut-overs of gh-ost and pt-online-schema-change, statement by statement at a real server, beside a busy table.

The patterns name only the table itself: its shadow is followed all the same, the tools' leftovers are not.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
import pytest
from pyspark.sql import SparkSession

from spark_jobs.window.application import Application
from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.remedy import Needs

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROWS = 200


def held(app: Application) -> dict[str, str]:
    return {name: state.reason for name, state in app.states.items() if state.state == "held"}


def started(server: Server, database: str, folder: Path) -> Road:
    road = Road(server, folder, include=f"{database}.t")
    road.capture()
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(60) NOT NULL, n BIGINT)")
        cursor.executemany("INSERT INTO t (name, n) VALUES (%s, %s)", [(f"row {i}", i) for i in range(ROWS)])
        connection.commit()
    return road


@contextmanager
def busy(server: Server, database: str, seed: int) -> Iterator[None]:
    """Somebody inserts, updates and deletes all the while, without knowing of the change."""
    stop, errors = threading.Event(), list[BaseException]()

    def work() -> None:
        rng = random.Random(seed)
        with server.connect(database) as connection, connection.cursor() as cursor:
            while not stop.wait(0.01):
                row = rng.randrange(1, ROWS + 200)
                try:
                    cursor.execute(rng.choice((
                        f"UPDATE t SET name = 'changed {rng.random()}' WHERE id = {row}",
                        f"DELETE FROM t WHERE id = {row}",
                        f"INSERT INTO t (name, n) VALUES ('new {rng.random()}', {row})",
                    )))  # fmt: skip
                    connection.commit()
                except pymysql.err.OperationalError:
                    connection.rollback()  # a deadlock with the copy
                except BaseException as error:  # noqa: BLE001 - told to the test
                    errors.append(error)
                    return

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()
    assert not errors, errors[0]


def test_a_pt_online_schema_change_is_followed_through_its_triggers_and_its_rename(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = started(mariadb, database, tmp_path)
    with busy(mariadb, database, 1), mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE _t_new (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(60) NOT NULL, n BIGINT)")
        # A narrower type, of which no table with rows could be followed: the shadow has none yet.
        cursor.execute(
            "ALTER TABLE _t_new MODIFY n VARCHAR(30), ADD COLUMN added INT NOT NULL DEFAULT 7, ADD INDEX (n)"
        )
        cursor.execute(
            "CREATE TRIGGER pt_del AFTER DELETE ON t FOR EACH ROW DELETE IGNORE FROM _t_new WHERE id <=> OLD.id"
        )
        replace = "REPLACE INTO _t_new (id, name, n) VALUES (NEW.id, NEW.name, NEW.n)"
        cursor.execute(
            "CREATE TRIGGER pt_upd AFTER UPDATE ON t FOR EACH ROW BEGIN"
            f" DELETE IGNORE FROM _t_new WHERE !(OLD.id <=> NEW.id) AND id <=> OLD.id; {replace}; END"
        )
        cursor.execute(f"CREATE TRIGGER pt_ins AFTER INSERT ON t FOR EACH ROW {replace}")
        for low in range(1, ROWS + 1, 50):
            _until_done(
                connection,
                "INSERT LOW_PRIORITY IGNORE INTO _t_new (id, name, n) SELECT id, name, n FROM t FORCE INDEX (PRIMARY)"
                f" WHERE id BETWEEN {low} AND {low + 49} LOCK IN SHARE MODE",
            )
            if low == 101:  # the change is half done when this window ends
                road.capture(seconds=3)  # it never is idle
                assert not held(road.apply(spark))
        _until_done(connection, "INSERT IGNORE INTO _t_new (id, name, n) SELECT id, name, n FROM t WHERE id > 200")
        cursor.execute("RENAME TABLE t TO _t_old, _t_new TO t")
        cursor.execute("DROP TABLE IF EXISTS _t_old")
    mariadb.query("UPDATE t SET added = 8 WHERE id < 50", database=database)
    road.capture()
    app = road.apply(spark)
    assert not held(app)
    assert set(road.assert_equal()) == {"t"}
    assert not (tmp_path / "lake" / "silver" / database / "_t_old").exists()


def test_a_gh_ost_cut_over_is_followed_and_its_changelog_is_not(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = started(mariadb, database, tmp_path)
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE _t_ghc (id BIGINT AUTO_INCREMENT PRIMARY KEY, hint VARCHAR(64), value TEXT)")
        cursor.execute("CREATE TABLE _t_gho LIKE t")
        cursor.execute(
            "ALTER /* gh-ost */ TABLE _t_gho DROP COLUMN n, MODIFY name VARCHAR(50), ADD COLUMN at DATETIME(3)"
        )
        cursor.execute("INSERT INTO _t_ghc (hint, value) VALUES ('state', 'GhostTableMigrated')")
        rng = random.Random(2)
        for low in range(1, ROWS + 1, 100):
            for _ in range(10):  # what gh-ost reads from the binlog, it writes with REPLACE and DELETE
                row = rng.randrange(1, ROWS)
                if rng.random() < 0.5:
                    cursor.execute(f"UPDATE t SET name = 'changed {rng.random()}' WHERE id = {row}")
                    cursor.execute(f"REPLACE INTO _t_gho (id, name) SELECT id, name FROM t WHERE id = {row}")
                else:
                    cursor.execute(f"DELETE FROM t WHERE id = {row}")
                    cursor.execute(f"DELETE FROM _t_gho WHERE id = {row}")
            cursor.execute(
                f"INSERT IGNORE INTO _t_gho (id, name) SELECT id, name FROM t WHERE id BETWEEN {low} AND {low + 99}"
            )
            connection.commit()
        cursor.execute("CREATE TABLE _t_del (id INT PRIMARY KEY) COMMENT='ghost-cut-over-sentry'")
        cursor.execute("DROP TABLE IF EXISTS _t_del")
    road.capture()
    app = road.apply(spark)
    assert not held(app)
    before = road.assert_equal()
    assert set(before) == {"t", "_t_gho"}, "verify looks at the shadow too"
    assert before["t"] == before["_t_gho"]
    mariadb.query("RENAME TABLE t TO _t_del, _t_gho TO t", database=database)
    mariadb.query("INSERT INTO t (name) VALUES ('later')", database=database)
    mariadb.query("DROP TABLE _t_ghc, _t_del", database=database)
    road.capture()
    app = road.apply(spark)
    assert not held(app)
    assert road.assert_equal() == {"t": before["t"] + 1}
    assert app.states[f"{database}._t_gho"].state == "dropped"
    assert {f.name for f in (tmp_path / "lake" / "silver" / database).iterdir()} == {"t", "_t_gho"}


def test_a_shadow_from_before_capture_is_not_believed(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    mariadb.query("CREATE TABLE _t_gho (id INT PRIMARY KEY)", database=database)
    mariadb.query("INSERT INTO _t_gho VALUES (1)", database=database)
    road = started(mariadb, database, tmp_path)
    mariadb.query("INSERT INTO _t_gho VALUES (2)", database=database)
    mariadb.query("RENAME TABLE t TO _t_del, _t_gho TO t", database=database)
    road.capture()
    app = road.apply(spark)
    assert list(held(app)) == [f"{database}.t"]
    assert app.states[f"{database}.t"].needs is Needs.COLUMNS


@pytest.mark.parametrize("named", [True, False])
def test_a_gh_ost_revert_is_a_rename_where_the_patterns_name_its_table_and_else_lacks_rows(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, named: bool
) -> None:
    """`gh-ost --revert` makes the table of before equal again, by what was logged since, and brings it back."""
    database = fresh_database(mariadb)
    road = Road(mariadb, tmp_path, include=f"{database}.t" + (f"', '{database}._t_del" if named else ""))
    road.capture()
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        for statement in (
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(60) NOT NULL, n BIGINT)",
            "INSERT INTO t (name, n) VALUES ('a', 1), ('b', 2), ('c', 3)",
            "CREATE TABLE _t_gho LIKE t",
            "ALTER /* gh-ost */ TABLE _t_gho ADD COLUMN more INT NOT NULL DEFAULT 7",
            "INSERT INTO _t_gho (id, name, n) SELECT id, name, n FROM t",
            "RENAME TABLE t TO _t_del, _t_gho TO t",
            "UPDATE t SET name = 'since' WHERE id = 1",
            "DELETE FROM t WHERE id = 2",
            "INSERT INTO t (name, n) VALUES ('d', 4)",
        ):
            cursor.execute(statement)
            connection.commit()
    road.capture()
    assert not held(road.apply(spark))
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        for statement in (
            "REPLACE INTO _t_del (id, name, n) VALUES (1, 'since', 1)",
            "DELETE FROM _t_del WHERE id = 2",
            "INSERT IGNORE INTO _t_del (id, name, n) SELECT id, name, n FROM t",
            "RENAME TABLE t TO _t_rev_del, _t_del TO t",
            "INSERT INTO t (name, n) VALUES ('behind', 5)",
        ):
            cursor.execute(statement)
            connection.commit()
    road.capture()
    app = road.apply(spark)
    standing = app.states.get(f"{database}.t")
    if named:
        assert not held(app)
        assert road.assert_equal()["t"] == 4
    else:
        assert standing is not None
        assert standing.lacks_rows
        assert standing.state == "held"


def _until_done(connection: pymysql.Connection[pymysql.cursors.Cursor], sql: str) -> None:
    """As the tools do: a deadlock is tried again."""
    for _ in range(50):
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
            connection.commit()
        except pymysql.err.OperationalError:
            connection.rollback()
        else:
            return
    raise AssertionError(f"never done: {sql}")
