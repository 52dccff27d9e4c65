"""Status variables of a QUERY event: each has its length, and what stands behind an odd one is still found."""

from __future__ import annotations

import struct

import pytest

from tests.kit.decoding import current_binlog
from tests.support.servers import FreshDatabase
from tests.unit.binlog.encoding import events as e
from tidegate.binlog.format.events import EventType
from tidegate.binlog.format.query import Query, parse_query
from tidegate.local.server import Server

CHARSET = b"\x04\x08\x00\x08\x00\x08\x00"  # latin1
# Every variable before or between those that are needed; as both servers write them.
OTHERS = {
    "flags2": b"\x00" + bytes(4),
    "catalog": b"\x06\x03std",
    "catalog with NUL": b"\x02\x03std\0",
    "auto_increment": b"\x03\x02\x00\x01\x00",
    "character_set_collations": b"\x83\x02\x08\x00\x05\x00\x2d\x00\xe0\x00",
    "no character_set_collations": b"\x83\x00",
}
BEHIND = {
    "lc_time_names": b"\x07\x01\x00",
    "charset of the database": b"\x08\x21\x00",
    "tables to update": b"\x09" + bytes(8),
    "bytes written": b"\x0a" + bytes(4),
    "invoker": b"\x0b\x04root\x09localhost",
    "databases": b"\x0c\x02a\0bc\0",
    "too many databases": b"\x0c\xfe",
    "explicit_defaults_for_timestamp": b"\x10\x01",
    "xid of a DDL": b"\x11" + bytes(8),
    "collation of utf8mb4": b"\x12\xff\x00",
    "sql_require_primary_key": b"\x13\x00",
    "default_table_encryption": b"\x14\x00",
    "enable_cascade_triggers": b"\x15\x00",
    "xid of MariaDB": b"\x81" + bytes(8),
    "start of an ALTER": b"\x82\x02",
    "end of an ALTER": b"\x82\x04" + bytes(8),
    "ALTER rolled back": b"\x82\x08" + bytes(8),
}


def parsed(status: bytes, sql: bytes = b"CREATE TABLE \xe9 (a INT)") -> Query:
    head = struct.pack("<IIBHH", 1, 0, 4, 0, len(status))
    return parse_query(e.event(EventType.QUERY, head + status + b"shop\0" + sql), 4)


@pytest.mark.parametrize("name", OTHERS)
def test_what_stands_before_the_character_set_is_stepped_over(name: str) -> None:
    found = parsed(b"\x01\x04\0\0\0\0\0\0\0" + OTHERS[name] + CHARSET + b"\x05\x03UTC" + b"\x80\x15\xcd\x0b")
    assert (found.sql, found.database, found.sql_mode, found.charset) == ("CREATE TABLE é (a INT)", "shop", 4, "latin1")
    assert (found.time_zone, found.timestamp_us % 1_000_000) == ("UTC", 0x0BCD15)


@pytest.mark.parametrize("name", BEHIND)
def test_what_stands_before_the_microseconds_is_stepped_over(name: str) -> None:
    found = parsed(CHARSET + BEHIND[name] + b"\x0d\x01\x00\x00")
    assert (found.charset, found.timestamp_us % 1_000_000) == ("latin1", 1)


def test_an_unknown_variable_ends_the_reading_without_harm() -> None:
    found = parsed(CHARSET + b"\x0d\x01\x00\x00" + b"\x63whatever")
    assert (found.sql, found.charset) == ("CREATE TABLE é (a INT)", "latin1")


def test_the_event_says_what_the_statement_alone_does_not() -> None:
    unfinished = {name: parsed(CHARSET + BEHIND[name]).unfinished for name in BEHIND if "ALTER" in name}
    assert unfinished == {"start of an ALTER": True, "end of an ALTER": False, "ALTER rolled back": True}
    plain = parsed(CHARSET).said
    assert (plain.explicit_timestamps, plain.mariadb_explicit, plain.atomic) == (None, None, False)
    assert plain.database_charset == "latin1"
    assert [parsed(CHARSET + b"\x10" + flag).said.explicit_timestamps for flag in (b"\0", b"\1")] == [False, True]
    flags = (b"\0\0\0\x04" + CHARSET, b"\0\0\0\x05" + CHARSET)
    assert [parsed(b"\x00" + text).said.mariadb_explicit for text in flags] == [False, True]
    assert parsed(CHARSET + BEHIND["xid of a DDL"]).said.atomic
    assert parsed(CHARSET + BEHIND["xid of MariaDB"]).said.atomic


@pytest.mark.server
def test_mariadb_writes_its_collations_before_the_character_set(mariadb: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(mariadb)
    mariadb.query("FLUSH BINARY LOGS")
    path = current_binlog(mariadb)
    connection = mariadb.connect(database)
    connection.set_character_set("latin1")
    with connection.cursor() as cursor:
        cursor.execute("SET character_set_collations = 'utf8mb4=utf8mb4_unicode_ci,latin1=latin1_german1_ci'")
        cursor.execute("CREATE TABLE t (`é` VARCHAR(3) CHARACTER SET utf8mb4)")
    content, at = path.read_bytes(), 4
    statements = []
    while at < len(content):
        size = int.from_bytes(content[at + 9 : at + 13], "little")
        if content[at + 4] == EventType.QUERY:
            assert b"\x83\x02\x08\x00" in content[at : at + size]
            statements.append(parse_query(content[at : at + size], 4))
        at += size
    assert [(s.sql, s.charset) for s in statements] == [
        ("CREATE TABLE t (`é` VARCHAR(3) CHARACTER SET utf8mb4)", "latin1")
    ]
