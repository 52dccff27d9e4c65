"""What capture refuses, it refuses in one line, with nothing written anywhere; what is damaged, it stops at."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from tests.support.captures import (
    assert_equals_binlog,
    begin_capture,
    bronze_segments,
    capture_run,
    capture_until_quiet,
    info_of,
    pipeline_for,
)
from tests.support.replica_pair import purge_logs
from tests.support.servers import FreshDatabase
from tidegate.capture.run import CaptureRun
from tidegate.errors import (
    LakeRefused,
    PositionLost,
    SourceRefused,
    SourceUnavailable,
    StreamCorrupt,
    TidegateError,
)
from tidegate.local.server import Server
from tidegate.mysql.capturing.reader import binlog_run
from tidegate.mysql.connecting.connection import ConnectionInfo, TlsMode, connect
from tidegate.mysql.facts.server_facts import read_facts
from tidegate.mysql.looking.asked import ask

pytestmark = pytest.mark.server


def refusal(run: CaptureRun, folder: Path, kind: type[TidegateError]) -> str:
    """The message of a run that must be refused; nothing may have been written."""
    before = sorted(folder.rglob("*"))
    with pytest.raises(kind) as caught:
        run.run(300)
    assert sorted(folder.rglob("*")) == before, "something was written"
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_wrong_password_names_user_and_host(any_server: Server, tmp_path: Path) -> None:
    run = capture_run(any_server, tmp_path / "lake", info=info_of(any_server, password="not this"))
    message = refusal(run, tmp_path, SourceRefused)
    assert "tidegate" in message
    assert any_server.host in message
    assert "password" in message
    assert "not this" not in message


def test_unknown_host_is_named(any_server: Server, tmp_path: Path) -> None:
    info = info_of(any_server, host="no-such-host.invalid")
    assert "no-such-host.invalid" in refusal(
        capture_run(any_server, tmp_path / "lake", info=info), tmp_path, SourceUnavailable
    )


def test_closed_port_is_refused(any_server: Server, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        info = info_of(any_server, port=probe.getsockname()[1])
        message = refusal(capture_run(any_server, tmp_path / "lake", info=info), tmp_path, SourceUnavailable)
    assert "refused" in message


@pytest.mark.parametrize(
    ("variable", "value", "good"),
    [("binlog_format", "STATEMENT", "ROW"), ("binlog_format", "MIXED", "ROW")],
)
def test_settings_that_lose_rows_are_refused(
    any_server: Server, tmp_path: Path, variable: str, value: str, good: str
) -> None:
    any_server.query(f"SET GLOBAL {variable} = {value}")
    try:
        message = refusal(capture_run(any_server, tmp_path / "lake"), tmp_path, SourceRefused)
    finally:
        any_server.query(f"SET GLOBAL {variable} = {good}")
    assert variable in message
    assert good in message


@pytest.mark.parametrize(
    ("grants", "missing"),
    [
        ("SELECT, {monitor}", "REPLICATION SLAVE"),
        ("SELECT, REPLICATION SLAVE", "monitor"),
        ("REPLICATION SLAVE, {monitor}", "SELECT"),
    ],
)
def test_missing_privilege_is_named(any_server: Server, tmp_path: Path, grants: str, missing: str) -> None:
    monitor = "BINLOG MONITOR" if any_server.flavour == "mariadb" else "REPLICATION CLIENT"
    any_server.query("CREATE USER poor@'%' IDENTIFIED BY 'secret'")
    try:
        any_server.query(f"GRANT {grants.format(monitor=monitor)} ON *.* TO poor@'%'")
        info = info_of(any_server, user="poor", password="secret")
        message = refusal(capture_run(any_server, tmp_path / "lake", info=info), tmp_path, SourceRefused)
    finally:
        any_server.query("DROP USER poor@'%'")
    assert (monitor if missing == "monitor" else missing) in message
    assert "GRANT" in message


def test_a_replica_that_logs_nothing_of_its_primary_is_refused(any_server: Server, tmp_path: Path) -> None:
    """Whether our account may see SHOW REPLICA STATUS (MySQL) or not (MariaDB)."""
    mariadb = any_server.flavour == "mariadb"
    noun, verb = ("SLAVE 'no_such'", "MASTER 'no_such'") if mariadb else ("REPLICA", "REPLICATION SOURCE")
    word = "MASTER" if mariadb else "SOURCE"
    any_server.query(f"CHANGE {verb} TO {word}_HOST='127.0.0.1', {word}_PORT=1, {word}_USER='nobody'")
    any_server.query(f"START {noun}")
    try:
        with connect(info_of(any_server)) as connection:
            facts = read_facts(connection, info_of(any_server))
        assert [one.applies for one in facts.replications] == [True]
        assert facts.replicates
        if mariadb:  # MySQL's default is ON
            assert "log_slave_updates is OFF" in refusal(
                capture_run(any_server, tmp_path / "lake"), tmp_path, SourceRefused
            )
    finally:
        any_server.query(f"STOP {noun}")
        any_server.query(f"RESET {noun} ALL")
    with connect(info_of(any_server)) as connection:
        assert not read_facts(connection, info_of(any_server)).replicates


def test_a_promoted_server_is_told_from_a_replica_that_stands_still_once_the_account_may_look(
    mariadb: Server, tmp_path: Path
) -> None:
    """What it replicated once stays in gtid_slave_pos; log_slave_updates is OFF by default."""
    info, strict = info_of(mariadb), mariadb.variables["gtid_strict_mode"]
    mariadb.query("SET GLOBAL gtid_strict_mode = OFF")  # which asks for each domain's
    mariadb.query("SET GLOBAL gtid_slave_pos = '7-9-5'")
    try:
        message = refusal(capture_run(mariadb, tmp_path / "lake"), tmp_path, SourceRefused)
        assert "may not see whether it goes on" in message
        assert "GRANT REPLICA MONITOR" in message
        mariadb.query("GRANT REPLICA MONITOR ON *.* TO %s@'%%'", (mariadb.user,))
        with connect(info) as connection:
            assert not read_facts(connection, info).replicates
        capture_run(mariadb, tmp_path / "lake").run(1)
        mariadb.query("CHANGE MASTER 'still' TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='nobody'")
        assert "is OFF on a replica" in refusal(capture_run(mariadb, tmp_path / "other"), tmp_path, SourceRefused)
    finally:
        with contextlib.suppress(pymysql.err.MySQLError):
            mariadb.query("RESET SLAVE 'still' ALL")
        mariadb.query("REVOKE REPLICA MONITOR ON *.* FROM %s@'%%'", (mariadb.user,))
        mariadb.query("SET GLOBAL gtid_slave_pos = ''")
        mariadb.query("SET GLOBAL gtid_strict_mode = %s", (strict,))


def test_our_connections_are_in_utc_and_stay_open_while_a_source_is_quiet(any_server: Server) -> None:
    """In a zone whose clocks go back in autumn UNIX_TIMESTAMP can't tell the two hours apart."""
    wait = any_server.variables["wait_timeout"]
    any_server.query("SET GLOBAL time_zone = '-03:30', GLOBAL wait_timeout = 7")
    try:
        with connect(info_of(any_server)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@SESSION.time_zone, @@SESSION.wait_timeout > 3600, FROM_UNIXTIME(0) = '1970-01-01'")
            assert cursor.fetchone() == ("+00:00", 1, 1)
    finally:
        any_server.query(f"SET GLOBAL time_zone = 'SYSTEM', GLOBAL wait_timeout = {wait}")


def test_a_server_that_logs_nothing_or_not_all_is_refused(mariadb: Server, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    server = type(mariadb)(tmp_path / "server", mariadb.base)  # type: ignore[call-arg, attr-defined]
    for options, said, off in (
        (("--skip-log-bin",), "is in no log: then `tidegate verify` names the tables", True),
        (("--binlog-ignore-db=shop", "--binlog-ignore-db=mysql"), "binlog_ignore_db leaves shop out", False),
    ):
        server.options = options
        with server:
            server.query("CREATE DATABASE IF NOT EXISTS shop")
            assert said in refusal(capture_run(server, tmp_path / "empty" / "lake"), tmp_path / "empty", SourceRefused)
            answer = ask(pipeline_for(server, tmp_path / "lake"), lambda: info_of(server))
            assert (answer.error.startswith("its binlog is off (log_bin)"), answer.refused) == (off, off)


def test_the_wrong_flavour_is_named(mariadb: Server, tmp_path: Path) -> None:
    pipeline = pipeline_for(mariadb, tmp_path / "lake")
    source = pipeline.sources["one"].model_copy(update={"flavour": "mysql"})
    pipeline = pipeline.model_copy(update={"sources": {"one": source}})
    run = binlog_run(pipeline, "one", info_of(mariadb), tmp_path / "state")
    assert "flavour: mariadb" in refusal(run, tmp_path, SourceRefused)


def test_a_lake_that_is_a_file_is_refused(any_server: Server, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("not a folder")
    refusal(capture_run(any_server, tmp_path / "lake"), tmp_path, LakeRefused)


@pytest.mark.parametrize("dump", ["gtid", "position"])
def test_a_purged_position_is_lost_and_says_so(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path, dump: str
) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY)")
    capture_until_quiet(any_server, lake, dump=dump)
    for number in range(3):
        any_server.query(f"INSERT INTO `{database}`.t VALUES ({number})")
        any_server.query("FLUSH BINARY LOGS")
    purge_logs(any_server)
    count = len(bronze_segments(lake))
    with pytest.raises(PositionLost) as caught:
        capture_run(any_server, lake, dump=dump).run(300)
    assert re.search("purged|Could not find|not in the|too old|required", str(caught.value))
    assert "begin a new lake" in str(caught.value)
    assert len(bronze_segments(lake)) == count
    with pytest.raises(PositionLost, match=r"purged|too old|Could not find"):
        capture_run(any_server, tmp_path / "other" / "lake", dump=dump, start="earliest").run(300)


@contextlib.contextmanager
def proxy_flipping_a_bit(server: Server, marker: bytes) -> Iterator[int]:
    """A TCP proxy that inverts one bit of what the server sends, in the byte behind the first marker; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        open_sockets: list[socket.socket] = []

        def pump(source: socket.socket, target: socket.socket, *, flips: bool) -> None:
            while True:
                try:
                    data = source.recv(1 << 16)
                    if flips and (at := data.find(marker)) >= 0 and at + len(marker) < len(data):
                        changed = bytearray(data)
                        changed[at + len(marker)] ^= 1
                        data = bytes(changed)
                    target.sendall(data)
                except OSError:
                    return
                if not data:
                    target.close()
                    return

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                upstream = socket.create_connection((server.host, server.port))
                open_sockets.extend([client, upstream])
                for ends, flips in (((client, upstream), False), ((upstream, client), True)):
                    threading.Thread(target=pump, args=ends, kwargs={"flips": flips}, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for each in open_sockets:
                each.close()


def test_one_flipped_bit_in_a_row_stops_capture_at_its_place(
    any_server: Server, fresh_database: FreshDatabase, tmp_path: Path
) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY, b VARCHAR(100))")
    capture_until_quiet(any_server, lake)
    any_server.query(f"INSERT INTO `{database}`.t VALUES (1, 'sound'), (2, REPEAT('y', 50))")
    with (
        proxy_flipping_a_bit(any_server, b"soun") as port,
        pytest.raises(StreamCorrupt, match=r"wrong checksum in .*ROWS"),
    ):
        capture_run(any_server, lake, info=info_of(any_server, port=port, tls=TlsMode.DISABLED)).run(300)
    assert any_server.query(f"SELECT COUNT(*) FROM `{database}`.t") == [(2,)]
    capture_until_quiet(any_server, lake)
    assert_equals_binlog(bronze_segments(lake), any_server)


def test_connection_without_tls_support_is_not_silently_plain(any_server: Server, tmp_path: Path) -> None:
    """ssl_mode verify_ca with a certificate of someone else must fail, not fall back."""
    wrong = ConnectionInfo.from_parts(
        "x",
        host=any_server.host,
        port=any_server.port,
        user=any_server.user,
        password=any_server.password,
        extra={"ssl_mode": "verify_identity"},
    )
    refusal(capture_run(any_server, tmp_path / "lake", info=wrong), tmp_path, SourceUnavailable)


def test_the_stream_is_the_same_through_tls(any_server: Server, fresh_database: FreshDatabase, tmp_path: Path) -> None:
    database, lake = fresh_database(any_server), tmp_path / "lake"
    info = ConnectionInfo.from_parts(
        "x",
        host=any_server.host,
        port=any_server.port,
        user=any_server.user,
        password=any_server.password,
        extra={"ssl_ca": str(any_server.certificate), "ssl_mode": "verify_ca"},
    )
    begin_capture(any_server, lake, info=info)
    any_server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY, b TEXT)")
    with any_server.connect(database) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", [(n, "z" * 5000) for n in range(1000)])
    capture_run(any_server, lake, info=info).run(300, idle_seconds=1)
    assert assert_equals_binlog(bronze_segments(lake), any_server) > 5_000_000
