"""Statements that change rows behind the log's back: they stop what they may change, and nothing passes unseen."""

from __future__ import annotations

import pytest

from tests.kit.decoding import ALL_TIME, decode_both, segment, version
from tests.unit.binlog.encoding import events as e
from tidegate.binlog.format.events import EventType
from tidegate.binlog.rows.decode import decode_segment
from tidegate.binlog.statements.ddl_events import ddl_statements
from tidegate.binlog.statements.judged import shown
from tidegate.schema.ddl.reader import DdlNotRead
from tidegate.schema.model.columns import Column
from tidegate.schema.replay.history import SchemaHistory
from tidegate.segments.result import CommitSpan, DecodedSegment, Known

ORDERS, ITEMS, PEOPLE = ("shop", "orders"), ("shop", "items"), ("crm", "people")
ALL = {ORDERS, ITEMS, PEOPLE}
SHOP = {ORDERS, ITEMS}
VERSIONS = {name: [version(*name, [Column(1, "id", "int")], ["id"])] for name in ALL}


def decoded(
    sql: str, database: str = "shop", *, windows: dict[tuple[str, str], CommitSpan] | None = None
) -> DecodedSegment:
    events = [e.mariadb_gtid(1), e.query(sql, database), e.xid()]
    given = segment(e.format_description(), b"".join(events))
    return decode_both(given, VERSIONS, dict.fromkeys(ALL, ALL_TIME) if windows is None else windows)


STOPPED = {
    "INSERT INTO orders VALUES (1)": {ORDERS},
    "insert ignore into `orders` set id = 1": {ORDERS},
    "REPLACE orders SELECT * FROM items": {ORDERS},
    "INSERT INTO crm.people SELECT * FROM orders": {PEOPLE},
    "UPDATE orders SET id = 2": {ORDERS},
    "UPDATE LOW_PRIORITY shop . orders AS o SET id = 2": {ORDERS},
    "DELETE FROM orders WHERE name = 'items'": {ORDERS},
    "DELETE FROM orders": {ORDERS},
    "LOAD DATA LOCAL INFILE 'crm.x' IGNORE INTO TABLE orders": {ORDERS},
    "/* c */ UPDATE orders SET id = 2": {ORDERS},
    # which table is changed, the text doesn't say
    "INSERT INTO a_view SELECT * FROM orders": SHOP,
    "INSERT INTO crm.a_view VALUES (1)": ALL,
    "UPDATE orders, items SET orders.id = items.id": SHOP,
    "UPDATE orders JOIN crm.people p ON p.id = orders.id SET p.id = 1": ALL,
    "DELETE orders FROM orders JOIN items": SHOP,
    "DELETE FROM orders USING orders JOIN items": SHOP,
    "INSERT /* c */ INTO orders VALUES (1)": SHOP,
    "WITH c AS (SELECT 1) UPDATE orders SET id = 1": SHOP,
    "CALL p()": SHOP,
    "CALL crm.p()": ALL,
    "SELECT f()": SHOP,
    "SET STATEMENT max_statement_time = 1 FOR UPDATE orders SET id = 1": SHOP,
    "FROBNICATE `everything`": SHOP,
}


@pytest.mark.parametrize("sql", STOPPED)
def test_a_statement_stops_the_table_it_changes_or_all_that_it_may_change(sql: str) -> None:
    found = decoded(sql)
    assert {(p.database, p.table) for p in found.problems} == STOPPED[sql]
    assert {p.error for p in found.problems} == {"UnsupportedValue"}
    assert found.ledger.quarantined_bytes == len(e.query(sql))
    assert all("binlog_format=ROW" in p.message and p.pos > 4 for p in found.problems)


@pytest.mark.parametrize(
    ("sql", "sql_mode"),
    [
        ('INSERT INTO "crm"."people" VALUES (1)', 0x04),
        ("INSERT INTO a_view VALUES ('\\'), ((SELECT 1 FROM crm.people)), ('')", 0x100000),
    ],
    ids=["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"],
)
def test_names_are_seen_whatever_the_session_takes_for_a_string(sql: str, sql_mode: int) -> None:
    events = [e.mariadb_gtid(1), e.query(sql, "elsewhere", sql_mode=sql_mode), e.xid()]
    given = segment(e.format_description(), b"".join(events))
    found = decode_both(given, VERSIONS, dict.fromkeys(ALL, ALL_TIME))
    assert [p.table for p in found.problems] == ["people"]


def test_a_database_is_seen_in_whatever_case_it_was_typed() -> None:
    assert [p.table for p in decoded("CALL CRM.p()", "elsewhere").problems] == ["people"]


IGNORED = [
    ("INSERT INTO mysql.user VALUES (1)", "shop", "table not asked for"),
    ("UPDATE user SET a = 1", "mysql", "table not asked for"),
    ("INSERT INTO elsewhere.t VALUES (1)", "elsewhere", "table not asked for"),
    ("CALL p()", "elsewhere", "table not asked for"),
    ("CREATE TABLE orders (id INT)", "shop", "ddl"),
    ("GRANT ALL ON *.* TO x", "shop", "ddl"),
    ("# Dummy event replacing event type 160", "shop", "ddl"),
]


@pytest.mark.parametrize(("sql", "database", "rule"), IGNORED)
def test_what_changes_no_table_asked_for_is_ignored_by_a_named_rule(sql: str, database: str, rule: str) -> None:
    found = decoded(sql, database)
    assert found.problems == ()
    assert found.ledger.ignored[rule] == len(e.query(sql, database))


def test_a_statement_stops_only_tables_whose_window_it_falls_into() -> None:
    found = decoded("CALL p()", windows={ORDERS: ALL_TIME, ITEMS: CommitSpan(0, 1)})
    assert [p.table for p in found.problems] == ["orders"]
    late = decoded("UPDATE items SET id = 1", windows={ORDERS: ALL_TIME, ITEMS: CommitSpan(0, 1)})
    assert late.problems == ()
    assert "outside the window" in late.ledger.ignored


def test_a_statement_on_a_table_that_waits_already_is_quarantined_with_it() -> None:
    sql = e.query("UPDATE items SET id = 1")
    given = segment(e.format_description(), b"".join([e.mariadb_gtid(1), sql, e.xid()]))
    found = decode_segment(given, VERSIONS, {ORDERS: ALL_TIME}, known=Known(held=[ITEMS]))
    assert found.problems == ()
    assert found.ledger.quarantined_bytes == len(sql)


def test_a_statement_for_which_no_database_can_be_named_stops_every_table_of_the_source_with_an_open_window() -> None:
    found = decoded("INSERT INTO t VALUES (1)", "")
    assert {(p.database, p.table) for p in found.problems} == ALL
    assert "binlog.000042:" in found.problems[0].message
    found = decoded("INSERT INTO t VALUES (1)", "", windows={ORDERS: CommitSpan(0, 1)})
    assert "outside the window" in found.ledger.ignored


def test_what_a_person_said_of_a_place_counts_there_and_nowhere_else() -> None:
    given = segment(e.format_description(), b"".join([e.mariadb_gtid(1), e.query("CALL p()"), e.xid()]))
    windows = dict.fromkeys(ALL, ALL_TIME)
    (first, _) = decode_segment(given, VERSIONS, windows).problems
    place = (first.file, first.pos, first.commit_ts)
    nothing = decode_segment(given, VERSIONS, windows, known=Known(judged={place: ()}))
    assert nothing.problems == ()
    assert nothing.ledger.ignored["judged"] == len(e.query("CALL p()"))
    one = decode_segment(given, VERSIONS, windows, known=Known(judged={place: [PEOPLE]}))
    assert [(p.table, "a person judged" in p.message) for p in one.problems] == [("people", True)]
    elsewhere = {(first.file, first.pos + 1, first.commit_ts): (), (first.file, first.pos, first.commit_ts + 1): ()}
    assert len(decode_segment(given, VERSIONS, windows, known=Known(judged=elsewhere)).problems) == 2


def test_a_name_that_no_table_has_is_stopped_by_its_own_statement_alone() -> None:
    """DROP TABLE IF EXISTS, and a swap in one RENAME, name what schema_history has no version of."""
    nobodys = ("shop", "tmp")
    windows = dict.fromkeys([*ALL, nobodys], ALL_TIME)
    assert {p.table for p in decoded("CALL p()", windows=windows).problems} == {"orders", "items"}
    assert {p.table for p in decoded("UPDATE orders SET id = 2", windows=windows).problems} == {"orders"}
    assert {p.table for p in decoded("UPDATE TMP SET id = 2", windows=windows).problems} == {"orders", "items", "tmp"}
    assert {p.table for p in decoded("UPDATE tmp SET id = 2", windows=windows).problems} == {"tmp"}
    assert {p.table for p in decoded("UPDATE tmp JOIN items SET a = 1", windows=windows).problems} >= {"tmp", "items"}
    lost = e.mariadb_gtid(1) + e.event(EventType.INCIDENT, b"\x01\x00\x00")
    found = decode_both(segment(e.format_description(), lost), VERSIONS, windows)
    assert {p.table for p in found.problems} == {"orders", "items", "people"}


def test_a_statement_on_a_table_that_nobody_asked_for_stops_none_when_it_is_known_to_be_a_table() -> None:
    given = segment(e.format_description(), b"".join([e.mariadb_gtid(1), e.query("UPDATE calc SET a = 1"), e.xid()]))
    windows = {ORDERS: ALL_TIME}
    assert [p.table for p in decode_segment(given, VERSIONS, windows).problems] == ["orders"], "it may be a view"
    since = Known(tables={("shop", "calc"): 1, ORDERS: 1})
    assert decode_segment(given, VERSIONS, windows, known=since).problems == ()
    later = Known(tables={("shop", "calc"): 1 << 62})
    assert decode_segment(given, VERSIONS, windows, known=later).problems, "it may have been a view until then"


def test_load_data_in_statement_format_stops_the_table_its_text_names() -> None:
    blocks = [e.event(17, bytes(4) + b"1\n"), e.event(9, bytes(4) + b"2\n"), e.event(5, b"\x02" + bytes(8))]
    load = e.load_data("LOAD DATA INFILE 'x' REPLACE INTO TABLE `orders` FIELDS TERMINATED BY ','")
    given = segment(e.format_description(), b"".join([e.mariadb_gtid(1), *blocks, load, e.query("COMMIT")]))
    found = decode_both(given, VERSIONS, dict.fromkeys(ALL, ALL_TIME))
    assert [p.table for p in found.problems] == ["orders"]
    assert found.ledger.quarantined_bytes == len(load)
    assert found.ledger.ignored["statement context"] == sum(map(len, blocks))


def test_a_compressed_statement_stops_its_table_too() -> None:
    sql = e.compressed_query("UPDATE orders SET id = 2 WHERE id = 1")
    given = segment(e.format_description(), b"".join([e.mariadb_gtid(1), sql, e.xid()]))
    found = decode_both(given, VERSIONS, dict.fromkeys(ALL, ALL_TIME))
    assert [p.table for p in found.problems] == ["orders"]
    assert found.ledger.quarantined_bytes == len(sql)


BINARY = b"INSERT INTO orders VALUES (_binary'\xff\xfe\\'')"


@pytest.mark.parametrize(
    ("sql", "collation", "stopped"),
    [(BINARY, 45, {ORDERS}), (BINARY, 28, ALL), (BINARY, 60000, ALL)],
    ids=["utf8mb4", "gbk", "a character set nobody knows"],
)
def test_bytes_that_are_no_text_in_a_statement_hide_nothing(sql: bytes, collation: int, stopped: set[object]) -> None:
    events = [e.mariadb_gtid(1), e.query(sql, collation=collation), e.xid()]
    given = segment(e.format_description(), b"".join(events))
    found = decode_both(given, VERSIONS, dict.fromkeys(ALL, ALL_TIME))
    assert {(p.database, p.table) for p in found.problems} == stopped


def test_ddl_with_bytes_that_are_no_text_is_not_guessed_at() -> None:
    create = e.query(b"CREATE TABLE t (a ENUM('\xff'))")
    given = segment(e.format_description(), b"".join([e.mariadb_gtid(1, standalone=True), create]))
    (statement,) = ddl_statements(given)
    with pytest.raises(DdlNotRead, match=r"binlog\.000042:.*no text") as held:
        SchemaHistory("one").replay(statement)
    assert held.value.tables == ("shop.t",)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("UPDATE t2 SET mail = 'anna@example.com' WHERE id = 7", "UPDATE t2 SET mail = ..."),
        ('INSERT INTO `2020` VALUES (4711, "x")', "INSERT INTO `2020` VALUES (..."),
        ("DELETE FROM t WHERE a > b", "DELETE FROM t WHERE a > b"),
        ("UPDATE t SET b = x'00', c = N'\\'", "UPDATE t SET b = x..."),
        ("INSERT INTO t SELECT * FROM " + "u" * 99 + " WHERE a = 1", "INSERT INTO t SELECT * FROM " + "u" * 52 + "..."),
    ],
)
def test_a_statement_is_shown_without_its_values(sql: str, says: str) -> None:
    assert shown(sql) == says
