"""MariaDB 11.8 for tests, from the Debian packages of the machine's own mirror, as MySQL 9 (tests/kit/mysql9.py).

In:  what tests/kit/mysql9.py needs.
Out: an unpacked server and a Server class.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.kit import mysql9
from tidegate.errors import ProcessFailed
from tidegate.local import mariadb
from tidegate.local.ivy import locked
from tidegate.local.processes import run_whole

_PACKAGES = ("mariadb-server-core", "mariadb-client-core")


class MariaDB118(mariadb.MariaDB):
    """From an unpacked folder (see install), with the C library that came with it."""

    def initialise(self) -> None:
        """The server reads what mariadb-install-db would give it: that script runs no program by its loader."""
        share = self.base / "root" / "usr" / "share" / "mariadb"
        names = (
            "mariadb_system_tables.sql",
            "mariadb_performance_tables.sql",
            "mariadb_system_tables_data.sql",
            "fill_help_tables.sql",
            "maria_add_gis_sp_bootstrap.sql",
            "mariadb_sys_schema.sql",
        )
        (self.data / "data" / "mysql").mkdir(parents=True, exist_ok=True)
        script = "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n" + "".join(
            (share / name).read_text() for name in names if (share / name).exists()
        )
        statements = self.data / "bootstrap.sql"
        statements.write_text(script)
        done = run_whole(
            [
                "/bin/sh",
                "-c",
                'exec "$@" < "$0"',
                str(statements),
                *self._program(),
                f"--datadir={self.data / 'data'}",
                "--bootstrap",
                "--innodb-log-file-size=32M",
                "--max-allowed-packet=8M",
                *(["--user=root"] if os.geteuid() == 0 else []),
            ]
        )
        if done.returncode != 0:
            self.log.write_text(done.stdout)
            raise ProcessFailed("mariadbd --bootstrap failed", where=str(self.log), remedy="see its log")

    def command(self) -> list[str]:
        """As the embedded one, from its own folder."""
        given = super().command()
        return [*self._program(), *(one for one in given[2:] if not one.startswith(("--basedir", "--lc-messages-dir")))]

    def _program(self) -> list[str]:
        return mysql9.unpacked(self.base, "mariadbd", "mariadb")


def install(root: Path) -> Path:
    """Folder of the unpacked server, root/.tidegate/mariadb118. Raises HostLacks or DownloadFailed."""
    base = root / ".tidegate" / "mariadb118"
    with locked(root / ".tidegate" / ".mariadb118.lock"):
        if not (base / "root" / "usr" / "sbin" / "mariadbd").exists():
            mysql9.unpack(mysql9.download(base, _PACKAGES), base)
    return base
