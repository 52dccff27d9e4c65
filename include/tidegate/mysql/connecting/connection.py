"""How to reach a source: host, credentials, TLS; and a connection with its failures named.

In:  an Airflow connection (tidegate.connections).
Out: a PyMySQL connection, or SourceRefused (a person must help) or SourceUnavailable (try again).

A source may have several hosts, one of which is its primary now: `hosts` of the extra, tried in
order after the connection's own. mysql/servers/hosts.py chooses capture's host; every other caller
gets the first host to answer.

No message and no repr has the password. TLS keys of the extra: ssl_ca, ssl_cert, ssl_key (files),
and ssl_mode: disabled, preferred (encrypted if the server can), required (encrypted, not verified),
verify_ca, verify_identity. The default is the servers' own clients': preferred; with ssl_ca,
verify_identity. server_public_key (file): the server's RSA key, with which accounts of MySQL 8 may
log in without TLS.
"""

from __future__ import annotations

import contextlib
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pymysql
from pymysql.constants import CR, ER

from tidegate import limits
from tidegate.connections import Connection, from_environment, from_text
from tidegate.errors import ConfigError, SourceRefused, SourceUnavailable, TidegateError
from tidegate.mysql.connecting.client import Client, unverified
from tidegate.mysql.connecting.server_errors import ErrorMeaning, meaning_of

_TLS: Final = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_mode")
_SESSION: Final = "SET SESSION time_zone = '+00:00', wait_timeout = 86400, sql_select_limit = 18446744073709551615"
_ISOLATION: Final = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
# MySQL hides primary keys that it made itself from information_schema, if it is told to. They are in the log.
_SHOWS_KEYS: Final = "SET SESSION show_gipk_in_create_table_and_information_schema = ON"
_MAKES_KEYS_SINCE: Final = (8, 0, 30)
_REMEDIES: Final = {
    ErrorMeaning.DENIED: "check the login and password of the connection, and that the account may log in from here",
    ErrorMeaning.HOST_DENIED: "create an account for this host; FLUSH HOSTS there when it was blocked after failures",
    ErrorMeaning.NOT_GRANTED: "grant REPLICATION SLAVE, REPLICATION CLIENT (MariaDB: BINLOG MONITOR) and SELECT",
    ErrorMeaning.REFUSED: "correct the server's settings, the account, or the connection's extra",
}


class TlsMode(StrEnum):
    DISABLED = "disabled"
    PREFERRED = "preferred"
    REQUIRED = "required"
    VERIFY_CA = "verify_ca"
    VERIFY_IDENTITY = "verify_identity"


class Endpoint(NamedTuple):
    """A host and a port, printed as one reads them: an IPv6 address in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, port: int) -> Self:
        """`host`, `host:port`, `[IPv6]:port` or an IPv6 address. port: where none is named. Raises ValueError."""
        host, named = text.strip(), ""
        if "@" in host or "/" in host:  # a URI, perhaps with a password: it stands in no message
            raise ValueError("a URI")
        if host.startswith("["):
            host, closed, named = host[1:].partition("]")
            if not closed or (named and not named.startswith(":")):
                raise ValueError(text)
            named = named[1:]
        elif host.count(":") == 1:
            host, _, named = host.partition(":")
            named = named or "none"
        if not host or (named and not named.isdecimal()):
            raise ValueError(text)
        number = int(named) if named else port
        if not 0 < number < 1 << 16:
            raise ValueError(text)
        return cls(host, number)


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """Where a source is and who we are there; others: its further hosts, tried in order where this one fails.
    answer_seconds: how long an answer may take; None: any time.

    Values of `extra` other than TLS and hosts are left alone.
    """

    host: str
    port: int = 3306
    user: str = ""
    password: str = field(default="", repr=False)
    ca: str | None = None
    cert: str | None = None
    key: str | None = field(default=None, repr=False)
    tls: TlsMode = TlsMode.PREFERRED
    name: str = ""
    others: tuple[Endpoint, ...] = ()
    public_key: str | None = None
    answer_seconds: float | None = None

    @property
    def where(self) -> str:
        return f"{self.user}@{self.endpoint}"

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.host, self.port)

    @property
    def each(self) -> tuple[Self, ...]:
        """Each host by itself, in order."""
        alone = replace(self, others=())
        return (alone, *(replace(alone, host=other.host, port=other.port) for other in self.others))

    @classmethod
    def from_parts(
        cls, name: str, *, host: str, port: int | None, user: str, password: str, extra: Mapping[str, Any]
    ) -> Self:
        """From the fields of an Airflow connection. Raises ConfigError: no host, an unreadable one,
        ssl_mode.
        """
        hosts = _hosts(name, host, port or 3306, extra.get("hosts"))
        tls = _tls_settings(name, extra)
        mode = str(tls.get("ssl_mode") or ("verify_identity" if tls.get("ssl_ca") else "preferred")).lower()
        if mode not in list(TlsMode):
            raise ConfigError(f"ssl_mode is {mode!r}", where=name, remedy=f"one of {', '.join(TlsMode)}")
        return cls(
            host=hosts[0].host,
            port=hosts[0].port,
            user=user,
            password=password,
            ca=tls.get("ssl_ca"),
            cert=tls.get("ssl_cert"),
            key=tls.get("ssl_key"),
            tls=TlsMode(mode),
            name=name,
            others=hosts[1:],
            public_key=extra.get("server_public_key"),
        )

    @classmethod
    def of(cls, connection: Connection) -> Self:
        """Raises ConfigError for a connection without a host, or an unknown ssl_mode."""
        return cls.from_parts(
            connection.name,
            host=connection.host,
            port=connection.port,
            user=connection.login,
            password=connection.password,
            extra=connection.extra,
        )

    @classmethod
    def from_airflow_text(cls, name: str, text: str) -> Self:
        """From Airflow's text in AIRFLOW_CONN_<ID>. Raises ConfigError."""
        return cls.of(from_text(name, text))

    @classmethod
    def from_env(cls, conn_id: str, environment: Mapping[str, str] | None = None) -> Self:
        """Airflow's connection under this id in the environment. Raises ConfigError."""
        return cls.of(from_environment(conn_id, environment))


def _tls_settings(name: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """ssl_ca and so on, also from a mapping `ssl`. Raises ConfigError for an unknown name like theirs:
    whoever writes sslmode=required would be connected without TLS.
    """
    meant = (key for key, value in extra.items() if value)
    given = {key: extra[key] for key in meant if key.lower().startswith(("ssl", "tls"))}
    nested = given.get("ssl")
    if isinstance(nested, dict):
        given = {f"ssl_{key}": value for key, value in nested.items() if value} | given
        del given["ssl"]
    for key, value in sorted(given.items()):
        if key not in _TLS or (key != "ssl_mode" and not isinstance(value, str)):
            raise ConfigError(
                f"the TLS setting {key} of the extra isn't understood",
                where=name,
                remedy=f"known are {', '.join(_TLS)}; ssl_mode is {', '.join(TlsMode)}",
            )
    return given


def _hosts(name: str, host: str, port: int, listed: object) -> tuple[Endpoint, ...]:
    """The connection's own host, then those of its extra: a list, or a text with commas. Raises ConfigError."""
    texts = listed.split(",") if isinstance(listed, str) else (listed or [])
    remedy = 'hosts of the extra is a list like ["db1:3306", "db2:3306", "[2001:db8::3]:3306"]'
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ConfigError("hosts of the connection's extra isn't a list of hosts", where=name, remedy=remedy)
    try:
        endpoints = [Endpoint.parse(text, port) for text in texts]
    except ValueError as error:
        raise ConfigError(f"{error.args[0]!r} of the extra's hosts can't be read", where=name, remedy=remedy) from None
    twice = sorted({str(endpoint) for endpoint in endpoints if endpoints.count(endpoint) > 1})
    if twice:
        raise ConfigError(f"hosts of the extra names {twice[0]} twice", where=name, remedy="name each host once")
    if "@" in host or "/" in host:  # a URI, perhaps with a password: it stands in no message
        raise ConfigError(
            "the connection's host is no name or address", where=name, remedy="give the host alone, without a scheme"
        )
    if host:
        own = Endpoint(host.strip("[]"), port)
        endpoints = [own, *(endpoint for endpoint in endpoints if endpoint != own)]
    if not endpoints:
        raise ConfigError("the connection has no host", where=name, remedy="give it one")
    return tuple(endpoints)


def silence_seconds(heartbeat_seconds: float) -> float:
    """How long a stream with such heartbeats may be silent before its connection counts as lost."""
    return max(limits.SILENCE_SECONDS_MIN, limits.HEARTBEATS_MISSED_MAX * heartbeat_seconds)


def answer_seconds(heartbeat_seconds: float) -> float:
    """How long the reader waits for an answer: as long as for the stream, to find a dead network as
    soon.
    """
    return min(limits.ANSWER_SECONDS_MAX, silence_seconds(heartbeat_seconds))


def connect(info: ConnectionInfo, **options: Any) -> pymysql.connections.Connection[Any]:
    """An open connection (autocommit, utf8mb4, UTC). options: for PyMySQL.

    UTC, since in autumn's repeated hour a local time is two instants. It stays open if it is quiet
    for a day. Some defaults of servers are corrected: reads of uncommitted rows, a limit for the
    rows of a SELECT, hidden keys. With several hosts it is the first to answer.

    Raises SourceRefused or SourceUnavailable; of several hosts, the last one's error.
    """
    *first, last = info.each
    for host in first:
        with contextlib.suppress(SourceUnavailable, SourceRefused):
            return _connect(host, options)
    return _connect(last, options)


def _connect(info: ConnectionInfo, options: Mapping[str, Any]) -> pymysql.connections.Connection[Any]:
    settings: dict[str, Any] = {
        "autocommit": True,
        "charset": "utf8mb4",
        "connect_timeout": 10,
        "read_timeout": info.answer_seconds,
        "write_timeout": info.answer_seconds,
        "init_command": _SESSION,
        **options,
    }
    if info.tls is TlsMode.DISABLED:
        settings["ssl_disabled"] = True
    elif info.tls is not TlsMode.PREFERRED:  # which is what Client does by itself
        settings["ssl"] = _context(info)
    if info.public_key:
        settings["server_public_key"] = _key(info.public_key, info)
    try:
        # As the servers' own clients send it; PyMySQL would take a text for Latin-1.
        password = info.password.encode("utf-8", "surrogateescape")
        made = Client(host=info.host, port=info.port, user=info.user, password=password, **settings)
        try:
            made.query(_ISOLATION)
            if _makes_keys(str(made.get_server_info())):  # type: ignore[no-untyped-call]
                _show_keys(made)
        except BaseException:
            made.close()
            raise
    except (pymysql.err.MySQLError, OSError, RuntimeError) as error:
        raise named(error, info) from error
    return made


def _show_keys(made: pymysql.connections.Connection[Any]) -> None:
    """A server that takes no such variable makes no such keys: a MariaDB, a fork or a proxy may say any version."""
    try:
        made.query(_SHOWS_KEYS)
    except pymysql.err.MySQLError as error:
        if error.args[0] != ER.UNKNOWN_SYSTEM_VARIABLE:
            raise


def _makes_keys(version: str) -> bool:
    """Whether a server of this version may make invisible primary keys: MySQL alone."""
    number = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if number is None or "mariadb" in version.lower() or "tidb" in version.lower():
        return False
    return tuple(int(part) for part in number.groups()) >= _MAKES_KEYS_SINCE


def named(error: BaseException, info: ConnectionInfo) -> TidegateError:
    """The failure of a connection or a statement as one of ours: SourceRefused or SourceUnavailable."""
    if isinstance(error, TidegateError):
        return error
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    if (refused := _refusal(code, text, info)) is not None:
        return refused
    if code == CR.CR_CONN_HOST_ERROR and ("Name or service" in text or "getaddrinfo" in text or "resolution" in text):
        return SourceUnavailable(
            f"host {info.host!r} is unknown", where=info.where, remedy="check the host of the connection and the DNS"
        )
    if code == CR.CR_CONN_HOST_ERROR and "refused" in text:
        return SourceUnavailable(
            "connection refused", where=info.where, remedy="check that the server runs and listens on this port"
        )
    if meaning_of(code) is ErrorMeaning.COLLECTED:
        return SourceUnavailable(
            text, where=info.where, remedy="raise tidb_gc_life_time there above the time that reading a table takes"
        )
    if isinstance(error, pymysql.err.InterfaceError):  # PyMySQL's word for using a connection that has ended
        text = "the connection to the server has ended"
    return SourceUnavailable(
        text or "the connection is lost", where=info.where, remedy="check the server and the network"
    )


def _refusal(code: int, text: str, info: ConnectionInfo) -> SourceRefused | None:
    """Errors beyond any retry."""
    meaning = meaning_of(code)
    remedy = _REMEDIES.get(meaning)
    if remedy is None:
        return None
    if meaning is ErrorMeaning.DENIED:
        text = f"access denied for user {info.user!r} ({code})"
    elif meaning is ErrorMeaning.HOST_DENIED:
        text = "the server doesn't accept connections from this host"
    return SourceRefused(text, where=info.where, remedy=remedy)


def _key(path: str, info: ConnectionInfo) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"server_public_key can't be read: {error}", where=info.name or info.where, remedy="check the extra"
        ) from error


def _context(info: ConnectionInfo) -> ssl.SSLContext:
    try:
        verifies = info.tls is not TlsMode.REQUIRED
        context = ssl.create_default_context(cafile=info.ca) if verifies else unverified()
        if info.cert:
            context.load_cert_chain(info.cert, info.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"TLS files: {error}", where=info.name or info.where, remedy="check ssl_ca, ssl_cert, ssl_key"
        ) from error
    context.check_hostname = info.tls is TlsMode.VERIFY_IDENTITY
    return context
