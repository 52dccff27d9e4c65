"""A log that is reset while capture is connected: heartbeats go on from the file that is gone, rows never come.

In:  a server of our own per flavour, dumps by GTID and by position, a log that is small and one that is larger.
Out: capture ends the connection by itself, and the next one says what is missing; a log that only rotates, is idle or
     is purged ends nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.captures import Background, binlog_end, bronze_segments, capture_run, has_reached, wait_for_bronze
from tests.support.own_server import own_server_or_skip
from tidegate.errors import PositionLost
from tidegate.local.server import Server
from tidegate.mysql.history import log_end

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["mariadb", "mysql9"])
def own_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with own_server_or_skip(request.param, tmp_path_factory.mktemp("own") / "server") as server:
        server.query("CREATE DATABASE shop")
        server.query("CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, name MEDIUMTEXT)")
        yield server


@pytest.fixture(autouse=True)
def _asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_end, "CLOCK_ASKED_SECONDS", 0.5)


def reset(server: Server, to: str = "") -> None:
    server.query(f"{'RESET MASTER' if server.flavour == 'mariadb' else 'RESET BINARY LOGS AND GTIDS'}{to}")


def insert(server: Server, name: str) -> None:
    server.query("INSERT INTO shop.orders (name) VALUES (%s)", (name,))


@pytest.mark.parametrize("dump", ["gtid", "position"])
@pytest.mark.parametrize(("size", "to"), [(10, ""), (100_000, ""), (10, " TO 5000")])
def test_a_reset_ends_the_connection_and_the_next_one_says_what_is_missing(
    own_server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture, dump: str, size: int, to: str
) -> None:
    server, lake = own_server, tmp_path / "lake"
    if server.flavour == "mariadb" and (dump, to) == ("gtid", ""):
        reset(server)  # its GTIDs begin anew, and a domain of another test is none of ours
    insert(server, "before")
    capture = Background(capture_run(server, lake, dump=dump))
    with pytest.raises(PositionLost), capture:  # noqa: PT012  raised at its end
        wait_for_bronze(lake, bool)
        for _ in range(3):
            insert(server, "captured" * size)
        end = binlog_end(server)
        wait_for_bronze(lake, has_reached(end))
        reset(server, to)
        insert(server, "never sent")
        capture.thread.join(60)
        assert not capture.thread.is_alive(), "heartbeats are believed"
    said = ["the server's binlog no longer has the events that it sent", *(["could not find next log"] if to else [])]
    assert any(words in caplog.text for words in said), "of another file the server itself may say so first"
    assert b"never sent" not in b"".join(bytes(one.payload) for one in bronze_segments(lake))


@pytest.mark.parametrize("dump", ["gtid", "position"])
def test_a_log_that_rotates_is_written_is_purged_or_stands_still_ends_nothing(
    own_server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture, dump: str
) -> None:
    server, lake, over = own_server, tmp_path / "lake", threading.Event()

    def write() -> None:
        while not over.is_set():
            insert(server, "busy" * 1000)

    capture = Background(capture_run(server, lake, dump=dump))
    with capture:
        wait_for_bronze(lake, bool)
        writers = [threading.Thread(target=write) for _ in range(2)]
        for writer in writers:
            writer.start()
        for _ in range(6):
            server.query("FLUSH BINARY LOGS")
            time.sleep(0.5)
        over.set()
        for writer in writers:
            writer.join()
        server.query(f"PURGE BINARY LOGS TO '{binlog_end(server)[0]}'")
        time.sleep(2)
        insert(server, "last")
        end = binlog_end(server)
        wait_for_bronze(lake, has_reached(end))
    assert "connection lost" not in caplog.text
