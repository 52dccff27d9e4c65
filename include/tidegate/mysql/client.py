"""PyMySQL's connection, for a tenth of its CPU.

In:  what pymysql.connect takes.
Out: Client. By itself PyMySQL reads all certificates that this machine trusts for each connection, 30 to 50 ms of CPU,
     also where it verifies none: without TLS files it encrypts when the server can, and asks no certificate.
"""

from __future__ import annotations

import ssl
from functools import cache
from typing import TYPE_CHECKING, Any

import pymysql.connections

if TYPE_CHECKING:  # generic in its stubs alone
    _Connection = pymysql.connections.Connection[Any]
else:
    _Connection = pymysql.connections.Connection


def unverified() -> ssl.SSLContext:
    """What encrypts, and asks no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# One for all: a context keeps nothing of the connections that it made.
_shared = cache(unverified)


class Client(_Connection):
    """As pymysql.connect gives it."""

    def _create_ssl_ctx(self, sslp: Any) -> Any:
        """An empty sslp: nobody asked for TLS, and the server may have none."""
        return super()._create_ssl_ctx(sslp) if sslp else _shared()  # type: ignore[misc]
