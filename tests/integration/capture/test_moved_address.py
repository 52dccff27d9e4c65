"""An address that leads to the primary (DNS, a virtual address, a proxy) leads to another server now, and the former
primary lives on: what is open to it stays open.

In:  a primary and its replica of each flavour, behind one address.
Out: capture goes on at the new primary, and the former one's quiet proves nothing meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.capture.test_hosts import Story
from tests.support.captures import assert_equals_binlog, binlog_end, bronze_segments, capture_run, wait_for_bronze
from tests.support.fault_proxy import FaultProxy
from tests.support.own_server import own_server
from tests.support.replica_pair import Pair, promote, replica_pair, until
from tidegate.commit_ts import compose, physical_ms
from tidegate.errors import SourceUnavailable
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.stream.dump_stream import DumpRequest, DumpStream

pytestmark = [pytest.mark.server, pytest.mark.timeout(1200)]


@pytest.fixture(params=["mariadb", "mysql9"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    with replica_pair(request.param, tmp_path) as both:
        for server in (both.primary, both.replica):
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_log_bin = 0")
                cursor.execute("CREATE USER hosts@'%%' IDENTIFIED BY %s", (both.primary.password,))
                for grant in server.grants:
                    cursor.execute(f"GRANT {grant} TO hosts@'%'")
        yield both


class Behind(Story):
    """A pipeline whose connection has one address."""

    def __init__(self, pair: Pair, folder: Path, proxy: FaultProxy) -> None:
        super().__init__(pair, folder, pair.primary)
        self.proxy = proxy

    def hosts(self, *_: object) -> ConnectionInfo:
        return ConnectionInfo(self.proxy.host, self.proxy.port, "hosts", self.a.password)


def test_capture_follows_an_address_that_moved_to_another_primary(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The former one is read-only and quiet, and nothing ends the connections to it. A server to which its address
    leads proves its quiet, though it is read-only and follows nobody.
    """
    monkeypatch.setattr("tidegate.mysql.servers.fence.FENCE_LOOK_SECONDS", 3.0)
    a, b, lake = pair.primary, pair.replica, tmp_path / "lake"
    with FaultProxy(a.host, a.port) as proxy:
        story = Behind(pair, tmp_path, proxy)
        a.query("CREATE DATABASE shop")
        a.query("CREATE TABLE shop.orders (id INT PRIMARY KEY, at_port INT)")
        with story.background() as run:
            wait_for_bronze(lake, lambda segments: segments or run.error is not None)
            story.insert(a)
            wait_for_bronze(lake, lambda segments: run.error is not None or any(one.has_bytes for one in segments))
            pair.replicated()
            a.query("SET GLOBAL read_only = 1")
            proxy.lead_to(b.host, b.port)
            promote(b)
            time.sleep(1)
            story.insert(b)
            committed_ms = int(b.query("SELECT UNIX_TIMESTAMP(NOW(6)) * 1000")[0][0])
            until(lambda: story.reached(b) or run.error is not None, 60)
            reached_ts = bronze_segments(lake)[-1].resolved_ts
            b.query("SET GLOBAL read_only = 1")
            time.sleep(1)
            until(lambda: bronze_segments(lake)[-1].resolved_ts > reached_ts + compose(3_000), 60)
    newest = [one for one in bronze_segments(lake) if one.txn_count][-1]
    assert abs(physical_ms(newest.max_commit_ts) - committed_ms) < 2_000


@pytest.mark.parametrize("dump", ["position", "gtid"])
def test_a_stream_of_another_server_than_the_asked_one_is_not_read(
    dump: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address of several servers: the place in the one's log is a transaction's end in the other's, too."""
    lake = tmp_path / "lake"
    with own_server("mariadb", tmp_path / "a") as a, own_server("mariadb", tmp_path / "b") as b:
        for server in (a, b):
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_log_bin = 0")
                cursor.execute("CREATE USER hosts@'%' IDENTIFIED BY 'both'")
                cursor.execute("GRANT ALL ON *.* TO hosts@'%'")
            server.query("RESET MASTER")
            server.query("CREATE DATABASE shop")
            server.query("CREATE TABLE shop.orders (id INT PRIMARY KEY)")
        with FaultProxy(a.host, a.port) as proxy:
            info = ConnectionInfo(proxy.host, proxy.port, "hosts", "both")
            capture_run(a, lake, info=info, dump=dump, start="earliest").run(60, idle_seconds=1)
            a.query("INSERT INTO shop.orders VALUES (1)")
            b.query("INSERT INTO shop.orders VALUES (2)")

            class Elsewhere(DumpStream):
                @classmethod
                def open(cls, info: ConnectionInfo, request: DumpRequest) -> DumpStream:  # type: ignore[override]
                    proxy.lead_to(b.host, b.port)
                    try:
                        return DumpStream.open(info, request)
                    finally:
                        proxy.lead_to(a.host, a.port)

            monkeypatch.setattr("tidegate.mysql.capturing.reader.DumpStream", Elsewhere)
            with pytest.raises(SourceUnavailable, match="leads to several servers"):
                capture_run(a, lake, info=info, dump=dump, start="earliest").run(1)
            monkeypatch.undo()
            capture_run(a, lake, info=info, dump=dump, start="earliest").run(60, idle_seconds=1)
        assert bronze_segments(lake)[-1].end_pos >= binlog_end(a)[1]
        assert_equals_binlog(bronze_segments(lake), a)
