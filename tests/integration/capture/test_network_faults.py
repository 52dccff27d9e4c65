"""A network that cuts in mid-packet, goes silent or trickles: capture notices by itself, and bronze is the binlog."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import (
    Background,
    assert_equals_binlog,
    binlog_end,
    bronze_segments,
    capture_run,
    capture_until_quiet,
    info_of,
    wait_for_bronze,
)
from tests.support.fault_proxy import FaultProxy, Way
from tests.support.seeds import seed
from tests.support.servers import FreshDatabase
from tests.support.writing import writing
from tidegate.local.server import Server
from tidegate.mysql.connecting.connection import TlsMode

pytestmark = pytest.mark.server
SETTINGS = {"segment_bytes": 4096, "heartbeat_seconds": 0.5}


def insert(cursor: Any, number: int) -> None:
    """Some bytes or some kB; each ends up in one or two TCP segments."""
    cursor.execute("INSERT INTO t VALUES (%s, %s)", (number, os.urandom(random.choice((10, 9000)))))


def captured_through(server: Server, lake: Path, proxy: FaultProxy, tls: TlsMode) -> Background:
    """A capture in the background whose connections all go through the proxy."""
    capture_until_quiet(server, lake)
    return Background(capture_run(server, lake, info=info_of(server, port=proxy.port, tls=tls), **SETTINGS))


def assert_bronze_gets_there(server: Server, lake: Path, capture: Background) -> None:
    """The capture that met the faults, not a fresh one, brings the rest."""
    end = binlog_end(server)
    wait_for_bronze(lake, lambda s: capture.error is not None or (s[-1].file, s[-1].end_pos) >= end)
    assert capture.error is None, capture.error


def wait_until_listening(capture: Background) -> None:
    """Until something came: a first connection that fails would end it, since it may be configured wrongly."""
    while not capture.bytes:
        assert capture.error is None, capture.error
        time.sleep(0.02)


@pytest.fixture
def answers_within(monkeypatch: pytest.MonkeyPatch) -> float:
    """Silence is noticed after 5 s and not after production's 10 s for busy servers."""
    monkeypatch.setattr("tidegate.limits.SILENCE_SECONDS_MIN", 5.0)
    return 5.0


# TLS and not: a cut TLS record is another error than a cut packet.
BOTH = [("mariadb", TlsMode.REQUIRED), ("mysql9", TlsMode.DISABLED)]


@pytest.mark.parametrize(("name", "tls"), BOTH)
def test_connections_cut_in_the_middle_of_a_packet_are_made_anew_and_nothing_is_lost_or_doubled(
    request: pytest.FixtureRequest, fresh_database: FreshDatabase, tmp_path: Path, name: str, tls: TlsMode
) -> None:
    server: Server = request.getfixturevalue(name)
    database, lake = fresh_database(server), tmp_path / "lake"
    server.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY, b BLOB)")
    random_cuts = random.Random(seed())
    with FaultProxy(server.host, server.port) as proxy, captured_through(server, lake, proxy, tls) as capture:
        with writing(server, database, insert, pause_seconds=0.005):
            wait_until_listening(capture)
            for number in range(6):
                way = Way.TO_SERVER if number == 3 else Way.TO_CLIENT  # there only logins and questions go
                most = 300 if way is Way.TO_SERVER else 20_000
                proxy.cut(random_cuts.randrange(1, most), way, reset=number % 2 == 0)
                while proxy.cuts <= number:
                    assert capture.error is None, capture.error
                    if way is Way.TO_SERVER:
                        proxy.cut_all()  # so that one logs in
                    time.sleep(0.05)
        assert_bronze_gets_there(server, lake, capture)
    assert_equals_binlog(bronze_segments(lake), server)


@pytest.mark.parametrize("way", list(Way))
def test_a_half_open_connection_is_noticed_by_capture_itself(
    mariadb: Server, fresh_database: FreshDatabase, tmp_path: Path, answers_within: float, way: Way
) -> None:
    database, lake = fresh_database(mariadb), tmp_path / "lake"
    mariadb.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY, b BLOB)")
    proxy = FaultProxy(mariadb.host, mariadb.port)
    with proxy, captured_through(mariadb, lake, proxy, TlsMode.PREFERRED) as capture:
        with writing(mariadb, database, insert, pause_seconds=0.005):
            wait_for_bronze(lake, lambda s: s[-1].txn_count)
        before = proxy.accepted
        proxy.half_open(way)
        began = time.monotonic()
        while proxy.accepted == before:  # it tries again, on a new connection
            assert time.monotonic() - began < answers_within + 120, "a dead connection goes unnoticed"
            assert capture.error is None, capture.error
            time.sleep(0.02)
        mariadb.query(f"INSERT INTO `{database}`.t VALUES (-1, 'while nothing is heard')")
        proxy.mend()
        assert_bronze_gets_there(mariadb, lake, capture)
    assert_equals_binlog(bronze_segments(lake), mariadb)


def test_a_network_that_trickles_is_slow_and_nothing_else(
    mysql9: Server, fresh_database: FreshDatabase, tmp_path: Path, answers_within: float
) -> None:
    database, lake = fresh_database(mysql9), tmp_path / "lake"
    mysql9.query(f"CREATE TABLE `{database}`.t (a INT PRIMARY KEY, b BLOB)")
    proxy = FaultProxy(mysql9.host, mysql9.port)
    with proxy, captured_through(mysql9, lake, proxy, TlsMode.DISABLED) as capture:
        mysql9.query(f"INSERT INTO `{database}`.t VALUES (0, '')")
        wait_until_listening(capture)
        before = proxy.accepted
        proxy.trickle(7, 0.002)
        mysql9.query(f"INSERT INTO `{database}`.t VALUES (1, REPEAT('x', 30000))")
        time.sleep(1.5 * answers_within)
        assert proxy.accepted == before, "bytes came all the time"
        proxy.mend()
        assert_bronze_gets_there(mysql9, lake, capture)
    assert_equals_binlog(bronze_segments(lake), mysql9)
