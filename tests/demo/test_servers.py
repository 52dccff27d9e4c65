"""The servers that demo and tests stand on keep their promises: settings, grants, recovery, no secrets."""

from __future__ import annotations

import ssl
from pathlib import Path

import pymysql
import pytest

from tests.support.servers import FreshDatabase
from tidegate.local.server import Server

pytestmark = pytest.mark.server


def test_binlog_is_row_based_with_full_images_metadata_and_gtids(any_server: Server) -> None:
    variables = any_server.variables
    assert variables["log_bin"] == "ON"
    assert variables["binlog_format"] == "ROW"
    assert variables["binlog_row_image"] == "FULL"
    assert variables["binlog_row_metadata"] == "FULL"
    gtids = "gtid_strict_mode" if any_server.flavour == "mariadb" else "gtid_mode"
    assert variables[gtids] == "ON"


def test_tidegate_user_reads_and_replicates_but_cannot_write(any_server: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(any_server)
    any_server.query(f"CREATE TABLE `{database}`.t (id int PRIMARY KEY)")
    with any_server.connect(database, user=any_server.user, password=any_server.password) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (0,)
        cursor.execute("SHOW BINARY LOGS")
        assert cursor.fetchall()
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            cursor.execute("INSERT INTO t VALUES (1)")


def test_root_gets_in_by_the_private_socket_only(any_server: Server) -> None:
    assert any_server.socket.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(pymysql.err.OperationalError):
        any_server.connect(user="root", password="")


def test_tls_client_that_trusts_the_certificate_gets_an_encrypted_connection(any_server: Server) -> None:
    context = ssl.create_default_context(cafile=str(any_server.certificate))
    with any_server.connect(user=any_server.user, password=any_server.password, ssl=context) as connection:
        cursor = connection.cursor()
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        assert cursor.fetchone()[1]


def test_neither_binlog_nor_argv_hold_the_password(any_server: Server) -> None:
    files = sorted((any_server.data / "data").glob("binlog.0*"))
    assert files
    for file in files:
        raw = file.read_bytes()
        assert any_server.password.encode() not in raw
        assert b"IDENTIFIED" not in raw
    assert any_server.password.encode() not in Path(f"/proc/{any_server.pid}/cmdline").read_bytes()


def test_killed_server_comes_back_with_what_was_committed(any_server: Server, fresh_database: FreshDatabase) -> None:
    database = fresh_database(any_server)
    any_server.query(f"CREATE TABLE `{database}`.t (id int PRIMARY KEY)")
    any_server.query(f"INSERT INTO `{database}`.t VALUES (7)")
    port = any_server.port
    any_server.kill()
    any_server.start()
    assert any_server.port == port
    assert any_server.query(f"SELECT id FROM `{database}`.t") == [(7,)]
