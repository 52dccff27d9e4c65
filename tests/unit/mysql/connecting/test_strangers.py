"""What a stranger who answers at a source's address gets to hear: never the password.

In:  a server of a few lines, which greets like MySQL and asks for the password in each way that PyMySQL knows.
Out: a refusal by name, and what the stranger received.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA1

from tidegate.errors import SourceRefused
from tidegate.local.certificate import ensure
from tidegate.mysql.connecting.connection import ConnectionInfo, TlsMode, connect

PASSWORD = "s3cret-pass"
SALT = b"12345678abcdefghijkl"
FULL_LOGIN = b"\x01\x04"
_PLUGIN_AUTH, _SECURE, _PROTOCOL_41, _SSL = 1 << 19, 1 << 15, 1 << 9, 1 << 11


class Stranger:
    """Greets, then sends its questions one after the other. heard: all that it received, deciphered."""

    def __init__(self, plugin: bytes, questions: list[bytes], tls: ssl.SSLContext | None = None) -> None:
        self.heard: list[bytes] = []
        self._plugin, self._questions, self._tls = plugin, questions, tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        sock, _ = self._listener.accept()
        sock.settimeout(10)
        flags = _PLUGIN_AUTH | _SECURE | _PROTOCOL_41 | (_SSL if self._tls else 0)
        greeting = b"\n8.0.33\0" + struct.pack("<I", 1) + SALT[:8] + b"\0" + struct.pack("<H", flags & 0xFFFF)
        greeting += b"\xff" + struct.pack("<HH", 2, flags >> 16) + b"\x15" + bytes(10) + SALT[8:] + b"\0"
        self._send(sock, 0, greeting + self._plugin + b"\0")
        try:
            number = self._hear(sock)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
                number = self._hear(sock)
            for question in self._questions:
                self._send(sock, number + 1, question)
                number = self._hear(sock)
        except OSError:
            pass
        finally:
            sock.close()

    def _send(self, sock: socket.socket, number: int, body: bytes) -> None:
        sock.sendall(struct.pack("<I", len(body))[:3] + bytes([number % 256]) + body)

    def _hear(self, sock: socket.socket) -> int:
        head = sock.recv(4, socket.MSG_WAITALL) if not isinstance(sock, ssl.SSLSocket) else sock.recv(4)
        if len(head) < 4:
            raise OSError("it went away")
        size = int.from_bytes(head[:3], "little")
        body = b""
        while len(body) < size:
            body += sock.recv(size - len(body))
        self.heard.append(body)
        return head[3]

    def close(self) -> None:
        self._thread.join(10)
        self._listener.close()


@contextmanager
def stranger(plugin: bytes, questions: list[bytes], tls: ssl.SSLContext | None = None) -> Iterator[Stranger]:
    made = Stranger(plugin, questions, tls)
    try:
        yield made
    finally:
        made.close()


def switch(plugin: bytes, data: bytes) -> bytes:
    return b"\xfe" + plugin + b"\0" + data


def info(port: int, mode: TlsMode = TlsMode.PREFERRED, **more: str) -> ConnectionInfo:
    return ConnectionInfo("127.0.0.1", port, "tide", PASSWORD, tls=mode, **more)


ASKED = {
    "clear": (b"mysql_native_password", [switch(b"mysql_clear_password", b"")]),
    "dialog": (b"mysql_native_password", [switch(b"dialog", b"\x04Password: ")]),
    "old": (b"mysql_native_password", [switch(b"mysql_old_password", SALT)]),
}


@pytest.mark.parametrize("tls", [None, "unverified"])
@pytest.mark.parametrize("way", ASKED)
def test_a_stranger_that_asks_for_the_password_gets_nothing(way: str, tls: str | None, tmp_path: Path) -> None:
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*ensure(tmp_path))
    plugin, questions = ASKED[way]
    mode = TlsMode.REQUIRED if tls else TlsMode.PREFERRED
    with stranger(plugin, questions, context) as asked, pytest.raises(SourceRefused, match="asks for the password by"):
        connect(info(asked.port, mode))
    assert not any(PASSWORD.encode() in said for said in asked.heard)


@pytest.mark.parametrize(
    ("plugin", "questions"),
    [
        (b"caching_sha2_password", [FULL_LOGIN]),
        (b"mysql_native_password", [switch(b"caching_sha2_password", SALT + b"\0"), FULL_LOGIN]),
        (b"mysql_native_password", [switch(b"sha256_password", SALT + b"\0")]),
        (b"sha256_password", [b"\x01-----BEGIN PUBLIC KEY-----"]),
    ],
    ids=["caching_sha2", "switched", "sha256", "sha256 at once"],
)
def test_a_stranger_without_tls_gives_no_key_for_the_password(plugin: bytes, questions: list[bytes]) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    asking = [b"\x01" + pem if question.startswith(b"\x01-----") else question for question in questions]
    with (
        stranger(plugin, [*asking, b"\x01" + pem]) as asked,
        pytest.raises(SourceRefused, match=r"^tide@127.0.0.1:\d+: the server wants the password, and the connection"),
    ):
        connect(info(asked.port))
    assert all(len(said) < key.key_size // 8 or b"tide" in said for said in asked.heard), "nothing was enciphered"


def test_a_key_that_a_person_gave_is_what_the_password_is_enciphered_with(tmp_path: Path) -> None:
    own, other = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
    pem = [
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        for key in (own, other)
    ]
    (tmp_path / "key.pem").write_bytes(pem[0])
    with (
        stranger(b"caching_sha2_password", [FULL_LOGIN, b"\x01" + pem[1]]) as asked,
        pytest.raises(Exception),  # noqa: B017  what a stranger says behind it is no login
    ):
        connect(info(asked.port, TlsMode.DISABLED, public_key=str(tmp_path / "key.pem")))
    plain = own.decrypt(asked.heard[1], padding.OAEP(padding.MGF1(SHA1()), SHA1(), None))
    assert bytes(one ^ SALT[at % 20] for at, one in enumerate(plain)) == PASSWORD.encode() + b"\0"


def test_a_verified_server_may_have_it(tmp_path: Path) -> None:
    """As PAM accounts log in (mysql_clear_password, MariaDB's dialog)."""
    certificate, key = ensure(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with stranger(*ASKED["clear"], context) as asked, pytest.raises(Exception):  # noqa: B017
        connect(info(asked.port, TlsMode.VERIFY_IDENTITY, ca=str(certificate)))
    assert asked.heard[-1] == PASSWORD.encode() + b"\0"
