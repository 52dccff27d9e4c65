"""Compressed binlogs of real servers, from the socket through bronze to rows: what SELECT gives, and nothing less."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.decoding import ALL_TIME, version_on
from tests.support.captures import assert_equals_binlog, begin_capture, bronze_segments, capture_until_quiet
from tests.support.servers import FreshDatabase
from tidegate.binlog.index.event_index import index_pieces
from tidegate.binlog.kernel import index as K  # noqa: N812 - a page of constants
from tidegate.binlog.rows.decode import decode_in_pieces
from tidegate.binlog.transaction_scan import BEGINS
from tidegate.limits import EXPANDED_PIECE_BYTES, SEGMENT_BYTES_MAX
from tidegate.local.server import Server
from tidegate.segments.result import Problem
from tidegate.segments.segment import Segment
from tidegate.tables import COMMIT_TS, EVERY_TABLE, OP, OP_DELETE, ORDINAL

pytestmark = pytest.mark.server

Row = tuple[Any, ...]
MIB = 1 << 20


@pytest.fixture
def compressing(any_server: Server) -> Iterator[Server]:
    """A server that compresses all it can."""
    if any_server.flavour == "mariadb":
        settings = {"log_bin_compress": ("ON", "OFF"), "log_bin_compress_min_len": ("10", "256")}
    else:
        settings = {"binlog_transaction_compression": ("ON", "OFF")}
    for name, (value, _) in settings.items():
        any_server.query(f"SET GLOBAL {name} = {value}")
    yield any_server
    for name, (_, value) in settings.items():
        any_server.query(f"SET GLOBAL {name} = {value}")


def play(server: Server, database: str) -> None:
    """Small transactions of every kind, one that unpacks to four pieces, one that stays larger than a segment."""
    r = random.Random(4)
    with server.connect(database) as connection, connection.cursor() as cursor:
        for table in ("t", "other", "later"):
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB, n INT)")
        cursor.execute("BEGIN")
        for number in range(4 * EXPANDED_PIECE_BYTES // MIB + 2):
            cursor.execute("INSERT INTO t (b, n) VALUES (%s, 1)", [bytes([number]) * MIB])
        cursor.execute("INSERT INTO other (b, n) SELECT LEFT(b, 10), n FROM t")
        cursor.execute("COMMIT")
        cursor.execute("BEGIN")
        for _ in range(SEGMENT_BYTES_MAX // MIB + 2):
            cursor.execute("INSERT INTO later (b, n) VALUES (%s, 2)", [r.randbytes(MIB)])
        cursor.execute("COMMIT")
        cursor.execute("UPDATE t SET n = n + 1, id = id + 1000 WHERE id % 5 = 0")
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO t (n) VALUES (3)")
        cursor.execute("SAVEPOINT a_name_of_some_length")
        cursor.execute("INSERT INTO t (n) VALUES (4)")
        cursor.execute("ROLLBACK TO a_name_of_some_length")
        cursor.execute("DELETE FROM other WHERE id % 3 = 0")
        cursor.execute("COMMIT")
        cursor.execute("ALTER TABLE other COMMENT 'a comment of some length'")
        for number in range(30):
            cursor.execute("INSERT INTO other (b, n) VALUES (%s, %s)", [b"x" * 300, number])


def play_xa(server: Server, database: str) -> None:
    with server.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE xa (id INT PRIMARY KEY)")
        for branch, answer in (("one", "COMMIT"), ("two", "ROLLBACK")):
            cursor.execute(f"XA START 'a branch of some length {branch}'")
            cursor.execute("INSERT INTO xa VALUES (%s)", [len(answer)])
            for step in ("END", "PREPARE", answer):
                cursor.execute(f"XA {step} 'a branch of some length {branch}'")
        cursor.execute("INSERT INTO other (n) VALUES (99)")


def decoded(segments: list[Segment], server: Server, database: str) -> tuple[dict[str, dict[int, Row]], list[Problem]]:
    """(table -> id -> row, problems); ordinals must grow, and each segment must name the tables it changes."""
    names = [(database, table) for table in ("t", "other", "later", "xa")]
    versions = {name: [version_on(server, *name)] for name in names}
    state: dict[str, dict[int, Row]] = {table: {} for _, table in names}
    problems: list[Problem] = []
    for segment in segments:
        last = -1
        for part in decode_in_pieces(segment, versions, dict.fromkeys(names, ALL_TIME), verify_checksums=True):
            problems += part.problems
            placed = [(row[ORDINAL], c.table, row) for c in part.changes for row in c.batch.to_pylist()]
            for ordinal, table, row in sorted(placed, key=lambda one: one[0]):
                assert ordinal > last
                last = ordinal
                assert f"{database}.{table}" in segment.tables
                assert segment.min_commit_ts <= row[COMMIT_TS] <= segment.max_commit_ts
                if row[OP] == OP_DELETE:
                    del state[table][row["id"]]
                else:
                    state[table][row["id"]] = (row["b"], row["n"]) if "n" in row else ()
    return state, problems


def selected(server: Server, database: str, table: str) -> dict[int, Row]:
    return {row[0]: row[1:] for row in server.query(f"SELECT id, b, n FROM {table}", database=database)}


def assert_same_transactions(segments: list[Segment]) -> None:
    """Capture, which doesn't look into transactions, and decode, which does, number them alike."""
    previous = 0
    for segment in segments:
        begun = [int(n) for index in index_pieces(segment) for n in index.events[_begins(index), K.COMMIT_TS]]
        assert begun == sorted(set(begun))
        if begun:
            assert begun[0] > previous
            assert segment.max_commit_ts == begun[-1]
            previous = begun[-1]
        assert segment.resolved_ts >= previous or segment.flags


def _begins(index: Any) -> Any:
    return (index.events[:, K.BITS] & BEGINS) != 0


def test_a_compressed_binlog_gives_the_rows_that_select_gives(
    compressing: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database, lake = fresh_database(compressing), tmp_path / "lake"
    begin_capture(compressing, lake)
    play(compressing, database)
    capture_until_quiet(compressing, lake)
    segments = bronze_segments(lake)
    assert_equals_binlog(segments, compressing)
    assert_same_transactions(segments)
    pieces = [list(index_pieces(segment)) for segment in segments]
    if compressing.flavour == "mysql":
        assert max(len(of_one) for of_one in pieces) > 3
        assert any(len(segment.payload) > SEGMENT_BYTES_MAX for segment in segments)
        assert not any(EVERY_TABLE in segment.tables for segment in segments)
    assert any(index.expanded for of_one in pieces for index in of_one)
    play_xa(compressing, database)
    before = {table: selected(compressing, database, table) for table in ("t", "other", "later")}
    capture_until_quiet(compressing, lake)
    segments = bronze_segments(lake)
    assert_same_transactions(segments)
    state, problems = decoded(segments, compressing, database)
    assert {table: state[table] for table in before} == before
    assert not problems
    assert not state["xa"], "rows of a prepared transaction stand where its COMMIT does (road/test_prewrites.py)"
