"""Every type by both roads: what a SELECT brings is, byte for byte, what the binlog of the same rows gives.

In:  real servers; random tables and rows of all types (tests/unit/binlog/random_tables.py), and edge values of each.
Out: the chunk's record batches against decode's last image of each row.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.decoding import ALL_TIME, current_binlog, segment_of_file
from tests.support.servers import FreshDatabase
from tests.unit.binlog.random_tables import RandomTable
from tidegate.binlog.rows.decode import decode_segment
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo, TlsMode
from tidegate.mysql.sql_text.sql import key_order
from tidegate.mysql.start.baseline import read_schema
from tidegate.position import Position
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.result import TableChanges
from tidegate.snapshot.chunks.spans import Span
from tidegate.snapshot.reading.result.literals import span_condition
from tidegate.snapshot.reading.result.plan import SESSION, make_read_plan
from tidegate.snapshot.reading.result.stream import ResultStream
from tidegate.tables import COMMIT_TS, OP, OP_DELETE, ORDINAL, SEQ

pytestmark = pytest.mark.server


def versions_of(server: Server, database: str) -> list[TableVersion]:
    with server.connect() as connection:
        read = read_schema(connection, "test", lambda kept, _table: kept == database, Position.of("binlog.1", 4))
    return [version for version in read if version.table]


@pytest.fixture
def reading(any_server: Server) -> Iterator[tuple[Any, ConnectionInfo]]:
    info = ConnectionInfo("127.0.0.1", any_server.port, "root", tls=TlsMode.DISABLED)
    any_server.query("SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2")
    with any_server.connect() as opened, opened.cursor() as cursor:
        cursor.execute(SESSION)
        yield opened, info


def read(reading: tuple[Any, ConnectionInfo], version: TableVersion, condition: str = "", tail: str = "") -> pa.Table:
    plan = make_read_plan(version)
    stream = ResultStream(*reading, plan)
    where = f" WHERE {condition}" if condition else ""
    sql = f"SELECT {plan.select_list} FROM `{version.database}`.`{version.table}`{where}{tail}"
    copies = [pa.ipc.read_record_batch(batch.serialize(), batch.schema) for batch in stream.batches(sql)]
    for batch in copies:
        batch.validate(full=True)
    return pa.Table.from_batches(copies, plan.schema)


def last_images(changes: list[TableChanges], key: tuple[str, ...]) -> pa.Table:
    """The rows after all changes, as decode's own columns."""
    rows = pa.concat_tables(pa.Table.from_batches([change.batch]) for change in changes)
    kept: dict[Any, int] = {}
    for number, row in enumerate(rows.select([*key, OP]).to_pylist()):
        kept.pop(tuple(row[name] for name in key), None)
        if row[OP] != OP_DELETE:
            kept[tuple(row[name] for name in key)] = number
    return rows.take(sorted(kept.values())).drop_columns([OP, COMMIT_TS, SEQ, ORDINAL])


def in_order(rows: pa.Table) -> list[str]:
    """Each row as text in which NaN equals itself and both zeros differ."""
    return sorted(map(repr, rows.to_pylist()))


def test_random_rows_of_all_types_are_the_same_by_both_roads(
    any_server: Server, fresh_database: FreshDatabase, reading: tuple[Any, ConnectionInfo]
) -> None:
    database = fresh_database(any_server)
    any_server.query("FLUSH BINARY LOGS")
    path = current_binlog(any_server)
    made = []
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("SET SESSION binlog_row_image = 'FULL'")
        for number in range(24):
            table = RandomTable(f"t{number}", random.Random(f"both roads {number}"), any_server.flavour, 40)
            if "key" not in table.create.lower():
                continue
            made.append(table)
            cursor.execute("SET SESSION sql_mode = ''")
            cursor.execute(table.create)
            for statement in table.statements():
                if "binlog_row_image" not in statement:
                    cursor.execute(statement)
    listed = {version.table: version for version in versions_of(any_server, database)}
    segment = segment_of_file(path.read_bytes())
    names = [(database, table.name) for table in made]
    decoded = decode_segment(segment, {name: [listed[name[1]]] for name in names}, dict.fromkeys(names, ALL_TIME))
    assert decoded.problems == ()
    compared = 0
    for name in names:
        version = listed[name[1]]
        changes = [change for change in decoded.changes if change.table == version.table]
        if not version.key or not changes:
            continue
        logged, chunk = last_images(changes, version.silver_key), read(reading, version)
        assert chunk.schema == logged.schema.remove_metadata()
        assert in_order(chunk) == in_order(logged), version.table
        compared += chunk.num_rows
        walked = walk_by_key(reading, version)
        assert in_order(walked) == in_order(logged), f"{version.table} by key"
    assert compared > 300


def walk_by_key(reading: tuple[Any, ConnectionInfo], version: TableVersion, *, rows: int = 7) -> pa.Table:
    """The table in small pieces, each from where the one before ended; and no row twice."""
    plan = make_read_plan(version)
    order = key_order(version.key_names)
    found, after = [], None
    while True:
        stream = ResultStream(*reading, plan)
        condition = span_condition(version.key_names, Span(after, None)) or "1"
        sql = f"SELECT {plan.select_list} FROM `{version.database}`.`{version.table}` WHERE {condition}"
        copies = [
            pa.ipc.read_record_batch(batch.serialize(), batch.schema)
            for batch in stream.batches(f"{sql} ORDER BY {order} LIMIT {rows}")
        ]
        found += copies
        if sum(batch.num_rows for batch in copies) < rows:
            return pa.Table.from_batches(found, plan.schema)
        assert stream.last_key != after, "the walk goes on"
        after = stream.last_key


@pytest.mark.parametrize("size", [251, 65_536, (1 << 24) - 2, 33_554_430])
def test_rows_of_any_length_come_whole(
    any_server: Server, fresh_database: FreshDatabase, reading: tuple[Any, ConnectionInfo], size: int
) -> None:
    """Of 16 MiB and more in several packets; one that fills a packet is followed by an empty one."""
    database = fresh_database(any_server)
    any_server.query("SET GLOBAL max_allowed_packet = 134217728")
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT, b LONGBLOB)")
        cursor.execute("INSERT INTO t VALUES (1, 'x', NULL), (2, REPEAT('ab', %s DIV 2), 'y'), (3, '', '')", [size])
        for less in range(16, 18):  # one of the longest fills its packets exactly
            cursor.execute("INSERT INTO t VALUES (%s, 'z', REPEAT('q', %s))", [10 + less, size - less])
    (version,) = versions_of(any_server, database)
    rows = read(reading, version, tail=" ORDER BY id").to_pylist()
    assert rows[:3] == [
        {"id": 1, "a": "x", "b": None},
        {"id": 2, "a": "ab" * (size // 2), "b": b"y"},
        {"id": 3, "a": "", "b": b""},
    ]
    assert [(row["a"], len(row["b"])) for row in rows[3:]] == [("z", size - less) for less in range(16, 18)]


def test_dates_times_and_decimals_at_their_edges(
    any_server: Server, fresh_database: FreshDatabase, reading: tuple[Any, ConnectionInfo]
) -> None:
    """What random rows seldom have: zero and impossible dates, ZEROFILL, the longest times and numbers."""
    database = fresh_database(any_server)
    any_server.query("FLUSH BINARY LOGS")
    path = current_binlog(any_server)
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'")
        cursor.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, d DATE, m DATETIME(6), s DATETIME, c TIMESTAMP(3) NULL, t TIME(6),"
            " u TIME, n DECIMAL(65,30), z DECIMAL(12,2) ZEROFILL, w DECIMAL(38,30), y YEAR, i INT ZEROFILL,"
            " e ENUM('', 'a'), x SET('a', 'b'), b BIT(64), f FLOAT, g DOUBLE, v CHAR(9) CHARACTER SET utf16)"
        )
        big, small = "9" * 35 + "." + "9" * 30, "0." + "9" * 30
        cursor.execute(
            "INSERT IGNORE INTO t VALUES (1, '0000-00-00', '0000-00-00', '2024-02-31', 0, '-838:59:59', '838:59:59',"
            f" {big}, 7.5, {small}, 0, 7, 'nothing', '', b'0', 1.1, 1e308, 'a  ')"
        )
        cursor.execute(
            "INSERT IGNORE INTO t VALUES (2, '9999-12-31', '9999-12-31 23:59:59.999999', '1000-01-01',"
            f" '2038-01-19 03:14:07.999', '-00:00:00.000001', '00:00:00', -{big}, 0, -{small}, 1901, 4294967295, '',"
            " 'a,b', b'1', -0.0, -0.0, '')"
        )
        cursor.execute(
            "INSERT IGNORE INTO t VALUES (3, '2024-00-10', '1970-01-01 00:00:00.000001', '0001-01-01',"
            " '1970-01-01 00:00:01', '00:00:00', '-01:00:00', 0, 12345678.9, 0, 2155, 0, 'a', 'b',"
            " 18446744073709551615, 3.4028234e38, 5e-324, 'ä')"
        )
    (version,) = versions_of(any_server, database)
    name = (database, "t")
    decoded = decode_segment(segment_of_file(path.read_bytes()), {name: [version]}, {name: ALL_TIME})
    assert decoded.problems == ()
    logged, chunk = last_images(list(decoded.changes), ("id",)), read(reading, version)
    assert chunk.to_pylist() == logged.to_pylist()
    assert in_order(chunk) == in_order(logged)
