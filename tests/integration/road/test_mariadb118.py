"""MariaDB 11.8 from end to end: what earlier releases haven't is equal in silver, by the log and by a snapshot.

In:  a server of our own from Debian's packages; where they can't be had this test is skipped, or fails in CI.
Out: rows equal to the server's SELECT; nothing waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.kit.snapshots import Reading
from tests.support.own_server import own_server_or_skip
from tidegate.local.server import Server
from tidegate.mysql.checking.examination import SourceVerdict, examine
from tidegate.tables import WATERMARK_DATABASE, State

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

_BY_ROWS = "WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME LIMIT 100 AUTO PARTITIONS 3"
_BY_HOURS = "WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME INTERVAL 1 HOUR AUTO"
_MADE = {
    "far": "(id INT PRIMARY KEY, a TIMESTAMP(6) NULL, b TIMESTAMP NULL)",
    "by_rows": f"(id INT PRIMARY KEY, v INT) {_BY_ROWS}",
    "by_hours": f"(id INT PRIMARY KEY, v INT) {_BY_HOURS}",
    "keyless": "(v INT, d TIMESTAMP(3)) WITH SYSTEM VERSIONING",
    "ids": "(id UUID DEFAULT UUID_v7() PRIMARY KEY, v VECTOR(3) NOT NULL, VECTOR INDEX (v))",
    "texts": "(t VARCHAR(20) COLLATE uca1400_as_cs PRIMARY KEY, v INT)",
}
_FILLED = (
    "INSERT INTO far VALUES (1, '2106-02-07 06:28:15.999999', '2106-02-07 06:28:15')",
    "INSERT INTO far VALUES (2, '2038-01-19 03:14:08.000001', '2038-01-19 03:14:08')",
    "INSERT INTO far VALUES (3, '1970-01-01 00:00:01', '2038-01-19 03:14:07')",
    "INSERT INTO by_rows SELECT seq, seq FROM seq_1_to_300",
    "UPDATE by_rows SET v = v + 1",
    "UPDATE by_rows SET v = v + 1 WHERE id < 200",
    "DELETE FROM by_rows WHERE id % 7 = 0",
    "INSERT INTO by_hours VALUES (1, 1), (2, 2)",
    "SET timestamp = UNIX_TIMESTAMP() + 7300",  # hours later: the server makes partitions
    "UPDATE by_hours SET v = 5",
    "DELETE FROM by_hours WHERE id = 2",
    "SET timestamp = DEFAULT",
    "INSERT INTO keyless VALUES (1, '2050-01-01'), (1, '2050-01-01'), (2, '2000-01-01')",
    "DELETE FROM keyless WHERE v = 1 LIMIT 1",
    "INSERT INTO ids (v) VALUES (VEC_FromText('[1,2,3]')), (VEC_FromText('[-0.5,2,3e10]'))",
    "INSERT INTO texts VALUES ('a', 1), ('A', 2), ('ä', 3)",
)
_CHANGED = (
    "UPDATE far SET b = '2106-02-07 06:28:14' WHERE id = 2",
    "UPDATE by_rows SET v = v + 1",
    "UPDATE by_rows SET v = v + 1",
    "ALTER TABLE by_rows DROP PARTITION p0",  # of history
    "UPDATE by_rows SET v = 0 WHERE id = 1",
    "UPDATE by_hours SET v = 7",
    "DELETE FROM ids LIMIT 1",
    "UPDATE texts SET v = 9 WHERE t = 'A'",
    "DELETE FROM keyless LIMIT 1",
)
_COUNTS = {"far": 3, "by_rows": 258, "by_hours": 1, "keyless": 2, "ids": 2, "texts": 3}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with own_server_or_skip("mariadb118", tmp_path_factory.mktemp("own") / "server") as server:
        yield server


def _run(server: Server, database: str, *statements: str) -> None:
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for statement in statements:
            cursor.execute(statement)
            connection.commit()


def _partitions(server: Server, table: str) -> int:
    sql = "SELECT count(*) FROM information_schema.partitions WHERE table_schema = 'one' AND table_name = '{}'"
    return int(server.query(sql.format(table))[0][0])


@pytest.mark.parametrize("existing", [False, True], ids=["by the log", "by a snapshot"])
def test_what_is_new_in_it_is_equal(server: Server, spark: SparkSession, tmp_path: Path, existing: bool) -> None:
    server.query("CREATE OR REPLACE DATABASE one")
    road = Road(server, tmp_path, include="one.*")
    creates = [f"CREATE TABLE {name} {columns}" for name, columns in _MADE.items()]
    if existing:
        _run(server, "one", *creates, *_FILLED)
        server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{server.user}'@'%'")
        road.capture()
        Reading(road, spark).run()
    else:
        road.capture()
        _run(server, "one", *creates, *_FILLED)
        road.capture()
        road.apply(spark)
    assert road.assert_equal() == _COUNTS
    made = {table: _partitions(server, table) for table in ("by_rows", "by_hours")}
    _run(server, "one", *_CHANGED)
    assert _partitions(server, "by_rows") >= made["by_rows"], "the server made others for the one that went"
    road.capture()
    app = road.apply(spark)
    assert not [name for name, state in app.states.items() if state.state is State.HELD]
    assert road.assert_equal() == {**_COUNTS, "ids": 1, "keyless": 1}


_COMPUTED = "(id INT{key}, a INT, v INT AS (a + 1) VIRTUAL, s INT AS (a + 2) STORED)"
_PERIOD = "s DATE, e DATE, PERIOD FOR p (s, e)"
# A hash of its own for each UNIQUE over a long column, and generated columns: its updates and deletes log neither.
_LEFT_OUT = {
    "hashed": "(id INT PRIMARY KEY, t TEXT UNIQUE, v INT)",
    "bag": "(t TEXT UNIQUE, v INT)",
    "soft": "(id INT PRIMARY KEY, t TEXT UNIQUE, v INT)",
    "portions": f"(t VARCHAR(4096), {_PERIOD}, UNIQUE (t)) ENGINE=MyISAM",
    "overlaps": f"(id INT, t TEXT, {_PERIOD}, PRIMARY KEY (id, p WITHOUT OVERLAPS), UNIQUE (t, s))",
    "whole": _COMPUTED.format(key=" PRIMARY KEY"),
    "part": _COMPUTED.format(key=" PRIMARY KEY"),
    "soft_part": _COMPUTED.format(key=" PRIMARY KEY"),
    "whole_bag": _COMPUTED.format(key=""),
}
_SAID = "column v, which tells the row (it is generated", "an update doesn't tell column v (it is generated"


def _left_out_filled() -> Iterator[str]:
    for table in ("hashed", "soft"):
        yield f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2), (3, NULL, 3), (4, 'd', 4)"
        yield f"UPDATE {table} SET v = 9 WHERE id = 1"
        yield f"UPDATE {table} SET t = 'z' WHERE id = 2"
        yield f"UPDATE {table} SET id = 5 WHERE id = 4"
        yield f"REPLACE INTO {table} VALUES (6, 'a', 6)"
        yield f"DELETE FROM {table} WHERE id = 3"
    yield "INSERT INTO bag VALUES ('a', 1), ('b', 2), (NULL, 3), (NULL, 3)"
    yield "UPDATE bag SET v = 4 WHERE t IS NULL LIMIT 1"
    yield "INSERT INTO bag VALUES ('a', 8) ON DUPLICATE KEY UPDATE v = 9"
    yield "DELETE FROM bag WHERE t = 'b'"
    yield "INSERT INTO portions VALUES ('x', '2023-08-30', '2025-07-09'), ('y', '2021-01-01', '2021-12-31')"
    yield "DELETE FROM portions FOR PORTION OF p FROM '2023-08-29' TO '2025-07-01'"
    yield "INSERT INTO overlaps VALUES (1, 'x', '2000-01-01', '2010-01-01'), (2, 'y', '2000-01-01', '2010-01-01')"
    yield "DELETE FROM overlaps FOR PORTION OF p FROM '2003-01-01' TO '2004-01-01' WHERE id = 1"
    yield "UPDATE overlaps FOR PORTION OF p FROM '2003-01-01' TO '2004-01-01' SET t = 'w' WHERE id = 2"
    for table in ("whole", "part", "soft_part", "whole_bag"):
        yield f"INSERT INTO {table} (id, a) VALUES (1, 1), (2, 2), (3, 3)"
        yield f"DELETE FROM {table} WHERE id = 3"
        yield f"UPDATE {table} SET a = 7 WHERE id = 1"


def test_what_its_updates_leave_out_holds_a_table_only_where_silver_has_it(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    server.query("CREATE OR REPLACE DATABASE one")
    rules = ", columns: [{match: 'one.(soft_)?part', exclude: [v, s]}], soft_delete: ['one.soft.*']"
    road = Road(server, tmp_path, include="one.*", extra=rules)
    road.capture()
    creates = (f"CREATE TABLE {name} {columns}" for name, columns in _LEFT_OUT.items())
    _run(server, "one", *creates, *_left_out_filled())
    road.capture()
    app = road.apply(spark)
    held = {name: state.reason for name, state in app.states.items() if state.state is State.HELD}
    assert held.keys() == {"one.whole", "one.whole_bag"}
    lines = examine(road.pipeline, road.lake, lambda _: road.info).lines
    foretold = [(line.verdict, line.tables) for line in lines if "generated columns" in line.text]
    assert foretold == [(SourceVerdict.NOTE, ("one.whole",)), (SourceVerdict.CAUTION, ("one.whole_bag",))]
    assert all(any(words in reason for words in _SAID) for reason in held.values()), held
    assert "give the table a key; leave the column out" in held["one.whole_bag"]
    assert "give the table a key" not in held["one.whole"]
    equal = road.assert_equal()
    assert equal.keys() == _LEFT_OUT.keys() - {"whole", "whole_bag"}
    assert (equal["portions"], equal["overlaps"], equal["bag"]) == (2, 5, 3)


_REFERS = "FOREIGN KEY (pid) REFERENCES parent (id) ON DELETE CASCADE"
_CHILDREN = {
    "hashed_child": f"(id INT PRIMARY KEY, pid INT, t TEXT UNIQUE, {_REFERS} ON UPDATE CASCADE)",
    "part_child": f"(id INT PRIMARY KEY, pid INT, a INT, v INT AS (a + 1) VIRTUAL, {_REFERS})",
}


def test_children_whose_updates_leave_columns_out_follow_their_parent(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    """But for one that refers to such a column: nobody can tell when it changes."""
    server.query("CREATE DATABASE two")
    rules = ", columns: [{match: two.part_child, exclude: [v]}, {match: two.sums, exclude: [g]}]"
    road = Road(server, tmp_path, include="two.*", extra=rules)
    road.capture()
    creates = (f"CREATE TABLE {name} {columns}" for name, columns in _CHILDREN.items())
    _run(server, "two", "CREATE TABLE parent (id INT PRIMARY KEY)", *creates)
    _run(server, "two", "INSERT INTO parent SELECT seq FROM seq_1_to_9")
    for name in _CHILDREN:
        _run(server, "two", f"INSERT INTO {name} (id, pid) SELECT seq, 1 + seq % 3 FROM seq_1_to_9")
        _run(server, "two", f"UPDATE {name} SET pid = 7 WHERE id = 1", f"DELETE FROM {name} WHERE id = 9")
    _run(server, "two", "UPDATE hashed_child SET t = CONCAT('t', id)", "UPDATE part_child SET a = id")
    _run(server, "two", "DELETE FROM parent WHERE id IN (2, 7)")
    _run(
        server,
        "two",
        "CREATE TABLE sums (id INT PRIMARY KEY, a INT, g INT AS (a + 10) STORED, UNIQUE (g))",
        "CREATE TABLE of_sum (id INT PRIMARY KEY, g INT, FOREIGN KEY (g) REFERENCES sums (g) ON UPDATE CASCADE)",
        "INSERT INTO sums (id, a) VALUES (1, 1), (2, 2)",
        "INSERT INTO of_sum VALUES (1, 11), (2, 12)",
        "UPDATE sums SET a = 5 WHERE id = 1",
    )
    road.capture()
    app = road.apply(spark)
    held = {name: state.reason for name, state in app.states.items() if state.state is State.HELD}
    assert held.keys() == {"two.of_sum"}, held
    assert "it refers to a generated column" in held["two.of_sum"]
    assert road.assert_equal() == {"parent": 7, "hashed_child": 5, "part_child": 5, "sums": 2}
