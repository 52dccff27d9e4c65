"""Behind a low mark a read sees what the log has before it, XA COMMITs too."""

from __future__ import annotations

import re
import threading
import uuid

import pytest

from tests.support.servers import FreshDatabase
from tidegate.local.server import Server
from tidegate.mysql.connection import ConnectionInfo, connect
from tidegate.snapshot.marks import MarkWriter
from tidegate.snapshot.watermark import Mark, MarkKind
from tidegate.tables import WATERMARK_DATABASE

pytestmark = [pytest.mark.server]

_MARKS = 120
_BRANCHES = 200


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


def test_rows_of_a_branch_that_was_committed_before_a_mark_are_seen_behind_it(
    mariadb: Server, fresh_database: FreshDatabase
) -> None:
    database = fresh_database(mariadb)
    mariadb.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    mariadb.query(f"GRANT CREATE, SELECT, INSERT, UPDATE ON {WATERMARK_DATABASE}.* TO '{mariadb.user}'@'%'")
    stop, seen = threading.Event(), list[set[int]]()
    done = [list[int]() for _ in range(4)]
    threads = [
        threading.Thread(target=committing, args=(mariadb, database, number * 10**7, mine, stop))
        for number, mine in enumerate(done)
    ]
    info = ConnectionInfo(host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password)
    with connect(info) as marking, mariadb.connect(database) as reading, reading.cursor() as cursor:
        marks = MarkWriter(marking, info, "p", "s")
        marks.begin()
        mariadb.query("FLUSH BINARY LOGS")
        for thread in threads:
            thread.start()
        try:
            while len(seen) < _MARKS or sum(map(len, done)) < _BRANCHES:
                marks.write(Mark("snap", 1, MarkKind.LOW, uuid.uuid4().hex))
                cursor.execute("SELECT id FROM t")
                seen.append({int(row[0]) for row in cursor.fetchall()})
                reading.commit()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    log = mariadb.query("SHOW BINARY LOGS")[-1][0]
    committed, marked, lacking = set[int](), 0, list[set[int]]()
    for event in mariadb.query(f"SHOW BINLOG EVENTS IN '{log}'"):
        if found := re.search(r"XA COMMIT X'([0-9a-f]+)'", str(event[5])):
            committed.add(int(bytes.fromhex(found[1])[1:]))
        elif event[2] == "Table_map" and "tidegate.watermark" in str(event[5]):
            lacking.append(committed - seen[marked])
            marked += 1
    assert marked == len(seen)
    assert len(committed) >= _BRANCHES
    assert not [some for some in lacking if some], "their answers stand before the mark in the log"
