"""XA branches on the whole road: rows are in silver exactly from their answer on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.lake import control
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.spark]


def prepare(server: Server, database: str, xid: str, *statements: str) -> None:
    """XA START to PREPARE in a session that ends then; xid as SQL has it."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        for sql in (f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}"):
            cursor.execute(sql)


def answer(server: Server, xid: str, *, commit: bool) -> None:
    server.query(f"XA {'COMMIT' if commit else 'ROLLBACK'} {xid}")


@pytest.fixture
def answered(any_server: Server) -> Iterator[None]:
    """No branch of a test that failed is left prepared on a server that others use too."""
    yield
    for form, gtrid_bytes, _, data in any_server.query("XA RECOVER"):
        raw: Any = data if isinstance(data, bytes) else data.encode()
        any_server.query(f"XA ROLLBACK X'{raw[:gtrid_bytes].hex()}',X'{raw[gtrid_bytes:].hex()}',{form}")


def prewrites_in(road: Road) -> list[tuple[str, str]]:
    rows = control.newest(road.lake, tables.PREWRITES, by=tables.PREWRITES.key, order=["answer_ts", "recorded_at"])
    return sorted((row["id"], row["state"]) for row in rows.to_pylist())


@pytest.mark.usefixtures("answered")
def test_rows_of_a_branch_are_there_from_its_commit_on_and_in_no_window_before(
    any_server: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    database = fresh_database(any_server)
    road = Road.begun(
        any_server,
        tmp_path,
        database,
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))",
        "CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(20))",
        "CREATE TABLE nokey (v VARCHAR(20))",
        "INSERT INTO a VALUES (1, 'before'), (2, 'before')",
    )
    prepare(any_server, database, "'one'", "UPDATE a SET v = 'one' WHERE id = 1", "INSERT INTO nokey VALUES ('one')")
    prepare(any_server, database, "X'00ff27','b',7", "INSERT INTO b VALUES (1, 'binary')")
    prepare(any_server, database, "'gone'", "UPDATE a SET v = 'gone' WHERE id = 2")
    any_server.query(f"INSERT INTO {database}.a VALUES (3, 'between')")
    road.capture()
    app = road.apply(spark)
    assert not app.states, "nobody is held"
    assert road.assert_equal() == {"a": 3, "b": 0, "nokey": 0} or road.assert_equal() == {"a": 3}
    assert [state for _, state in prewrites_in(road)] == ["open"] * 3
    answer(any_server, "'gone'", commit=False)
    any_server.query(f"UPDATE {database}.a SET v = 'after gone' WHERE id = 2")
    any_server.query("FLUSH BINARY LOGS")
    answer(any_server, "X'00ff27','b',7", commit=True)
    road.capture()
    app = road.apply(spark)
    assert not app.states
    counts = road.assert_equal()
    assert (counts["a"], counts["b"]) == (3, 1)
    answer(any_server, "'one'", commit=True)
    any_server.query(f"UPDATE {database}.a SET v = concat(v, ' and later') WHERE id = 1")
    road.capture()
    app = road.apply(spark)
    assert not app.states
    assert road.assert_equal() == {"a": 3, "b": 1, "nokey": 1}
    assert sorted(state for _, state in prewrites_in(road)) == ["committed", "committed", "rolled_back"]
    with any_server.connect(database) as connection, connection.cursor() as cursor:  # in one segment, in one phase
        for xid in ("'s1'", "'s2'", "'s3'"):
            cursor.execute(f"XA START {xid}")
            cursor.execute("INSERT INTO nokey VALUES ('x'), ('x')")
            cursor.execute("UPDATE a SET v = %s WHERE id = 1", (xid,))
            cursor.execute(f"XA END {xid}")
            if xid == "'s3'":
                cursor.execute(f"XA COMMIT {xid} ONE PHASE")
                continue
            cursor.execute(f"XA PREPARE {xid}")
            cursor.execute(f"XA {'ROLLBACK' if 's2' in xid else 'COMMIT'} {xid}")
    road.capture()
    app = road.apply(spark)
    assert not app.states
    assert road.assert_equal() == {"a": 3, "b": 1, "nokey": 5}
    assert len(prewrites_in(road)) == 3, "what its own segment answers isn't recorded"
    ledger = control.read(road.lake, tables.LEDGER).to_pylist()
    for row in ledger:
        assert row["decoded_bytes"] + row["ignored_bytes"] + row["quarantined_bytes"] == row["payload_bytes"], row
    assert len({(row["source"], row["seq"], row["cut_ts"]) for row in ledger}) == len(ledger)
