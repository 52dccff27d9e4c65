"""A transaction larger than a segment that MariaDB logs and then rolls back, from the server to decoded rows.

After CREATE TEMPORARY TABLE in a transaction the server logs its rows and a ROLLBACK behind them.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.decoding import ALL_TIME, version_on
from tests.support.captures import capture_until_quiet
from tests.support.servers import FreshDatabase
from tidegate.binlog.rows.decode import decode_segment
from tidegate.lake.bronze.backlog import WantedSegments, backlog
from tidegate.lake.bronze.index import BronzeIndex, read_segments
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.segments.result import NOTHING_KNOWN
from tidegate.tables import SegmentFlag

pytestmark = pytest.mark.server


def test_what_a_large_transaction_wrote_and_rolled_back_is_left_out(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    mariadb.query("SET GLOBAL max_allowed_packet = 268435456")
    with mariadb.connect(database, max_allowed_packet=256 << 20) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE b (id INT PRIMARY KEY, x LONGBLOB)")
        cursor.execute("CREATE TABLE u (id INT PRIMARY KEY)")
        capture_until_quiet(mariadb, lake)
        cursor.execute("INSERT INTO u VALUES (1)")
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO u VALUES (2)")
        cursor.execute("CREATE TEMPORARY TABLE passing (id INT)")
        for number in range(5):
            cursor.execute("INSERT INTO b VALUES (%s, %s)", (number, os.urandom(5 << 20)))
        cursor.execute("INSERT INTO u VALUES (3)")
        cursor.execute("ROLLBACK")
        cursor.execute("INSERT INTO u VALUES (4)")
    capture_until_quiet(mariadb, lake)

    names = [(database, "b"), (database, "u")]
    versions = {name: [replace(version_on(mariadb, *name), source="one")] for name in names}
    files = LakeFiles(str(lake))
    index = BronzeIndex(files)
    index.refresh(0)
    refs = index.refs["one"]
    assert sum(bool(ref.flags & SegmentFlag.OPEN_AT_START) for ref in refs) >= 1, "it spans segments"
    assert sum(bool(ref.flags & SegmentFlag.ROLLED_BACK) for ref in refs) == 1
    # A table that catches up sees only the segments that name it.
    behind = backlog(files, {"one": WantedSegments(0, {f"{database}.u"})}, refs[-1].resolved_ts, 1 << 40)[1]
    for looked in (refs, behind):
        ids: dict[str, list[int]] = {}
        for ref, segment in read_segments(files, looked):
            known = replace(NOTHING_KNOWN, rolled_back_ts=ref.rolled_back_ts)
            done = decode_segment(segment, versions, dict.fromkeys(names, ALL_TIME), known=known)
            assert not done.problems
            for change in done.changes:
                ids.setdefault(change.table, []).extend(change.batch.column("id").to_pylist())
        assert ids == {"u": [1, 4]}
    assert [row[0] for row in mariadb.query(f"SELECT id FROM `{database}`.u ORDER BY id")] == [1, 4]
