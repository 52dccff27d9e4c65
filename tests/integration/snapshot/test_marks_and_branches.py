"""Behind a low mark a read sees what the log has before it, XA COMMITs too."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import info_of
from tests.support.own_server import own_server_or_skip
from tests.support.servers import FreshDatabase
from tidegate.errors import SourceUnavailable
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import connect
from tidegate.snapshot.marks.marks import MarksRefused, MarkWriter
from tidegate.snapshot.marks.unlogged_marks import marks_for
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.view_reading import ExactView, TablesBusy
from tidegate.snapshot.watermark import Mark, MarkKind
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server]

_MARKS = 120
_VIEWS = 30
_BRANCHES = 200
LOW = Mark("snap", 1, MarkKind.LOW, "0" * 32)


class Nowhere:
    """Marks that nobody sees."""

    def begin(self) -> None: ...

    def over(self, connection: Any) -> Nowhere:
        return self

    def write(self, mark: Mark) -> None: ...


def committing(server: Server, database: str, first: int, done: list[int], stop: threading.Event) -> None:
    with server.connect(database) as connection, connection.cursor() as cursor:
        number = first
        while not stop.is_set():
            number += 1
            xid = f"'x{number}'"
            for sql in (f"XA START {xid}", f"INSERT INTO t VALUES ({number})", f"XA END {xid}", f"XA PREPARE {xid}"):
                cursor.execute(sql)
            cursor.execute(f"XA COMMIT {xid}")
            done.append(number)


@contextmanager
def committers(server: Server, database: str) -> Iterator[list[list[int]]]:
    """Branches are prepared and committed in a new file of the log, all the time; those that are."""
    server.query("FLUSH BINARY LOGS")
    stop, done = threading.Event(), [list[int]() for _ in range(4)]
    threads = [
        threading.Thread(target=committing, args=(server, database, number * 10**7, mine, stop))
        for number, mine in enumerate(done)
    ]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def logged(server: Server) -> list[tuple[int, str, str]]:
    """Of the newest file of the log: where each event ends, its type, what it says."""
    log = server.query("SHOW BINARY LOGS")[-1][0]
    return [(int(row[4]), str(row[2]), str(row[5])) for row in server.query(f"SHOW BINLOG EVENTS IN '{log}'")]


def number_of(text: str) -> int | None:
    """Of the branch that an event commits."""
    found = re.search(r"XA COMMIT X'([0-9a-f]+)'", text)
    return int(bytes.fromhex(found[1])[1:]) if found else None


def test_rows_of_a_branch_that_was_committed_before_a_mark_are_seen_behind_it(
    mariadb: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    seen = list[set[int]]()
    info = info_of(mariadb)
    with connect(info) as marking, mariadb.connect(database) as reading, reading.cursor() as cursor:
        marks = MarkWriter(marking, info, "p", "s")
        marks.begin()
        with committers(mariadb, database) as done:
            while len(seen) < _MARKS or sum(map(len, done)) < _BRANCHES:
                marks.write(Mark("snap", 1, MarkKind.LOW, uuid.uuid4().hex))
                cursor.execute("SELECT id FROM t")
                seen.append({int(row[0]) for row in cursor.fetchall()})
                reading.commit()
    committed, marked, lacking = set[int](), 0, list[set[int]]()
    for _, kind, text in logged(mariadb):
        if (number := number_of(text)) is not None:
            committed.add(number)
        elif kind == "Table_map" and "tidegate.watermark" in text:
            lacking.append(committed - seen[marked])
            marked += 1
    assert marked == len(seen)
    assert len(committed) >= _BRANCHES
    assert not [some for some in lacking if some], "their answers stand before the mark in the log"


def test_a_view_of_a_table_without_a_key_has_all_that_was_committed_before_its_place(
    mariadb: Server, fresh_database: FreshDatabase
) -> None:
    """Else nobody ever hears of it: the log is read from that place on."""
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.t (id INT)")
    info, views = info_of(mariadb), list[tuple[int, set[int]]]()
    with WorkerConnection(info) as asked, committers(mariadb, database) as done:
        while len(views) < _VIEWS or sum(map(len, done)) < _BRANCHES:
            with suppress(TablesBusy), ExactView(asked, Nowhere(), LOW, [(database, "t")]) as view:
                rows = view.connection.ask(f"SELECT id FROM {database}.t")
                views.append((int(view.at.rpartition(":")[2]), {int(row[0]) for row in rows}))
    ends = {number: end for end, _, text in logged(mariadb) if (number := number_of(text)) is not None}
    assert len(ends) >= _BRANCHES
    for at, seen in views:
        assert seen == {number for number, end in ends.items() if end <= at}, at


def test_a_server_that_became_read_only_is_tried_again_without_marks(any_server: Server) -> None:
    """As a former primary: no grant mends it."""
    any_server.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{any_server.user}'@'%'")
    with connect(info_of(any_server)) as marking:
        marks = MarkWriter(marking, info_of(any_server), "p", "s")
        marks.begin()
        any_server.query("SET GLOBAL read_only = 1")
        try:
            with pytest.raises(SourceUnavailable, match="the server is read-only; it is tried again, without marks"):
                marks.write(LOW)
            with pytest.raises(MarksRefused, match="read without marks there"):
                marks.begin()
        finally:
            any_server.query("SET GLOBAL read_only = 0")


@pytest.mark.parametrize("flavour", ["mariadb", "mysql9"])
def test_two_servers_that_share_a_number_are_not_taken_for_one(flavour: str, tmp_path: Path) -> None:
    """As clones behind one address: what one shows, the other's log doesn't tell."""
    first, second = (own_server_or_skip(flavour, tmp_path / name, options=("--server-id=77",)) for name in "ab")
    with first, second, WorkerConnection(info_of(first)) as asked, connect(info_of(second)) as elsewhere:
        lake = LakeFiles(str(tmp_path / "lake"))
        assert asked.server_id == 77
        with pytest.raises(SourceUnavailable, match="leads to several servers"):
            marks_for(asked, elsewhere, lake, ("p", "s"))
        with connect(info_of(first)) as same:
            marks_for(asked, same, lake, ("p", "s"))
