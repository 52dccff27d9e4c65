"""The bytes of a result: all of them, and a server that sends slowly is not woken up for at each piece."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.snapshot.reading.result import stream
from tidegate.snapshot.reading.result.stream import Receiver

INFO = ConnectionInfo("127.0.0.1", 1, "nobody")
LARGE = b"x" * (300 << 10)


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found = list[float]()
    monkeypatch.setattr(stream, "time", SimpleNamespace(sleep=found.append))
    return found


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def connection(sock: object) -> SimpleNamespace:
    return SimpleNamespace(_sock=sock, write_packet=lambda _: None)


def receive(receiver: Receiver, theirs: socket.socket, sent: bytes) -> None:
    """Piece by piece, as it comes."""
    for at in range(0, len(sent), 4096):
        theirs.sendall(sent[at : at + 4096])
        receiver.more()


def test_bytes_of_a_large_result_that_come_slowly_gather(
    pair: tuple[socket.socket, socket.socket], naps: list[float]
) -> None:
    ours, theirs = pair
    receiver = Receiver(connection(ours), INFO)
    receive(receiver, theirs, LARGE)
    assert bytes(receiver.view[: receiver.have]) == LARGE
    assert len(naps) == (44 << 10) // 4096 - 1  # not before 256 KiB
    receiver.command(3, b"")
    receive(receiver, theirs, b"y" * 8192)
    assert len(naps) == (44 << 10) // 4096 - 1, "a small result waits for nothing"
    assert receiver.have == len(LARGE) + 8192


def test_a_record_of_tls_is_small_however_much_there_is(naps: list[float]) -> None:
    tls = MagicMock(spec=ssl.SSLSocket)
    tls.recv_into.return_value = 16 << 10
    receiver = Receiver(connection(tls), INFO)
    for _ in range(40):
        receiver.more()
    assert receiver.have == 40 * (16 << 10)
    assert naps == []
