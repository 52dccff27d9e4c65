"""A session that writes statements into a ROW binlog: no statement passes unseen, from the socket to its problem."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.decoding import ALL_TIME, version_on
from tests.support.captures import assert_equals_binlog, begin_capture, bronze_segments, capture_until_quiet
from tests.support.servers import FreshDatabase
from tidegate.binlog.rows.decode import decode_segment
from tidegate.limits import SEGMENT_BYTES_MAX
from tidegate.local.server import Server
from tidegate.segments.result import Known
from tidegate.tables import EVERY_TABLE

pytestmark = pytest.mark.server

Write = Callable[[Any, Path], None]


def insert(cursor: Any, _folder: Path) -> None:
    cursor.execute("INSERT INTO t VALUES (1, 'a')")


def insert_more_than_a_segment(cursor: Any, _folder: Path) -> None:
    cursor.execute("INSERT INTO t VALUES (2, %s)", ("x" * (SEGMENT_BYTES_MAX + 1000),))


def through_a_view(cursor: Any, _folder: Path) -> None:
    cursor.execute("INSERT INTO v VALUES (3, 'c')")


def load_data(cursor: Any, folder: Path) -> None:
    (folder / "rows.tsv").write_text("4\td\n5\te\n")
    cursor.execute(f"LOAD DATA LOCAL INFILE '{folder / 'rows.tsv'}' INTO TABLE t")


# what is written -> the tables that must stop
WRITES: list[tuple[Write, set[str]]] = [
    (insert, {"t"}),
    (insert_more_than_a_segment, {"t"}),
    (through_a_view, {"t", "other"}),
    (load_data, {"t"}),
]


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
def test_statements_are_seen_and_stop_the_tables_they_may_change(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, compressed: bool
) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    name = "log_bin_compress" if any_server.flavour == "mariadb" else "binlog_transaction_compression"
    any_server.query("SET GLOBAL local_infile = 1")
    any_server.query(f"SET GLOBAL max_allowed_packet = {4 * SEGMENT_BYTES_MAX}")
    any_server.query(f"SET GLOBAL {name} = {'ON' if compressed else 'OFF'}")
    try:
        begin_capture(any_server, lake)
        with any_server.connect(database, local_infile=True) as connection, connection.cursor() as cursor:
            for table in ("t", "other"):
                cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, a LONGTEXT)")
            cursor.execute("CREATE VIEW v AS SELECT id, a FROM t")
            cursor.execute("SET SESSION binlog_format = STATEMENT")
            for write, tables in WRITES:
                before = len(bronze_segments(lake))
                write(cursor, tmp_path)
                capture_until_quiet(any_server, lake)
                segments = bronze_segments(lake)
                assert stopped(segments[before:], any_server, database) == tables, write.__name__
    finally:
        any_server.query(f"SET GLOBAL {name} = OFF")
    assert_equals_binlog(segments, any_server)


def stopped(segments: list[Any], server: Server, database: str) -> set[str]:
    names = [(database, "t"), (database, "other")]
    versions = {name: [version_on(server, *name)] for name in names}
    found: set[str] = set()
    for segment in segments:
        problems = decode_segment(segment, versions, dict.fromkeys(names, ALL_TIME)).problems
        assert not problems or EVERY_TABLE in segment.tables
        found |= {problem.table for problem in problems}
    return found


def test_what_triggers_functions_and_cascades_change_in_other_databases_stops_too(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """MySQL's events name their databases; of MariaDB's statements nobody knows how far they reach."""
    lake, (own, far, apart) = tmp_path / "lake", [fresh_database(any_server) for _ in range(3)]
    any_server.query("SET GLOBAL log_bin_trust_function_creators = 1")
    begin_capture(any_server, lake)
    names = [(own, "t"), (own, "s"), (own, "p"), (far, "u"), (far, "child"), (apart, "x")]
    try:
        with any_server.connect(own, local_infile=True) as connection, connection.cursor() as cursor:
            for database, table in (*names[:4], names[5]):
                cursor.execute(f"CREATE TABLE {database}.{table} (id INT PRIMARY KEY)")
            cursor.execute(
                f"CREATE TABLE {far}.child (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES {own}.p (id)"
                " ON DELETE CASCADE)"
            )
            cursor.execute(f"CREATE TRIGGER fires AFTER INSERT ON t FOR EACH ROW INSERT INTO {far}.u VALUES (NEW.id)")
            cursor.execute(f"CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO {far}.u VALUES (99); RETURN 1; END")
            cursor.execute("INSERT INTO p VALUES (5)")
            cursor.execute(f"INSERT INTO {far}.child VALUES (5)")
            cursor.execute("SET SESSION binlog_format = STATEMENT")
            reached = {}
            for sql in (
                "INSERT INTO t VALUES (1)",
                "INSERT INTO s VALUES (f())",
                "DELETE FROM p WHERE id = 5",
                "UPDATE s SET id = 7",
            ):
                before = len(bronze_segments(lake))
                cursor.execute(sql)
                capture_until_quiet(any_server, lake)
                segments = bronze_segments(lake)[before:]
                reached[sql] = reached_in(segments, any_server, names)
    finally:
        any_server.query("SET GLOBAL log_bin_trust_function_creators = 0")
        any_server.query(f"DROP TABLE IF EXISTS {far}.child")
    if any_server.flavour == "mariadb":
        assert set(map(frozenset, reached.values())) == {frozenset(names)}
        return
    assert reached.pop("UPDATE s SET id = 7") == {name for name in names if name[0] == own}
    parent = reached.pop("DELETE FROM p WHERE id = 5")
    assert parent >= {(own, "p"), (far, "child")}
    assert set(map(frozenset, reached.values())) == {frozenset(name for name in names if name[0] != apart)}


def reached_in(segments: list[Any], server: Server, names: list[tuple[str, str]]) -> set[tuple[str, str]]:
    versions = {name: [version_on(server, *name)] for name in names}
    problems = [
        problem
        for segment in segments
        for problem in decode_segment(
            segment, versions, dict.fromkeys(names, ALL_TIME), known=Known(effects=True)
        ).problems
    ]
    assert all("ddl.statement_effects: named" in problem.message for problem in problems)
    return {(problem.database, problem.table) for problem in problems}
