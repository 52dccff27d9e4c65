"""Capture begins where no XA branch is prepared: what it wrote would lie below the beginning, its COMMIT above."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.captures import begin_capture, bronze_segments, capture_until_quiet
from tests.support.servers import FreshDatabase
from tidegate.binlog.format.events import EventType, read_header
from tidegate.binlog.format.xa import read_answer, read_prepare
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.branches import prepared_branches
from tidegate.mysql.facts.server_facts import read_facts
from tidegate.mysql.start.prepared import wait_for_prepared
from tidegate.mysql.start.uncommitted import may_hide_rows

pytestmark = pytest.mark.server


def test_a_prepared_branch_is_waited_for_and_named(
    any_server: Server, fresh_database: FreshDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    database = fresh_database(any_server)
    info = ConnectionInfo(any_server.host, any_server.port, any_server.user, any_server.password)
    with any_server.connect() as connection:
        facts = read_facts(connection, info)
    accounts = any_server.query("SELECT user, host FROM mysql.user WHERE user = %s", (any_server.user,))
    any_server.query("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        for sql in ("XA START 'branch7'", "INSERT INTO t VALUES (1)", "XA END 'branch7'", "XA PREPARE 'branch7'"):
            cursor.execute(sql)
        try:
            if any_server.flavour == "mysql":
                wait_for_prepared(info, "here", wait_seconds=0.3)
                assert "GRANT XA_RECOVER_ADMIN" in caplog.text, "the account may not look, and says so"
                for account in accounts:
                    any_server.query("GRANT XA_RECOVER_ADMIN ON *.* TO %s@%s", account)
            caplog.clear()
            wait_for_prepared(info, "here", wait_seconds=0.3)
            assert "here: 1 XA transactions are prepared" in caplog.text
            assert "branch7" in caplog.text
            assert may_hide_rows(cursor, facts), "the baseline looks what it has written to"
        finally:
            cursor.execute("XA COMMIT 'branch7'")
    wait_for_prepared(info, "here", wait_seconds=0.3)
    if any_server.flavour == "mysql":
        for account in accounts:
            any_server.query("REVOKE XA_RECOVER_ADMIN ON *.* FROM %s@%s", account)


def test_a_branch_whose_format_has_64_bits_has_one_name_everywhere(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """MySQL logs 32 of them in XA_PREPARE and all in XA COMMIT; MariaDB takes no such format."""
    if any_server.flavour == "mariadb":
        pytest.skip("MariaDB refuses formats beyond 31 bits")
    database, xid = fresh_database(any_server), f"'branch8','x',{(1 << 32) + 7}"
    accounts = any_server.query("SELECT user, host FROM mysql.user WHERE user = %s", (any_server.user,))
    any_server.query("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    begin_capture(any_server, tmp_path / "lake")
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        for sql in (f"XA START {xid}", "INSERT INTO t VALUES (1)", f"XA END {xid}", f"XA PREPARE {xid}"):
            cursor.execute(sql)
        for account in accounts:
            any_server.query("GRANT XA_RECOVER_ADMIN ON *.* TO %s@%s", account)
        with any_server.connect(database) as other, other.cursor() as asked:
            listed = prepared_branches(asked)
        for account in accounts:
            any_server.query("REVOKE XA_RECOVER_ADMIN ON *.* FROM %s@%s", account)
        cursor.execute(f"XA COMMIT {xid}")
    capture_until_quiet(any_server, tmp_path / "lake")
    payload = b"".join(bytes(segment.payload) for segment in bronze_segments(tmp_path / "lake"))
    prepared, answered = [], []
    while payload:
        header = read_header(payload)
        event, payload = payload[: header.size], payload[header.size :]
        if header.type == EventType.XA_PREPARE:
            prepared.append(read_prepare(event, 4).name)
        elif b"XA COMMIT" in event:
            answer = read_answer(event[event.index(b"XA COMMIT") : -4].decode())
            answered.append(answer and answer[0])
    assert prepared == answered == listed
    assert listed == ["X'6272616e636838',X'78',7"]
