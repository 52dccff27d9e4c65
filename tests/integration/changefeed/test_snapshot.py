"""Rows from before a changefeed: its TiDB is read at timestamps, while it is written to and files come.

A real TiDB, whose transactions are written to the path as TiCDC would, each with the commit_ts that TiDB says it had.
Silver is what that TiDB shows of the cut.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.tidb.pumps import SAFE_POINT, collected_upto, under_way
from tests.kit.tidb.server import MISSING, PROGRAM, Tidb
from tests.support.changefeed_world import ChangefeedWorld
from tests.support.changefeed_writer import PLAIN, Cell, Change, Changefeed, plain, text
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.snapshot.work import SnapshotWork, is_read
from tidegate.tables import State

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not PROGRAM.exists(), reason=MISSING),
]

ROWS = 300
SIZED = {**PLAIN, "size": {"ColumnType": "ENUM"}}
GROWN = {**PLAIN, "n": {"ColumnType": "INT"}}


@pytest.fixture
def tidb(tmp_path: Path) -> Iterator[Tidb]:
    """With tables that have rows; the changefeed finds them."""
    server = Tidb(tmp_path / "tidb", ())
    collected_upto(server, SAFE_POINT)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        rows = ", ".join(f"({number}, 'from before')" for number in range(ROWS))
        for table in ("Busy", "grown", "quiet"):
            cursor.execute(f"CREATE TABLE shop.{table} (id BIGINT NOT NULL PRIMARY KEY, word VARCHAR(40))")
            cursor.execute(f"INSERT INTO shop.{table} VALUES {rows}")
        cursor.execute("CREATE TABLE shop.sized (id BIGINT PRIMARY KEY, word VARCHAR(40), size ENUM('small', 'large'))")
        cursor.execute("INSERT INTO shop.sized VALUES (1, 'x', 'large'), (2, 'y', NULL)")
        cursor.execute("CREATE TABLE shop.loose (id BIGINT, word VARCHAR(40))")
        cursor.execute("INSERT INTO shop.loose VALUES (1, 'a'), (1, 'a')")
    yield server
    server.stop()


class Writer:
    """Transactions at TiDB, and their lines in the files."""

    def __init__(self, tidb: Tidb, feed: Changefeed) -> None:
        self._tidb, self._feed = tidb, feed
        self._cursor = tidb.connect().cursor()
        self._number = self.written_ts = 0
        for name, columns in (("Busy", PLAIN), ("grown", PLAIN), ("sized", SIZED), ("loose", PLAIN)):
            feed.found(f"shop.{name}", self._tso(), columns)

    def write(self) -> None:
        """One transaction to each table: an INSERT, an UPDATE of a row from before and a DELETE of one."""
        self._number += 1
        new, old, gone = 1000 + self._number, self._number % 40, 100 + self._number
        for table in ("Busy", "grown"):
            more = {"n": Cell("5", "5")} if "n" in self._feed.tables["shop", table].columns else {}
            values = f"({new}, 'new'{', 5' if more else ''})"
            self._cursor.execute("BEGIN")
            self._cursor.execute(f"INSERT INTO shop.{table} VALUES {values}")
            self._cursor.execute(f"SELECT word FROM shop.{table} WHERE id IN ({old}, {gone}) ORDER BY id")
            words = [word for (word,) in self._cursor.fetchall()]
            self._cursor.execute(f"UPDATE shop.{table} SET word = 'change {self._number}' WHERE id = {old}")
            self._cursor.execute(f"DELETE FROM shop.{table} WHERE id = {gone}")
            commit_ts = self._commit()
            lines = [Change(commit_ts, plain(new, "new") | more)]
            lines += [Change(commit_ts, plain(old, f"change {self._number}") | more, plain(old, words[0]) | more)]
            lines += [Change(commit_ts, None, plain(gone, words[1]) | more)] if len(words) > 1 else []
            self._feed.rows(f"shop.{table}", *lines)
        self.checkpoint()

    def size(self, id_: int, member: int) -> None:
        self._cursor.execute("BEGIN")
        self._cursor.execute(f"REPLACE INTO shop.sized VALUES ({id_}, 'z', {member})")
        line = {"id": Cell(str(id_), str(id_)), "word": text("z"), "size": Cell(str(member), None)}
        self._feed.rows("shop.sized", Change(self._commit(), line))
        self.checkpoint()

    def lose(self) -> None:
        """A row of a table without a key."""
        self._cursor.execute("BEGIN")
        self._cursor.execute("INSERT INTO shop.loose VALUES (2, 'b')")
        self._feed.rows("shop.loose", Change(self._commit(), plain(2, "b")))
        self.checkpoint()

    def grow(self) -> None:
        sql = "ALTER TABLE `shop`.`grown` ADD COLUMN `n` INT DEFAULT 5"
        self._cursor.execute(sql)
        self._feed.ddl("shop.grown", self._tso(), sql, 5, GROWN)
        self.checkpoint()

    def checkpoint(self) -> int:
        at_ts = self._tso()
        self._feed.checkpoint(at_ts)
        self.written_ts = at_ts
        return at_ts

    def _commit(self) -> int:
        self._cursor.execute("COMMIT")
        self._cursor.execute("SELECT @@tidb_last_txn_info")
        return int(json.loads(self._cursor.fetchone()[0])["commit_ts"])

    def _tso(self) -> int:
        return int(self._tidb.control("/tso"))


def in_silver(world: ChangefeedWorld, tidb: Tidb, table: str, cut_ts: int) -> None:
    """Silver is what TiDB shows of the cut."""
    found = [tuple(row.values()) for row in world.silver("shop", table.lower())]
    with tidb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET @@tidb_snapshot = %s", (str(cut_ts),))
        cursor.execute(f"SELECT * FROM shop.{table} ORDER BY id")
        assert found == list(cursor.fetchall())


def test_tables_that_a_changefeed_found_are_read_at_its_tidb(tidb: Tidb, tmp_path: Path) -> None:
    feed = Changefeed(tmp_path / "feed")
    writer = Writer(tidb, feed)
    for _ in range(3):
        writer.write()
    writer.size(2, 1)
    writer.lose()
    world = ChangefeedWorld(tmp_path, str(feed.path), extra=", sql_conn_id: tidb_sql")
    app = world.applied(writer.checkpoint() - 1)
    assert {name for name, state in app.states.items() if state.state is State.HELD} == {
        "shop.busy", "shop.grown", "shop.sized", "shop.loose",
    }  # fmt: skip
    assert app.states["shop.busy"].lacks_rows
    info = ConnectionInfo("127.0.0.1", tidb.port, "root", "")
    work = SnapshotWork(world.pipeline, world.lake, lambda _: info, print)
    assert {one[2] for one in work.ask()} == {"busy", "grown", "sized", "loose"}

    def writing(stop: threading.Event) -> None:
        for number in range(1_000_000):
            if stop.wait(0.2):
                return
            writer.write()
            if number == 3:
                writer.grow()

    def following(stop: threading.Event) -> None:
        while not stop.is_set():
            world.applied(writer.written_ts - 1)

    with under_way(writing, following):
        told = {one.name[1]: one for one in work.read()}
        assert work.request(["shop.quiet"])  # which the files say nothing of
        assert [one.reason for one in work.read() if one.name[1] == "quiet"] == [""]
    assert "has no key" in told.pop("loose").reason
    assert all(map(is_read, told.values())), told
    writer.size(3, 2)
    app = world.applied(writer.checkpoint() - 1)
    assert {name: s.reason for name, s in app.states.items() if s.state is not State.ACTIVE}.keys() == {"shop.loose"}
    for table in ("Busy", "grown", "sized", "quiet"):
        in_silver(world, tidb, table, app.cut_ts)
