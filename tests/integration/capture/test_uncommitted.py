"""A first start where the server can't say what of its log is uncommitted: the tables that it was written to wait.

In:  MySQL whose account may not look for XA branches, and MySQL without GTIDs whose commits wait for a replica.
Out: the baseline's status of tables that a plain SELECT finds empty; columns of a table that is being altered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.captures import binlog_end, info_of
from tests.support.own_server import own_server_or_skip
from tests.support.servers import FreshDatabase
from tidegate.config import parse
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import connect
from tidegate.mysql.facts.server_facts import SourceFacts, read_facts
from tidegate.mysql.start import baseline as of_baseline
from tidegate.mysql.start.baseline import baseline_writer
from tidegate.mysql.start.settled import settled
from tidegate.mysql.start.uncommitted import written_to
from tidegate.tables import SCHEMA_HISTORY

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def without_gtids(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = ("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")
    with own_server_or_skip("mysql9", tmp_path_factory.mktemp("mysql9"), options=options) as server:
        server.query("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
        server.query("SET GLOBAL rpl_semi_sync_source_wait_point = AFTER_SYNC")
        yield server


def baseline(
    server: Server, database: str, folder: Path, facts: SourceFacts | None = None
) -> dict[str, tuple[str, str]]:
    """Each table's status and columns as a first start records them."""
    lake, info = LakeFiles(str(folder)), info_of(server)
    pipeline = parse(
        f"{{pipeline: p, lake: {{path: {folder}}}, sources: {{one: {{conn_id: c, flavour: mysql, dump: position}}}},"
        f" tables: {{include: ['{database}.*']}}}}",
        where="test",
    )
    if facts is None:
        with connect(info) as connection:
            facts = read_facts(connection, info)
    assert facts.position is not None
    baseline_writer(pipeline, "one", info, lake)(facts, facts.position)
    rows = control.read(lake, SCHEMA_HISTORY).to_pylist()
    return {row["table"]: (row["status"], row["columns"]) for row in rows if row["table"]}


def test_what_a_prepared_branch_has_written_to_waits_where_the_account_may_not_look_for_branches(
    mysql9: Server, fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_baseline, "written_to", partial(written_to, wait_seconds=0.1))
    database = fresh_database(mysql9)
    for table in ("touched", "indexed", "still"):
        mysql9.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT, KEY (n))", database=database)
    with mysql9.connect(database) as connection, connection.cursor() as cursor:
        for sql in ("XA START 'b'", "INSERT INTO touched VALUES (1, 1)", "INSERT INTO indexed VALUES (1, NULL)"):
            cursor.execute(sql)
        cursor.execute("XA END 'b'")
        cursor.execute("XA PREPARE 'b'")
        try:
            found = baseline(mysql9, database, tmp_path)
        finally:
            cursor.execute("XA COMMIT 'b'")
    assert {table: status for table, (status, _) in found.items()} == {
        "touched": "needs_snapshot",
        "indexed": "needs_snapshot",
        "still": "active",
    }


def nobody_replies(server: Server) -> None:
    """To commits, from now on."""
    server.query("SET GLOBAL rpl_semi_sync_source_timeout = 600000")
    server.query("SET GLOBAL rpl_semi_sync_source_enabled = 1")


def commits_go_on(server: Server) -> None:
    """Those that wait for a reply too."""
    server.query("SET GLOBAL rpl_semi_sync_source_enabled = 0")


def test_without_gtids_rows_that_are_logged_and_not_committed_are_waited_for(
    without_gtids: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    """The commit waits for a reply that nobody gives: it is in the log, and no SELECT sees it."""
    server, info = without_gtids, info_of(without_gtids)
    database = fresh_database(server)
    for table in ("t", "u"):
        server.query(f"CREATE TABLE {table} (id INT PRIMARY KEY)", database=database)
    end = binlog_end(server)
    nobody_replies(server)
    insert = threading.Thread(target=server.query, args=(f"INSERT INTO `{database}`.t VALUES (1)",))
    insert.start()
    try:
        while binlog_end(server) == end:
            time.sleep(0.01)
        with connect(info) as connection:
            facts = settled(info, read_facts(connection, info))
        assert facts.position is not None
        assert (facts.position.file, facts.position.offset) != end, "the insert lies before the beginning"
        assert server.query(f"SELECT COUNT(*) FROM `{database}`.t")[0][0] == 0
        threading.Timer(1.5, commits_go_on, [server]).start()
        found = baseline(server, database, tmp_path, facts)
    finally:
        commits_go_on(server)
        insert.join()
    assert {table: status for table, (status, _) in found.items()} == {"t": "needs_snapshot", "u": "active"}


def test_without_gtids_an_alter_that_is_logged_and_not_committed_is_waited_for(
    without_gtids: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    server, info = without_gtids, info_of(without_gtids)
    database = fresh_database(server)
    server.query("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    end = binlog_end(server)
    nobody_replies(server)
    alter = threading.Thread(target=server.query, args=(f"ALTER TABLE `{database}`.t ADD n INT, ALGORITHM=COPY",))
    alter.start()
    try:
        while binlog_end(server) == end:
            time.sleep(0.01)
        with connect(info) as connection:
            facts = settled(info, read_facts(connection, info))
        threading.Timer(1.5, commits_go_on, [server]).start()
        found = baseline(server, database, tmp_path, facts)
    finally:
        commits_go_on(server)
        alter.join()
    assert '"n"' in found["t"][1]
