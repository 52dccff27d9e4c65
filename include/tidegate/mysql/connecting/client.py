"""PyMySQL's connection for a tenth of its CPU, and with less trust in the server.

In:  the arguments of pymysql.connect.
Out: Client. PyMySQL alone reads all trusted certificates of this machine for each connection, 30 to
     50 ms of CPU, even if it verifies none. Without TLS files, Client encrypts if the server can,
     and reads no certificates.

PyMySQL sends the password in clear text to any server asking for it, and encrypts it with any given
key. The servers' own clients don't, nor does Client: it raises SourceRefused.
"""

from __future__ import annotations

import ssl
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pymysql.connections

from tidegate.errors import SourceRefused

if TYPE_CHECKING:  # generic in its stubs alone
    _Connection = pymysql.connections.Connection[Any]
else:
    _Connection = pymysql.connections.Connection


def unverified() -> ssl.SSLContext:
    """A context for encryption without checks of certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# One for all: a context keeps nothing of the connections that it made.
_shared = cache(unverified)


# Ways of logging in that send the password as it is.
_CLEAR: Final = (b"mysql_clear_password", b"dialog")
# One that hides it so badly that whoever sees a few logins knows it.
_BROKEN: Final = b"mysql_old_password"


class Client(_Connection):
    """As pymysql.connect gives it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """server_public_key: to encrypt a password for the server, where the connection isn't
        encrypted.
        """
        self._public_key: bytes | None = options.pop("server_public_key", None)  # before PyMySQL's, which connects
        super().__init__(*arguments, **options)

    def _create_ssl_ctx(self, sslp: Any) -> Any:
        """An empty sslp: nobody asked for TLS, and the server may have none."""
        return super()._create_ssl_ctx(sslp) if sslp else _shared()  # type: ignore[misc]

    def _process_auth(self, plugin_name: bytes, auth_packet: Any, handler: Any = None) -> Any:
        """Called with the server's way of logging in."""
        if plugin_name == _BROKEN or (plugin_name in _CLEAR and not self._is_verified):
            raise self._refused(
                f"the server asks for the password by {plugin_name.decode()}",
                "look who answers there; it gets it over TLS with a verified certificate alone (ssl_ca of the extra)"
                if plugin_name in _CLEAR
                else "give the account another way to log in",
            )
        return super()._process_auth(plugin_name, auth_packet, handler)  # type: ignore[misc]

    @property
    def _is_verified(self) -> bool:
        """Whether a certificate said who the server is."""
        return isinstance(self._sock, ssl.SSLSocket) and self._sock.context.verify_mode is ssl.CERT_REQUIRED  # type: ignore[attr-defined]

    @property
    def server_public_key(self) -> bytes:
        """Asked for by PyMySQL where the connection isn't encrypted and the server wants the password itself."""
        if self._public_key is None:
            raise self._refused(
                "the server wants the password, and the connection isn't encrypted",
                "look who answers there; let the server speak TLS, or give the extra server_public_key, a file with its"
                " RSA key",
            )
        return self._public_key

    @server_public_key.setter
    def server_public_key(self, key: bytes | None) -> None:
        """PyMySQL's own value: None as it begins; then whatever key a server sends, which is nobody's word."""

    def _refused(self, what: str, remedy: str) -> SourceRefused:
        user = self.user.decode(errors="replace") if isinstance(self.user, bytes) else self.user
        return SourceRefused(what, where=f"{user}@{self.host}:{self.port}", remedy=remedy)
