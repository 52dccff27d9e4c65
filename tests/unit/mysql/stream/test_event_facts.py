"""What capture tells planners of statements and compressed transactions: too many names are safe, too few are not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.binlog.encoding import events as e
from tidegate.binlog import transaction_scan as scan
from tidegate.binlog.format.events import EventType
from tidegate.errors import DDLError
from tidegate.mysql.stream.event_facts import compressed_query_names, payload_names, query_names
from tidegate.schema.ddl.reader import tables_named
from tidegate.tables import EVERY_TABLE, SegmentFlag

EVERY = [EVERY_TABLE]


def ddl_tables(sql: str, database: str, sql_mode: int) -> list[str]:
    return list(tables_named(sql, database, sql_mode=sql_mode, server_version="9.7.4"))


def names_in(*inner: bytes) -> tuple[SegmentFlag, set[str]]:
    return payload_names(np.frombuffer(e.payload(*inner), np.uint8), 4, ddl_tables)


def write(number: int, table: str) -> list[bytes]:
    return [e.table_map(number, table, b"\x03", b""), e.rows(EventType.WRITE_ROWS_V2, number, 1, b"\0" + bytes(4))]


# As servers log them. All but the last group change rows that no rows event shows.
DML = [
    "INSERT INTO t VALUES (1)", "insert into t select 1", "REPLACE t SET a = 1", "UPDATE t SET a = 1", "DELETE FROM t",
    "WITH c AS (SELECT 1) DELETE FROM t", "LOAD DATA INFILE 'x' INTO TABLE t", "CALL p()", "DO f()", "SELECT f()",
    "(SELECT f())", "/* c */ INSERT INTO t VALUES (1)", "/*!50000 INSERT */ INTO t VALUES (1)", "# c\nUPDATE t SET a=1",
    "-- c\nUPDATE t SET a = 1", "SET STATEMENT max_statement_time=1 FOR UPDATE t SET a = 1", "TABLE t", "VALUES ROW(1)",
    "ANALYZE UPDATE t SET a = 1", "ANALYZE FORMAT=JSON DELETE FROM t", "MERGE INTO t", "EXECUTE IMMEDIATE 'x'",
    "FROBNICATE t", "`p`()",
]  # fmt: skip
OTHERS = {
    "ALTER TABLE t ADD COLUMN a INT": ["shop.t"], "TRUNCATE TABLE other.t": ["other.t"], "DROP DATABASE d": EVERY,
    "GRANT SELECT ON *.* TO x": [], "ANALYZE TABLE t": [], "SET PASSWORD FOR x = 'y'": [], "# Dummy event": [],
}  # fmt: skip


@pytest.mark.parametrize("sql", DML)
def test_a_statement_that_may_change_rows_makes_planners_look_for_every_table(sql: str) -> None:
    assert query_names(e.query(sql), 4, ddl_tables) == (scan.Q_STATEMENT, EVERY)
    flags, names = names_in(e.query("BEGIN"), e.query(sql), e.xid())
    assert (flags, names) == (SegmentFlag.HAS_DDL, {EVERY_TABLE})
    assert compressed_query_names(np.frombuffer(e.compressed_query(sql), np.uint8), 4, ddl_tables)[1] == EVERY


@pytest.mark.parametrize("sql", OTHERS)
def test_other_statements_are_named_by_what_the_ddl_reader_knows(sql: str) -> None:
    assert query_names(e.query(sql), 4, ddl_tables) == (scan.Q_STATEMENT, OTHERS[sql])
    packed = np.frombuffer(e.compressed_query(sql), np.uint8)
    assert compressed_query_names(packed, 4, ddl_tables) == (scan.Q_STATEMENT, OTHERS[sql])


def test_a_compressed_transaction_names_the_tables_of_its_rows_once() -> None:
    inner = [part for number in range(50) for part in write(number, f"t{number % 7}")]
    assert names_in(e.query("BEGIN"), *inner, e.xid()) == (SegmentFlag(0), {f"shop.t{n}" for n in range(7)})


def test_a_compressed_transaction_tells_of_ddl_and_of_xa() -> None:
    create = e.query("CREATE TABLE made (id INT) START TRANSACTION")
    assert names_in(create, *write(1, "made"), e.xid()) == (SegmentFlag.HAS_DDL, {"shop.made"})
    prepare = e.event(EventType.XA_PREPARE, b"\0" + bytes(12))
    assert names_in(e.query("XA START X'01'"), *write(1, "t"), e.query("XA END X'01'"), prepare) == (
        SegmentFlag.HAS_PREWRITE,
        {"shop.t"},
    )
    assert names_in(e.query("XA COMMIT X'01'")) == (SegmentFlag.HAS_ANSWER, set()), "its prewrite names its tables"


@pytest.mark.parametrize(
    "odd",
    [
        e.event(77, b"x"),
        e.load_data("LOAD DATA INFILE '' INTO TABLE t"),
        e.event(EventType.TABLE_MAP, bytes(8) + b"\xff"),
    ],
    ids=["unknown", "load data", "a name without an end"],
)
def test_what_is_odd_in_a_compressed_transaction_makes_planners_look_for_every_table(odd: bytes) -> None:
    assert EVERY_TABLE in names_in(e.query("BEGIN"), *write(1, "t"), odd, e.xid())[1]


def test_more_tables_than_there_is_room_for_are_every_table() -> None:
    inner = [part for number in range(600) for part in write(number, f"t{number}")]
    assert EVERY_TABLE in names_in(*inner, e.xid())[1]


@pytest.mark.parametrize("broken", [b"", b"\x02\x01\x07\x00xyz"], ids=["no fields", "an unknown compression"])
def test_a_compressed_transaction_that_cannot_be_read_stops_nothing_here(broken: bytes) -> None:
    event = np.frombuffer(e.event(EventType.TRANSACTION_PAYLOAD, broken), np.uint8)
    assert payload_names(event, 4, ddl_tables) == (SegmentFlag(0), {EVERY_TABLE})
    event = np.frombuffer(e.event(EventType.MARIADB_QUERY_COMPRESSED, broken), np.uint8)
    assert compressed_query_names(event, 4, ddl_tables) == (scan.Q_STATEMENT, EVERY)


def test_ddl_that_is_not_understood_makes_planners_look_for_every_table() -> None:
    def refuse(sql: str, database: str, sql_mode: int) -> list[str]:
        raise DDLError("no")

    assert query_names(e.query("ALTER TABLE t"), 4, refuse)[1] == EVERY


def test_a_statement_with_bytes_that_are_no_text_stops_nothing_here() -> None:
    for sql in (b"INSERT INTO t VALUES (_binary'\xff')", b"ALTER TABLE t ADD e ENUM('\xff')"):
        for collation in (45, 60000):
            said, names = query_names(e.query(sql, collation=collation), 4, ddl_tables)
            assert (said, EVERY_TABLE in names) == (scan.Q_STATEMENT, True)
