"""Columns whose values the server computes: what it computes anew, and what nobody can compute twice."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pymysql
import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.readers import rows_of
from tests.support.servers import FreshDatabase
from tidegate import config
from tidegate.lake.standing.held import last_states, release
from tidegate.local.server import Server
from tidegate.mysql.checking.examination import examine
from tidegate.standing.causes import Cause
from tidegate.tables import WATERMARK_DATABASE, silver_path

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(600)]

_FRACTION = "2024-01-01 00:00:59.987654"


def _held(road: Road, spark: SparkSession) -> dict[str, Cause | None]:
    road.capture()
    app = road.apply(spark)
    return {name.split(".")[1]: state.cause for name, state in app.states.items() if state.state == "held"}


def _told_before(road: Road) -> list[tuple[str, ...]]:
    """Tables of which `tidegate check` says that a column is to be left out."""
    lines = examine(road.pipeline, road.lake, lambda _: road.info).lines
    return [line.tables for line in lines if line.text.endswith("left out (tables.columns)")]


def test_a_column_that_reads_a_default_is_computed_anew_where_the_default_changes(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    made = "(id INT PRIMARY KEY, a INT DEFAULT 3, `default` INT, g INT AS ({}) {})"
    road = Road.begun(
        any_server,
        tmp_path,
        database,
        f"CREATE TABLE v {made.format('DEFAULT(a)', 'VIRTUAL')}",
        f"CREATE TABLE s {made.format('DEFAULT( `A` ) + a', 'STORED')}",
        f"CREATE TABLE m {made.format('DEFAULT(a)', 'VIRTUAL')}",
        f"CREATE TABLE none {made.format('a + `default`', 'STORED')}",
        *(f"INSERT INTO {name} (id, a) VALUES (1, 1)" for name in ("v", "s", "m", "none")),
    )
    assert _held(road, spark) == {}
    for name in ("v", "s", "none"):
        any_server.query(f"ALTER TABLE {name} ALTER a SET DEFAULT 7", database=database)
    any_server.query("ALTER TABLE m MODIFY a INT DEFAULT 9, MODIFY `default` INT DEFAULT 1", database=database)
    road.capture()
    lacking = {name.split(".")[1] for name, state in road.apply(spark).states.items() if state.lacks_rows}
    assert lacking == {"v", "s", "m"}, "a snapshot reads them anew, by itself"
    assert road.assert_equal() == {"none": 1}


def test_a_virtual_column_with_a_prefix_index_has_its_whole_value(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = Road.begun(
        any_server,
        tmp_path,
        database,
        "CREATE TABLE r5 (id INT PRIMARY KEY, a LONGBLOB, n INT, v LONGBLOB AS (a) VIRTUAL, KEY (v(10)))",
        "INSERT INTO r5 (id, a, n) VALUES (1, REPEAT('x', 100000), 1), (2, REPEAT('z', 9000), 1)",
        "UPDATE r5 SET n = 2",
        "UPDATE r5 SET a = REPEAT('y', 90000) WHERE id = 1",
        "DELETE FROM r5 WHERE id = 2",
        "REPLACE INTO r5 (id, a, n) VALUES (1, REPEAT('q', 80000), 1)",
    )
    assert _held(road, spark) == {}
    assert road.assert_equal() == {"r5": 1}


def test_a_virtual_column_that_each_reader_computes_holds_its_table_until_it_goes(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(mariadb)
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        "CREATE TABLE chance (id INT PRIMARY KEY, v DOUBLE AS (RAND()) VIRTUAL)",
        "CREATE TABLE moment (id INT PRIMARY KEY, v DATETIME AS (CURRENT_TIMESTAMP) VIRTUAL)",
        "CREATE TABLE steady (id INT PRIMARY KEY, v VARCHAR(9) AS (CONCAT(id, 'now()')) VIRTUAL)",
        *(f"INSERT INTO {name} (id) VALUES (1)" for name in ("chance", "moment", "steady")),
    )
    assert _held(road, spark) == dict.fromkeys(("chance", "moment"), Cause.UNLOGGED)
    assert road.assert_equal() == {"steady": 1}
    mariadb.query("ALTER TABLE chance DROP v", database=database)
    assert _held(road, spark) == {"chance": Cause.NEEDS_ROWS, "moment": Cause.UNLOGGED}


def test_a_virtual_column_of_each_sessions_time_zone_holds_its_table_until_it_is_left_out(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The log has the writer's hour, a snapshot that of UTC; a stored column has one for everybody."""
    database = fresh_database(any_server)
    column = "(id INT PRIMARY KEY, n INT, at TIMESTAMP NULL, gone INT AS (at IS NULL) VIRTUAL, h INT AS (HOUR(at)) {})"
    road = Road.begun(
        any_server,
        tmp_path,
        database,
        f"CREATE TABLE shown {column.format('VIRTUAL')}",
        f"CREATE TABLE fixed {column.format('STORED')}",
        "SET time_zone = '+09:00'",
        *(f"INSERT INTO {name} (id, at) VALUES (1, '2024-01-01 12:00:00')" for name in ("shown", "fixed")),
    )
    ((told,),) = _told_before(road)
    assert told.startswith(f"{database}.shown (its virtual column h (hour(`at`)) has another value in each session")
    assert _held(road, spark) == {"shown": Cause.UNLOGGED}
    left_out = f"'], columns: [{{match: '{database}.shown', exclude: [h]}}]}}\n"
    road.file.write_text(road.text.replace("']}\n", left_out, 1))
    road.pipeline = config.load(road.file)
    assert not _told_before(road)
    release(road.lake, last_states(road.lake)[f"{database}.shown"])
    assert _held(road, spark) == {}
    assert road.assert_equal() == {"shown": 1, "fixed": 1}
    for name in ("shown", "fixed"):
        any_server.query(f"ALTER TABLE {name} MODIFY n BIGINT", database=database)
    assert _held(road, spark) == {"fixed": Cause.MISMATCH}, "the server computes it once more, in this session"
    assert road.assert_equal() == {"shown": 1}


def test_a_virtual_column_of_each_session_is_taken_as_logged_where_the_file_says_so(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """All writers are in UTC, as a snapshot and verify are."""
    database = fresh_database(any_server)
    column = "AS (DATE(at)) VIRTUAL"
    road = Road.begun(
        any_server,
        tmp_path,
        database,
        f"CREATE TABLE shown (id INT PRIMARY KEY, at TIMESTAMP NULL, day DATE {column})",
        "SET time_zone = '+00:00'",
        "INSERT INTO shown (id, at) VALUES (1, '2024-01-01 23:30:00')",
    )
    assert _held(road, spark) == {"shown": Cause.UNLOGGED}
    road.file.write_text(f"{road.text}ddl: {{session_values: logged}}\n")
    road.pipeline = config.load(road.file)
    assert not _told_before(road)
    release(road.lake, last_states(road.lake)[f"{database}.shown"])
    assert _held(road, spark) == {}
    assert road.assert_equal() == {"shown": 1}


def test_years_that_are_shown_with_two_digits_have_all_four_in_silver(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """A YEAR(2) is a year, of which the server shows a part; what becomes of that part is read anew."""
    database = fresh_database(mariadb)
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    made, rows = "(id INT PRIMARY KEY, y YEAR(2))", "VALUES (1, 1), (2, 99), (3, 0)"
    road = Road.begun(
        mariadb,
        tmp_path,
        database,
        *(f"CREATE TABLE {name} {made}" for name in ("stays", "four", "number")),
        *(f"INSERT INTO {name} {rows}" for name in ("stays", "four", "number")),
        "ALTER TABLE four MODIFY y YEAR",
        "ALTER TABLE number MODIFY y INT",
    )
    assert _held(road, spark) == {"number": Cause.MISMATCH}
    reading = Reading(road, spark)
    app = reading.run()
    assert not [state.reason for state in app.states.values() if state.state == "held"], reading.lines
    found = {}
    for name in ("stays", "four", "number"):
        found[name] = [y for _, y in rows_of(road.lake.uri(silver_path(database, name)), "id, y")]
    assert found == {key: [2001, 1999, 2000] for key in ("stays", "four")} | {"number": [1, 99, 0]}


@pytest.mark.parametrize(("any_server", "key"), [("mariadb", "PRIMARY KEY"), ("mysql9", "")], indirect=["any_server"])
def test_char_columns_that_leave_their_type_padded_are_read_anew(
    key: str, any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = Road.begun(
        any_server,
        tmp_path,
        database,
        *(f"CREATE TABLE {name} (id INT {key}, c CHAR(5), n INT)" for name in ("t", "u", "usual")),
        *(f"INSERT INTO {name} VALUES (1, 'a', 1)" for name in ("t", "u", "usual")),
    )
    assert _held(road, spark) == {}
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("ALTER TABLE usual MODIFY c VARCHAR(9)")
        cursor.execute("SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'")
        cursor.execute("ALTER TABLE t MODIFY c VARCHAR(20)")
        cursor.execute("ALTER TABLE u MODIFY c CHAR(9), MODIFY n BIGINT")
    assert _held(road, spark) == {"t": Cause.NEEDS_ROWS}
    assert road.assert_equal() == {"u": 1, "usual": 1}


def test_a_virtual_column_that_a_session_wrote_padded_is_read_anew(
    mysql9: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The log has 'a    |', and SELECT shows 'a|'. A stored column has its writer's value for everybody."""
    database = fresh_database(mysql9)
    mysql9.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mysql9.user}'@'%'")
    made = "(id INT PRIMARY KEY, c CHAR(5), n INT, v VARCHAR(20) AS (CONCAT({}, '|')) {})"
    behind = "VIRTUAL, w INT AS (CHAR_LENGTH(v)) VIRTUAL"
    shapes = {"shown": "VIRTUAL", "behind": behind, "fixed": "STORED"}
    road = Road.begun(
        mysql9,
        tmp_path,
        database,
        *(f"CREATE TABLE {name} {made.format('c', shape)}" for name, shape in shapes.items()),
        f"CREATE TABLE plain {made.format('n', 'VIRTUAL')}",
        *(f"INSERT INTO {name} (id, c, n) VALUES (1, 'a', 1)" for name in (*shapes, "plain")),
    )
    assert _held(road, spark) == {}
    with mysql9.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'")
        for name in (*shapes, "plain"):
            cursor.execute(f"INSERT INTO {name} (id, c, n) VALUES (2, 'b', 2)")
        connection.commit()
    road.capture()
    lacking = {name.split(".")[1] for name, state in road.apply(spark).states.items() if state.lacks_rows}
    assert lacking == {"shown", "behind"}
    assert road.assert_equal() == {"fixed": 2, "plain": 2}
    app = Reading(road, spark).run()
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    assert road.assert_equal() == dict.fromkeys((*shapes, "plain"), 2)


def test_a_virtual_moment_that_a_session_wrote_cut_is_read_anew(
    mysql9: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The log has 00:00:59, and SELECT rounds to 00:01:00."""
    database = fresh_database(mysql9)
    made = "(id INT PRIMARY KEY, d DATETIME(6), s VARCHAR(40), v {})"
    shapes = {
        "moment": "DATETIME AS (d) VIRTUAL",
        "text": "VARCHAR(40) AS (CAST(s AS DATETIME)) VIRTUAL",
        "fixed": "DATETIME AS (d) STORED",
        "plain": "INT AS (id + 1) VIRTUAL",
    }
    road = Road.begun(
        mysql9,
        tmp_path,
        database,
        *(f"CREATE TABLE {name} {made.format(shape)}" for name, shape in shapes.items()),
        "SET sql_mode = 'TIME_TRUNCATE_FRACTIONAL'",
        *(f"INSERT INTO {name} (id, d, s) VALUES (1, '{_FRACTION}', '{_FRACTION}')" for name in shapes),
    )
    road.capture()
    lacking = {name.split(".")[1] for name, state in road.apply(spark).states.items() if state.lacks_rows}
    assert lacking == {"moment", "text"}
    assert road.assert_equal() == {"fixed": 1, "plain": 1}


@pytest.mark.parametrize(
    "case",
    [
        ("ALLOW_INVALID_DATES", "2024-02-31", "INT AS (DAY(s)) VIRTUAL"),
        ("NO_ZERO_IN_DATE", "2024-02-00", "VARCHAR(20) AS (CONCAT(STR_TO_DATE(s, '%Y-%m-%d'))) VIRTUAL"),
        ("NO_BACKSLASH_ESCAPES", "a_b", r"INT AS (s LIKE 'a\_b') VIRTUAL"),
    ],
)
def test_what_a_mode_takes_for_a_date_or_an_escape_is_read_anew(
    case: tuple[str, str, str], mysql9: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """The log has the writer's value, and SELECT another one. A stored column has the writer's for everybody."""
    (mode, text, made), database = case, fresh_database(mysql9)
    road = Road.begun(
        mysql9,
        tmp_path,
        database,
        f"CREATE TABLE shown (id INT PRIMARY KEY, s VARCHAR(20), v {made})",
        f"CREATE TABLE fixed (id INT PRIMARY KEY, s VARCHAR(20), v {made.replace('VIRTUAL', 'STORED')})",
        f"SET sql_mode = '{mode}'",
        *(f"INSERT INTO {name} (id, s) VALUES (1, '{text}')" for name in ("shown", "fixed")),
    )
    road.capture()
    lacking = {name.split(".")[1] for name, state in road.apply(spark).states.items() if state.lacks_rows}
    assert lacking == {"shown"}
    assert road.assert_equal() == {"fixed": 1}


def test_rows_that_come_through_a_merge_table_hold_what_it_names(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Also where it names them before they are made."""
    database = fresh_database(any_server)
    road = Road.begun(
        any_server,
        tmp_path,
        database,
        "CREATE TABLE m (a INT) ENGINE=MERGE UNION=(t2, t3) INSERT_METHOD=LAST",
        "CREATE TABLE t2 (a INT) ENGINE=MyISAM",
        "CREATE TABLE t3 (a INT) ENGINE=MyISAM",
        "INSERT INTO t2 VALUES (1)",
        "INSERT INTO m VALUES (2), (3)",
    )
    assert _held(road, spark) == dict.fromkeys(("m", "t2", "t3"), Cause.UNLOGGED)


_UNSHOWN = {
    "expression": "MODIFY g INT AS (a + 2) STORED",
    "unstored": "MODIFY g INT AS (a + 2) VIRTUAL",
    "of_base": "MODIFY a DECIMAL(6, 2)",
    "derived": "ADD h INT AS (a * 2) STORED",
    "shown": "ADD h VARCHAR(20) AS (CONCAT('n', a)) VIRTUAL",
    "chance": "ADD h DOUBLE DEFAULT (RAND())",
    "name": "ADD h CHAR(36) DEFAULT (UUID())",
    "formula": "ADD h INT DEFAULT (3 + 4)",
    "moment": "ADD h DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)",
    "instant": "ADD h TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6)",
    "numbers": "ADD h INT NOT NULL AUTO_INCREMENT, ADD UNIQUE (h)",
    "fixed": "ADD h INT DEFAULT 7",
    "later": "ALTER a SET DEFAULT 9",
}


def test_what_a_statement_gives_existing_rows_unseen_is_known_or_read_anew_by_itself(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    """Never silently other than the source: expressions, defaults that each row gets anew, virtual columns."""
    database = fresh_database(any_server)
    any_server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{any_server.user}'@'%'")
    kinds = {"unstored": "VIRTUAL"}
    road = Road.begun(
        any_server,
        tmp_path,
        database,
        *(f"CREATE TABLE {n} (id INT PRIMARY KEY, a INT, g INT AS (a + 1) {kinds.get(n, 'STORED')})" for n in _UNSHOWN),
        *(f"INSERT INTO {name} (id, a) VALUES (1, 1), (2, 2)" for name in _UNSHOWN),
    )
    assert _held(road, spark) == {}
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        for name, statement in _UNSHOWN.items():
            with suppress(pymysql.Error):  # MySQL takes no default of chance into a log
                cursor.execute(f"ALTER TABLE {name} {statement}")
                cursor.execute(f"INSERT INTO {name} (id, a) VALUES (3, 3)")
    road.capture()
    held = {name.split(".")[1]: state for name, state in road.apply(spark).states.items() if state.state == "held"}
    assert {*held} <= {*_UNSHOWN} - {"fixed", "later", "instant"}
    assert all(state.lacks_rows for state in held.values()), "a snapshot reads them anew, by itself"
    known = road.assert_equal()
    app = Reading(road, spark).run()
    assert not [state.reason for state in app.states.values() if state.state == "held"]
    assert road.assert_equal().keys() == {*_UNSHOWN} == {*known, *held}
