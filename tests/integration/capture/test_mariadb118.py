"""MariaDB 11.8: what is new in its log since 11.4 is captured as its files have it, and decodes.

In:  a server of our own from Debian's packages; where they can't be had these tests are skipped, or fail in CI.
Out: a large commit that became a binlog file of its own, vectors, UUIDv7.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.captures import (
    assert_equals_binlog,
    binlog_end,
    bronze_segments,
    capture_until_quiet,
)
from tests.support.log_decode import decoded
from tests.support.own_server import own_server_or_skip
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Commits of 10 MB and more become a binlog file of their own: the least that it can be told."""
    options = ("--binlog-large-commit-threshold=10485760",)
    with own_server_or_skip("mariadb118", tmp_path_factory.mktemp("own") / "server", options=options) as found:
        found.query("CREATE DATABASE shop")
        found.query(
            "CREATE TABLE shop.v (id UUID DEFAULT UUID_v7() PRIMARY KEY, n INT, e VECTOR(3) NOT NULL, x LONGTEXT,"
            " VECTOR INDEX (e))"
        )
        yield found


@pytest.mark.parametrize("dump", ["gtid", "position"])
def test_a_commit_that_is_a_file_of_its_own_is_captured_byte_for_byte(
    server: Server, tmp_path: Path, dump: str
) -> None:
    lake = tmp_path / "lake"
    capture_until_quiet(server, lake, dump=dump)
    server.query("INSERT INTO shop.v (n, e) VALUES (1, VEC_FromText('[1,2,3]'))")
    files = len(server.query("SHOW BINARY LOGS"))
    with server.connect("shop") as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for number in range(25):
            text = f"{number}" * 500_000
            cursor.execute("INSERT INTO v (n, e, x) VALUES (2, VEC_FromText('[4,5.5,6]'), %s)", (text,))
        cursor.execute("UPDATE v SET n = 3 WHERE n = 2")
        cursor.execute("COMMIT")
    assert len(server.query("SHOW BINARY LOGS")) > files, "it became a file of its own"
    server.query("DELETE FROM shop.v WHERE n = 1")
    capture_until_quiet(server, lake, dump=dump)
    segments = bronze_segments(lake)
    assert_equals_binlog(segments, server)
    assert (segments[-1].file, segments[-1].end_pos) == binlog_end(server)
    found = decoded([server.data / "data" / name for name, _ in server.query("SHOW BINARY LOGS")])
    rows = [row for row in found.rows if row["table"] == "v"]
    assert not found.faults
    inserted = [row["after"] for row in rows if row["op"] == rows[0]["op"]]
    one_two_three = base64.b64encode(struct.pack("<3f", 1, 2, 3)).decode()  # files alone don't say what it is
    assert one_two_three in [row["e"] for row in inserted]
    assert len([row for row in inserted if row["n"] == 2]) % 25 == 0
    assert {base64.b64decode(row["id"])[6] >> 4 for row in inserted} == {7}, "UUIDs of version 7, likewise"
    server.query("DELETE FROM shop.v")
