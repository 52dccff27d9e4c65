"""`make mariadb`: a MariaDB on this computer to practise with, until Ctrl-C.

In:  the port, as the only argument.
Out: a server on 127.0.0.1. Its data stay in .tidegate/mariadb. The program .tidegate/mariadb/sql runs SQL in it, as its
     administrator: `sql -e "SELECT 1"`, or a script on stdin. Ctrl-C and SIGTERM are its ordinary end: exit code 0.
"""

from __future__ import annotations

import shlex
import signal
import sys
import time
from pathlib import Path

from tidegate.errors import ProcessFailed, TidegateError, UsageError
from tidegate.home import EXIT_ERROR, EXIT_OK, home
from tidegate.local.mariadb import MariaDB, install
from tidegate.local.processes import sole

_TICK_SECONDS = 0.5


class PracticeServer(MariaDB):
    """A server without any account but its administrator's: the tutorial makes tidegate's account by hand."""

    def wait(self, *args: float) -> None:
        """As a Server's. Raises UsageError where another program has the port."""
        try:
            super().wait(*args)
        except ProcessFailed as error:
            if "ddress already in use" not in error.what:
                raise
            raise UsageError(
                f"port {self.port} is in use on this computer",
                where="make mariadb",
                remedy="end what uses it, or take another port: make mariadb PORT=3308",
            ) from None

    def _create_users(self) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            self._drop_open_accounts(cursor)


def main(port: str) -> int:
    root = home()
    state = root / ".tidegate" / "mariadb"
    if not port.isdecimal():
        raise UsageError(f"{port} is no port", where="make mariadb", remedy="give a number: make mariadb PORT=3307")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_OK))  # else make reports an error
    with sole(state, "make mariadb"), PracticeServer(state, install(root), port=int(port)) as server:
        program = _client(server, state / "sql")
        print(f"tidegate: MariaDB answers at {server.host}, port {server.port}; Ctrl-C ends it", flush=True)
        print(f"tidegate: SQL as its administrator: {program.relative_to(root)}", flush=True)
        while server.process is not None and server.process.poll() is None:
            time.sleep(_TICK_SECONDS)
    print(f"tidegate: MariaDB ended by itself; its log is {server.log}", file=sys.stderr)
    return EXIT_ERROR


def _client(server: MariaDB, path: Path) -> Path:
    """MariaDB's own client in a program without arguments of its own."""
    client = server.base / "bin" / "mariadb"
    arguments = [str(client), "--no-defaults", f"--socket={server.socket}", "--user=root", "--table"]
    path.write_text(f'#!/bin/sh\nexec {shlex.join(arguments)} "$@"\n')
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(EXIT_OK)
    except TidegateError as error:
        print(f"tidegate: {error}", file=sys.stderr)
        sys.exit(EXIT_ERROR)
