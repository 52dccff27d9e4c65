"""A server that no longer has what it sent: a crash or a restore un-wrote it, and other transactions took its place.

In:  a server of our own per flavour, whose data folder is put back to an earlier copy, as a host that dies without
     having synced its binlog, or a snapshot of a machine, does.
Out: capture stops and names what is lost; bronze, and so silver, gets nothing of the other history.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.captures import (
    Background,
    assert_equals_binlog,
    binlog_end,
    bronze_segments,
    capture_run,
    capture_to_end,
    has_reached,
    wait_for_bronze,
)
from tests.support.own_server import own_server_or_skip
from tidegate.errors import PositionLost, StreamCorrupt
from tidegate.local.server import Server

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]

DUMPS = ("gtid", "position")


@pytest.fixture(scope="module", params=["mariadb", "mysql9"])
def own_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that nobody else uses, with a database `shop` and two tables."""
    folder = tmp_path_factory.mktemp("own")
    server = own_server_or_skip(request.param, folder / "server")
    with server:
        server.query("CREATE DATABASE shop")
        server.query("CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(2000))")
        server.query("CREATE TABLE shop.other (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(2000))")
        yield server


class Past:
    """A copy of a server's data as it was, to be put back."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server, self._copy = server, folder / "copy"
        server.kill()
        shutil.copytree(server.data / "data", self._copy, symlinks=True)
        server.start()

    def comes_back(self) -> None:
        self._server.kill()
        shutil.rmtree(self._server.data / "data")
        shutil.copytree(self._copy, self._server.data / "data", symlinks=True)
        self._server.start()


def _insert(server: Server, table: str, names: list[str]) -> None:
    for name in names:
        server.query(f"INSERT INTO shop.{table} (name) VALUES (%s)", (name,))


def test_a_server_that_lost_captured_transactions_and_wrote_others_stops_capture_by_name(
    own_server: Server, tmp_path: Path
) -> None:
    """The others have the same GTIDs and lie in the same file at the same positions, and there are more of them."""
    server = own_server
    for dump in DUMPS:
        capture_to_end(server, tmp_path / dump / "lake", dump=dump)
    _insert(server, "other", ["kept"])
    for dump in DUMPS:
        capture_to_end(server, tmp_path / dump / "lake", dump=dump)
    past = Past(server, tmp_path)
    _insert(server, "orders", ["lost " * 10] * 5)
    for dump in DUMPS:
        capture_to_end(server, tmp_path / dump / "lake", dump=dump)
    captured = {dump: bronze_segments(tmp_path / dump / "lake") for dump in DUMPS}
    file, end = captured["gtid"][-1].file, captured["gtid"][-1].end_pos
    assert_equals_binlog(captured["gtid"], server)

    past.comes_back()
    assert server.query("SELECT COUNT(*) FROM shop.orders") == [(0,)]
    for written in ([], ["same " * 10] * 5, ["other " * 100] * 5):
        _insert(server, "other", written)
        for dump in DUMPS:
            with pytest.raises(PositionLost) as caught:
                capture_run(server, tmp_path / dump / "lake", dump=dump).run(300)
            message = str(caught.value)
            assert "isn't what the server has there now" in message
            assert "they touched shop.orders; " in message, "and not shop.other, which it has"
            assert f"{file}:{end}" in message
            assert "begin a new lake" in message
    assert dict(server.query("SHOW BINARY LOGS"))[file] > end if server.flavour == "mariadb" else True
    for dump in DUMPS:
        assert bronze_segments(tmp_path / dump / "lake") == captured[dump]


def test_a_running_capture_stops_when_the_server_comes_back_with_another_history(
    own_server: Server, tmp_path: Path
) -> None:
    server, lake = own_server, tmp_path / "lake"
    _insert(server, "other", ["kept"])
    past = Past(server, tmp_path)
    capture = Background(capture_run(server, lake))
    with pytest.raises(PositionLost, match=r"GTIDs .*they touched shop\.orders"), capture:  # noqa: PT012  at its end
        wait_for_bronze(lake, bool)
        _insert(server, "orders", ["lost"] * 3)
        end = binlog_end(server)
        wait_for_bronze(lake, has_reached(end))
        past.comes_back()
        _insert(server, "orders", ["another"] * 9)
        capture.thread.join(300)
    payload = b"".join(bytes(segment.payload) for segment in bronze_segments(lake))
    assert b"lost" in payload
    assert b"another" not in payload


@pytest.mark.parametrize("cut", ["at an event", "in an event"])
def test_a_binlog_file_that_lost_its_end_in_a_crash_stops_capture(own_server: Server, tmp_path: Path, cut: str) -> None:
    """The file is cut, the tables aren't: what InnoDB has, the binlog lacks. New transactions go into a new file."""
    server = own_server
    for _ in range(2):
        for dump in DUMPS:
            capture_to_end(server, tmp_path / dump / "lake", dump=dump)
        _insert(server, "other", ["kept"])
    for dump in DUMPS:
        capture_to_end(server, tmp_path / dump / "lake", dump=dump)
    name, end = binlog_end(server)
    _insert(server, "orders", ["lost"] * 3)
    for dump in DUMPS:
        capture_to_end(server, tmp_path / dump / "lake", dump=dump)
    captured = {dump: bronze_segments(tmp_path / dump / "lake") for dump in DUMPS}
    server.kill()
    os.truncate(server.data / "data" / name, end if cut == "at an event" else end + 30)
    server.start()
    _insert(server, "other", ["new " * 100] * 5)
    for dump in DUMPS:
        with pytest.raises(
            PositionLost, match=r"isn't what the server has there now.*they touched shop\.orders; .*new lake"
        ):
            capture_run(server, tmp_path / dump / "lake", dump=dump).run(300)
        assert bronze_segments(tmp_path / dump / "lake") == captured[dump]


def test_a_server_that_was_reset_has_other_files_under_the_same_names(own_server: Server, tmp_path: Path) -> None:
    server, lake = own_server, tmp_path / "lake"
    _insert(server, "other", ["before"])
    capture_to_end(server, lake)
    _insert(server, "other", ["captured"])
    capture_to_end(server, lake)
    captured = bronze_segments(lake)
    server.query("RESET MASTER" if server.flavour == "mariadb" else "RESET BINARY LOGS AND GTIDS")
    for _ in range(12):
        _insert(server, "other", ["after"] * 3)
        server.query("FLUSH BINARY LOGS")
    with pytest.raises(PositionLost, match="isn't what the server has there now"):
        capture_run(server, lake).run(300)
    assert bronze_segments(lake) == captured


@pytest.mark.parametrize("checked_by", ["capture", "the server"])
def test_a_byte_that_flipped_in_the_servers_file_stops_capture_at_its_place(
    own_server: Server, tmp_path: Path, checked_by: str
) -> None:
    """Servers send their files as they lie there, unless they are told to look; capture always looks."""
    server, lake = own_server, tmp_path / "lake"
    variable = f"{'master' if server.flavour == 'mariadb' else 'source'}_verify_checksum"
    capture_to_end(server, lake)
    file, sound = binlog_end(server)
    _insert(server, "orders", ["a value that was sound", "and another"])
    path = server.data / "data" / file
    data = path.read_bytes()
    at = data.rindex(b"a value that was sound") + 3
    server.query(f"SET GLOBAL {variable} = {'ON' if checked_by == 'the server' else 'OFF'}")
    try:
        _put(path, at, bytes([data[at] ^ 1]))
        before = bronze_segments(lake)
        with pytest.raises(StreamCorrupt, match=rf"({file}.*wrong checksum in|its own binlog damaged: .*{file})"):
            capture_run(server, lake).run(300)
        assert b"".join(bytes(s.payload) for s in bronze_segments(lake)) == b"".join(bytes(s.payload) for s in before)
    finally:
        _put(path, at, data[at : at + 1])
        server.query(f"SET GLOBAL {variable} = OFF")
    capture_to_end(server, lake)
    segments = bronze_segments(lake)
    assert_equals_binlog(segments, server)
    assert segments[-1].end_pos > sound


def _put(path: Path, at: int, byte: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(byte)


def test_checksums_switched_between_runs_change_nothing(own_server: Server, tmp_path: Path) -> None:
    """Nor does it matter for what is compared with the server at each start."""
    server = own_server
    try:
        for algorithm in ("CRC32", "NONE", "NONE", "CRC32", "NONE"):
            server.query(f"SET GLOBAL binlog_checksum = {algorithm}")
            for dump in DUMPS:
                capture_to_end(server, tmp_path / dump / "lake", dump=dump)
            _insert(server, "orders", [algorithm] * 2)
    finally:
        server.query("SET GLOBAL binlog_checksum = CRC32")
    for dump in DUMPS:
        capture_to_end(server, tmp_path / dump / "lake", dump=dump)
        segments = bronze_segments(tmp_path / dump / "lake")
        assert_equals_binlog(segments, server)
        assert (segments[-1].file, segments[-1].end_pos) == binlog_end(server)


@pytest.mark.parametrize("dump", DUMPS)
def test_the_file_that_a_restarted_server_began_is_known_again(own_server: Server, tmp_path: Path, dump: str) -> None:
    """By GTID the server leaves out when it started, by position, as it is asked once more, it doesn't."""
    lake = tmp_path / "lake"
    own_server.query("INSERT INTO shop.orders (name) VALUES ('before')")
    capture_to_end(own_server, lake, dump=dump)
    own_server.restart()
    own_server.query("INSERT INTO shop.orders (name) VALUES ('after')")
    capture_to_end(own_server, lake, dump=dump)
    newest = [segment for segment in bronze_segments(lake) if segment.has_bytes][-1]
    if (own_server.flavour, dump) != ("mariadb", "gtid"):  # it leaves out what frames transactions
        assert newest.start_pos == 4
    own_server.query("INSERT INTO shop.orders (name) VALUES ('later')")
    capture_to_end(own_server, lake, dump=dump)
    last = [segment for segment in bronze_segments(lake) if segment.has_bytes][-1]
    assert (last.file, last.end_pos) == binlog_end(own_server)


def test_the_same_server_under_another_name_of_its_log_goes_on_by_gtid_where_these_go_on(
    own_server: Server, tmp_path: Path
) -> None:
    """Numbers of files begin anew then. MariaDB's GTIDs do as well: that is a server that lost its log."""
    server = own_server
    for dump in DUMPS:
        capture_to_end(server, tmp_path / dump / "lake", dump=dump)
    server.query("INSERT INTO shop.orders (name) VALUES ('before')")
    for dump in DUMPS:
        capture_to_end(server, tmp_path / dump / "lake", dump=dump)
    options = server.options
    try:
        server.options = (*options, "--log-bin=renamed")
        server.restart()
        server.query("INSERT INTO shop.orders (name) VALUES ('behind')")
        with pytest.raises(PositionLost, match=r"renamed\.000001.*positions of one mean nothing at another.*accept"):
            capture_run(server, tmp_path / "position" / "lake", dump="position").run(300)
        if server.flavour == "mariadb":
            with pytest.raises(PositionLost, match="doesn't have transactions that were captured"):
                capture_run(server, tmp_path / "gtid" / "lake").run(300)
        else:
            capture_to_end(server, tmp_path / "gtid" / "lake")
            last = [segment for segment in bronze_segments(tmp_path / "gtid" / "lake") if segment.has_bytes][-1]
            assert (last.file, last.end_pos) == binlog_end(server)
            assert last.file == "renamed.000001"
            assert b"behind" in bytes(last.payload)
    finally:
        server.options = options
        server.restart()
