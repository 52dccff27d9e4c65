"""A MySQL-compatible server process of our own: start, stop, kill, restart, connect.

In:  a data folder, options, a port (0: a free one).
Out: a server on 127.0.0.1 that writes row-based binlogs with full images, full metadata and GTIDs.

The administrator (root, no password) can log in only through a socket in a private folder. Over TCP there is only the
user `tidegate`, with the grants of docs/source.md and a password made at start. It is created with the binlog off, so
the password's hash is in no binlog and in no lake.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR

from tidegate.errors import ProcessFailed
from tidegate.local import certificate
from tidegate.mysql.connecting.client import Client

_START_SECONDS = 90.0
_STOP_SECONDS = 60.0
_PORT_ATTEMPTS = 5


class Server(ABC):
    """One server; a context manager that starts it and, at the end, stops it.

    Attributes: host, port, user, password (of `tidegate`), flavour ("mariadb" | "mysql"), data (its folder).
    """

    flavour: ClassVar[str]
    grants: ClassVar[tuple[str, ...]]

    def __init__(self, data: Path, *, port: int = 0, options: tuple[str, ...] = ()) -> None:
        self.host = "127.0.0.1"
        self.port = port
        self.user = "tidegate"
        self.password = secrets.token_urlsafe(18)
        self.data = data.resolve()
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None
        self._wanted_port = port
        self._socket_folder: Path | None = None

    # --- what a flavour says -------------------------------------------------------------------
    @abstractmethod
    def initialise(self) -> None:
        """Fill an empty data folder."""

    @abstractmethod
    def command(self) -> list[str]:
        """The server's argument list, without port, socket, and self.options."""

    # --- life ----------------------------------------------------------------------------------
    def start(self) -> Self:
        """Start and wait until it answers; initialises an empty folder. Raises ProcessFailed or HostLacks."""
        self.data.mkdir(parents=True, exist_ok=True)
        self._end_stale()
        fresh = not (self.data / "data" / "mysql").is_dir()
        if fresh:
            self.initialise()
        if self._socket_folder is None:
            # A socket's path may have 107 bytes, which a deep checkout exceeds.
            self._socket_folder = Path(tempfile.mkdtemp(prefix="tidegate-"))
            atexit.register(self.stop)
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._launch()
            try:
                self.wait()
            except ProcessFailed:
                # Another process took the free port before the server bound it.
                taken = "ddress already in use" in self._log_reason()
                if not taken or self._wanted_port != 0 or attempt == _PORT_ATTEMPTS:
                    raise
                self.port = 0
            else:
                break
        if fresh:
            self._create_users()
        return self

    def stop(self) -> None:
        """Shut down in order; kills it when that takes too long. Harmless when it isn't running."""
        self._end(signal.SIGTERM)
        if self._socket_folder is not None:
            shutil.rmtree(self._socket_folder, ignore_errors=True)
            self._socket_folder = None
        atexit.unregister(self.stop)

    def kill(self) -> None:
        """SIGKILL: a crash, from which start() recovers."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start on the same port and data."""
        self._end(signal.SIGTERM)
        self.start()

    def wait(self, seconds: float = _START_SECONDS) -> None:
        """Wait until it answers. Raises ProcessFailed with the log's last line."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process is None or self.process.poll() is not None:
                break
            if self._listens():
                with contextlib.suppress(pymysql.err.OperationalError):  # it listens, but isn't ready yet
                    self.connect().close()
                    return
            time.sleep(0.05)
        raise ProcessFailed(
            f"{self.flavour} did not start: {self._log_reason()}", where=str(self.log), remedy="see its log"
        )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- use -----------------------------------------------------------------------------------
    def connect(self, database: str | None = None, **options: Any) -> Connection[Any]:
        """A connection with autocommit: as root through the socket, without TLS, whose handshake
        costs the server 4 ms of CPU; over TCP when options name a user.
        """
        settings: dict[str, Any] = {"database": database, "charset": "utf8mb4", "autocommit": True}
        settings |= options
        if "user" in options:
            return Client(**settings, host=self.host, port=self.port)
        connection = Client(**{"ssl_disabled": True, **settings}, user="root", defer_connect=True)
        opened = socket.socket(socket.AF_UNIX)
        try:
            opened.connect(str(self.socket))  # here: PyMySQL leaves a socket open that was refused
        except OSError as error:
            opened.close()
            raise pymysql.err.OperationalError(CR.CR_CONNECTION_ERROR, str(error)) from error
        connection.connect(opened)
        return connection

    def query(self, sql: str, args: tuple[Any, ...] = (), *, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run one statement as root and give its rows."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(sql, args or None)
            return list(cursor.fetchall())

    @property
    def variables(self) -> dict[str, str]:
        """The server's global variables, as they are now."""
        return {str(name): str(value) for name, value in self.query("SHOW GLOBAL VARIABLES")}

    @property
    def socket(self) -> Path:
        """The administrator's socket."""
        assert self._socket_folder is not None, "the server was never started"
        return self._socket_folder / "s"

    @property
    def certificate(self) -> Path:
        """The certificate by which a TLS client knows this server."""
        return self.data / "tls" / "certificate.pem"

    @property
    def log(self) -> Path:
        return self.data / "server.log"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the server isn't running"
        return self.process.pid

    # --- inside --------------------------------------------------------------------------------
    def _launch(self) -> None:
        self.port = self.port or free_port()
        public, private = certificate.ensure(self.data / "tls")
        arguments = [
            *self.command(),
            f"--ssl-cert={public}",
            f"--ssl-key={private}",
            f"--datadir={self.data / 'data'}",
            f"--socket={self.socket}",
            f"--port={self.port}",
            f"--bind-address={self.host}",
            f"--pid-file={self.data / 'pid'}",
            *self.options,
        ]
        with self.log.open("ab") as log:
            # A session of its own: Ctrl-C in the terminal must reach us, and not the server before us.
            self.process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _listens(self) -> bool:
        """Whether the socket takes connections; probed without PyMySQL, which leaks a socket per refusal."""
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def _end_stale(self) -> None:
        """A killed run leaves its server behind: end that before the same files are opened."""
        try:
            pid = int((self.data / "pid").read_text())
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return
        if f"--datadir={self.data / 'data'}".encode() not in arguments:
            return
        os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.05)

    def _create_users(self) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            self._drop_open_accounts(cursor)
            cursor.execute("CREATE USER %s@'%%' IDENTIFIED BY %s", (self.user, self.password))
            for grant in self.grants:
                cursor.execute(f"GRANT {grant} TO %s@'%%'", (self.user,))

    @staticmethod
    def _drop_open_accounts(cursor: Any) -> None:
        """Drop accounts without a password, except the administrator's at the socket."""
        cursor.execute("SELECT user, host FROM mysql.user WHERE (user = 'root' AND host <> 'localhost') OR user = ''")
        for user, host in cursor.fetchall():
            cursor.execute("DROP USER %s@%s", (user, host))

    def _log_tail(self, lines: int = 20) -> list[str]:
        try:
            return self.log.read_text(errors="replace").strip().splitlines()[-lines:]
        except FileNotFoundError:
            return []

    def _log_reason(self) -> str:
        """The first error in the log's tail: the last line only says that it ended."""
        tail = self._log_tail()
        return next((line for line in tail if "[ERROR]" in line), tail[-1] if tail else "its log is empty")


def free_port() -> int:
    """A TCP port on 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
