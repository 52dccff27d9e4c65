"""`mariadb-binlog --raw` (elsewhere called mysqlbinlog): a server's binlog files copied byte by byte.

In:  Debian's package mariadb-client with its libraries, unpacked under .tidegate/bench; no root rights.
Out: Copier; Missing when it can't be had. MySQL 9's mysqlbinlog, and MariaDB's older than 11, refuse MariaDB 11.4.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from benchmarks.figures import Missing
from benchmarks.workloads import Workload
from tests.kit import mysql9
from tidegate.errors import DownloadFailed, HostLacks
from tidegate.local.ivy import locked
from tidegate.local.server import Server

NAME = "mariadb-binlog --raw"


class Copier:
    """The program. version: what it says of itself."""

    def __init__(self, cache: Path) -> None:
        """Fetches it, the first time. Raises Missing."""
        base = cache / "mariadb-client"
        program = base / "root" / "usr" / "bin" / "mariadb-binlog"
        libraries = base / "root" / mysql9.LIBRARIES
        with locked(cache / ".lock"):
            if not program.exists():
                try:
                    mysql9.unpack(mysql9.download(base, ["mariadb-client"]), base)
                except (HostLacks, DownloadFailed) as error:
                    raise Missing(f"{NAME}: {error}") from error
        self._command = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries), str(program)]
        told = subprocess.run([*self._command, "--version"], capture_output=True, text=True, check=False)
        if told.returncode != 0:
            raise Missing(f"{NAME}: it doesn't run here: {(told.stderr or told.stdout).strip()[:200]}")
        self.version = NAME + " " + told.stdout.split("from ")[-1].split(",")[0].strip()

    def copy(self, server: Server, workload: Workload, folder: Path, *, synced: bool = False) -> None:
        """The workload's whole file into a folder. synced: it is on the disk. Raises Missing when not all
        of it came.
        """
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [
            *(*self._command, "--no-defaults", "--skip-ssl", "--read-from-remote-server", "--raw"),
            *("-h", server.host, "-P", str(server.port), "-u", server.user, f"--result-file={folder}/"),
            workload.path.name,
        ]
        done = subprocess.run(
            command, env=os.environ | {"MYSQL_PWD": server.password}, capture_output=True, text=True, check=False
        )
        path = folder / workload.path.name
        size = path.stat().st_size if path.exists() else 0
        if done.returncode != 0 or size != workload.bytes:
            words = (done.stderr.strip().splitlines() or [""])[0][:200]
            raise Missing(f"{NAME}: copied {size} of {workload.bytes} bytes: {words}")
        if synced:
            with path.open("rb") as file:
                os.fsync(file.fileno())
