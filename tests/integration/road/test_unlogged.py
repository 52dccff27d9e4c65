"""What the binlog doesn't show, or shows otherwise than it is, end to end: held by name, or followed as meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.servers import ROOT, FreshDatabase
from tidegate.errors import SourceRefused
from tidegate.local import mariadb as mariadb_package
from tidegate.local.server import Server
from tidegate.snapshot.progress.events import SnapshotState
from tidegate.snapshot.progress.requests import told
from tidegate.standing.causes import Cause
from tidegate.tables import State

pytestmark = [pytest.mark.server, pytest.mark.spark]


def _run(server: Server, database: str, *statements: str, fails: str = "") -> None:
    with server.connect(database) as connection, connection.cursor() as cursor:
        for sql in statements:
            if sql == fails:
                with pytest.raises(Exception, match="Duplicate"):
                    cursor.execute(sql)
            else:
                cursor.execute(sql)


_CHILD = "(id INT PRIMARY KEY, p INT, CONSTRAINT {0} FOREIGN KEY (p) REFERENCES {1} (id) ON DELETE CASCADE)"


def test_mariadb_tables_that_change_unseen_wait_and_the_rest_is_followed(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    _run(mariadb, database, "CREATE TABLE p (id INT PRIMARY KEY)", f"CREATE TABLE old {_CHILD.format('fk_old', 'p')}")
    _run(mariadb, database, "CREATE SEQUENCE s0")
    road = Road(mariadb, tmp_path, include=f"{database}.*", apply="}\nddl: {unlogged_cascades: hold")
    road.capture()
    _run(
        mariadb,
        database,
        f"CREATE TABLE c {_CHILD.format('fk_c', 'p')}",
        f"CREATE TABLE g {_CHILD.format('fk_g', 'c')}",
    )
    _run(mariadb, database, "INSERT INTO p VALUES (1), (2)", "INSERT INTO c VALUES (1, 1), (2, 2)")
    _run(mariadb, database, "INSERT INTO g VALUES (1, 1), (2, 2)", "INSERT INTO old VALUES (7, 1)")
    _run(mariadb, database, "DELETE FROM p WHERE id = 1", "REPLACE INTO p VALUES (2)")
    _run(mariadb, database, "CREATE SEQUENCE s", "DO NEXTVAL(s)", "RENAME TABLE s TO s2", "DO NEXTVAL(s2), NEXTVAL(s0)")
    _run(
        mariadb,
        database,
        "CREATE TABLE two (id INT, n INT)",
        "INSERT INTO two VALUES (1, 1), (1, 2)",
        "SET binlog_alter_two_phase = 1",
        "ALTER TABLE two ADD PRIMARY KEY (id)",
        "INSERT INTO two VALUES (1, 3)",
        "ALTER TABLE two ADD k INT DEFAULT 5",
        "INSERT INTO two VALUES (2, 4, 6)",
        "SET explicit_defaults_for_timestamp = OFF",
        "ALTER TABLE two ADD at TIMESTAMP",
        "INSERT INTO two (id, n, at) VALUES (3, 3, '2020-01-02 03:04:05')",
        fails="ALTER TABLE two ADD PRIMARY KEY (id)",
    )
    road.capture()
    app = road.apply(spark)
    held = {name.split(".")[1]: state for name, state in app.states.items() if state.state == "held"}
    assert {name: state.cause for name, state in held.items()} == dict.fromkeys(("old", "c", "g"), Cause.UNLOGGED)
    for name, parent in (("old", "p"), ("c", "p"), ("g", "c")):
        assert f"foreign key fk_{name} to {database}.{parent} (ON DELETE CASCADE)" in held[name].reason
    assert road.assert_equal() == {"p": 1, "two": 5}

    _run(mariadb, database, "ALTER TABLE g DROP FOREIGN KEY fk_g", "TRUNCATE TABLE g", "INSERT INTO g VALUES (9, 2)")
    _run(mariadb, database, "TRUNCATE TABLE old", "DROP TABLE c", "CREATE TABLE c (id INT PRIMARY KEY)")
    _run(mariadb, database, "INSERT INTO c VALUES (1)")
    road.capture()
    app = road.apply(spark)
    assert [name for name, state in app.states.items() if state.state == "held"] == [f"{database}.old"]
    assert road.assert_equal() == {"p": 1, "two": 5, "g": 1, "c": 1}

    _run(mariadb, database, "ALTER TABLE old DROP FOREIGN KEY fk_old")
    road.capture()
    state = road.apply(spark).states[f"{database}.old"]
    assert (state.cause, state.lacks_rows) == (Cause.NEEDS_ROWS, True), "only its rows are wanting now"


def test_names_in_any_case_are_one_table_where_the_server_folds_them(tmp_path: Path, spark: SparkSession) -> None:
    base = mariadb_package.install(ROOT)
    option = "--lower-case-table-names=1"
    with mariadb_package.MariaDB(tmp_path / "server", base, options=(option,)) as server:
        server.query("CREATE DATABASE Shop")
        road = Road(server, tmp_path, include="shop.*")
        with pytest.raises(SourceRefused, match="has capitals"):
            Road(server, tmp_path, include="shop.Ord[a-z]*").capture()
        road = Road(server, tmp_path, include=r"shop.\D*")
        road.capture()
        _run(server, "shop", "CREATE TABLE Orders (id INT PRIMARY KEY)", "INSERT INTO ORDERS VALUES (1), (2)")
        _run(server, "shop", "CREATE TABLE Items (id INT PRIMARY KEY)", "INSERT INTO items VALUES (1)")
        _run(server, "shop", "CREATE TABLE Gone (id INT PRIMARY KEY)", "INSERT INTO gone VALUES (1)")
        road.capture()
        road.apply(spark)
        _run(server, "shop", "TRUNCATE TABLE ORDERS", "ALTER TABLE ITEMS ADD n INT DEFAULT 3", "DROP TABLE gONE")
        _run(server, "shop", "INSERT INTO oRDERS VALUES (3)", "RENAME TABLE iTEMS TO Things")
        road.capture()
        app = road.apply(spark)
        assert not [name for name, state in app.states.items() if state.state == "held"]
        assert road.assert_equal() == {"orders": 1, "things": 1}
        server.options = ()
        server.restart()
        with pytest.raises(SourceRefused, match="lower_case_table_names was on"):
            road.capture()


def test_a_snapshot_of_a_table_that_none_can_mend_fails_at_once(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Its rows aren't read again and again."""
    database = fresh_database(mariadb)
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        "CREATE TABLE under (a INT PRIMARY KEY) ENGINE=MyISAM",
        "CREATE TABLE merged (a INT NOT NULL) ENGINE=MERGE UNION=(under) INSERT_METHOD=LAST",
        "INSERT INTO merged VALUES (1)",
    )
    road.capture()
    name = f"{database}.under"
    assert road.apply(spark).states[name].cause is Cause.UNLOGGED
    app = Reading(road, spark).run(name)
    assert app.states[name].cause is Cause.UNLOGGED
    (progress,) = told(road.lake, "road")
    assert (progress.state, len(progress.refused)) == (SnapshotState.FAILED, 1)
    assert "the MERGE table" in progress.reason


# Columns that MariaDB refuses.
_REFUSED = {
    "twice": "(a INT, a INT)",
    "keyed": "(a INT, KEY (b))",
    "orphan": "(a INT, FOREIGN KEY (a) REFERENCES nowhere (b))",
    "below": "(a INT, b INT AS (a) VIRTUAL, CHECK (b), FOREIGN KEY (a) REFERENCES p (id) ON UPDATE CASCADE)",
    "bare": "",
}


def test_mariadb_drops_a_table_before_it_refuses_to_replace_it(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    creates = [f"CREATE TABLE {name} (a INT)" for name in _REFUSED]
    inserts = [f"INSERT INTO {name} VALUES (1)" for name in _REFUSED]
    road = Road.begun(mariadb, tmp_path, database, "CREATE TABLE p (id INT PRIMARY KEY)", *creates, *inserts)
    road.capture()
    road.apply(spark)
    assert road.assert_equal() == {"p": 0} | dict.fromkeys(_REFUSED, 1)
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        for name, columns in _REFUSED.items():
            with pytest.raises(Exception, match=r"\d"):
                cursor.execute(f"CREATE OR REPLACE TABLE {name} {columns}")
        cursor.execute("SHOW TABLES")
        assert [row[0] for row in cursor.fetchall()] == ["p"]
    road.capture()
    app = road.apply(spark)
    states = {name.split(".")[1]: state.state for name, state in app.states.items()}
    assert states == dict.fromkeys(_REFUSED, State.DROPPED)
    for name in _REFUSED:
        _run(mariadb, database, f"CREATE TABLE {name} (c INT)", f"INSERT INTO {name} VALUES (3), (4)")
    road.capture()
    road.apply(spark)
    assert road.assert_equal() == {"p": 0} | dict.fromkeys(_REFUSED, 2)


_UNIQUE = "(id INT PRIMARY KEY, a INT, b VARCHAR(9) COLLATE utf8mb4_bin, UNIQUE (b))"
# ALTER IGNORE deletes rows that a key or a check refuses, and logs none of them. The last two
# delete nothing.
_IGNORED = {
    "by_key": "ADD UNIQUE (a)",
    "by_collation": "MODIFY b VARCHAR(9) COLLATE utf8mb4_general_ci",
    "by_charset": "CONVERT TO CHARACTER SET latin1 COLLATE latin1_swedish_ci",
    "by_check": "ADD CONSTRAINT few CHECK (a > 1)",
    "by_new_column": "ADD c INT DEFAULT 5 UNIQUE",
    "by_new_check": "ADD c INT DEFAULT 5 CHECK (c > 5)",
    "kept": "ADD c INT DEFAULT 5, RENAME COLUMN a TO a2, ALTER b SET DEFAULT 'x'",
}


def test_rows_that_alter_ignore_deletes_are_read_anew(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(mariadb, tmp_path, database)
    for name, action in _IGNORED.items():
        filled = f"INSERT INTO {name} VALUES (1, 1, 'a'), (2, 1, 'A'), (3, 7, 'b')"
        made, changed = f"CREATE TABLE {name} {_UNIQUE}", f"ALTER IGNORE TABLE {name} {action}"
        _run(mariadb, database, made, filled, changed)
    road.capture()
    states = road.apply(spark).states
    lacking = {name.split(".")[1] for name, state in states.items() if state.lacks_rows}
    assert lacking == _IGNORED.keys() - {"kept"}
    assert road.assert_equal() == {"kept": 3}
    Reading(road, spark).run()
    counts: dict[str, int] = {}
    for name in _IGNORED:
        counts[name] = mariadb.query(f"SELECT COUNT(*) FROM {name}", database=database)[0][0]
    assert road.assert_equal() == counts
    assert {name for name, count in counts.items() if count == 3} == {"by_new_check", "kept"}
