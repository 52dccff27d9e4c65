"""A real server of a test's own: either flavour, on a copy of data that were initialised once in this checkout.

In:  a flavour, a folder, options.
Out: own_server(): a Server, not started; own_server_or_skip(): the same, or a skipped test.

Initialising takes longer than all that most tests do with a server. MySQL 9 and MariaDB 11.8 can't be had everywhere:
their tests are then skipped with the reason; with TIDEGATE_REQUIRE_SERVERS=1, which CI sets, that is an error instead.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

import pytest

from tests.kit import mariadb118, mysql9
from tests.kit.mariadb118 import MariaDB118
from tidegate.errors import DownloadFailed, HostLacks
from tidegate.local import mariadb
from tidegate.local.ivy import locked
from tidegate.local.server import Server

ROOT: Final = Path(__file__).resolve().parents[2]
# What a server that is killed wrote is with the system; only a machine without power loses it, and no test makes one.
# A commit costs the server a quarter of the CPU, and no wait for the disk. A kill may still tear the page that is being
# written, so InnoDB keeps its doublewrite.
_UNSYNCED: Final = ("--sync-binlog=0",)
# A MariaDB's log gets a BINLOG_CHECKPOINT once InnoDB has flushed: a second late with this, behind a capture's end.
_UNFLUSHED: Final = "--innodb-flush-log-at-trx-commit=2"


def own_server(flavour: str, folder: Path, *, options: tuple[str, ...] = ()) -> Server:
    """flavour: mariadb, mariadb118 or mysql9. Raises HostLacks or DownloadFailed where there is none."""
    options = (*_UNSYNCED, *options) if flavour.startswith("mariadb") else (*_UNSYNCED, _UNFLUSHED, *options)
    if flavour == "mariadb":
        return _MariaDB(folder, mariadb.install(ROOT), options=options)
    if flavour == "mariadb118":
        return MariaDB118(folder, mariadb118.install(ROOT), options=options)
    return _MySQL9(folder, mysql9.install(ROOT), options=options)


def own_server_or_skip(flavour: str, folder: Path, *, options: tuple[str, ...] = ()) -> Server:
    """As own_server; the test is skipped where there is none."""
    try:
        return own_server(flavour, folder, options=options)
    except (HostLacks, DownloadFailed) as error:
        if os.environ.get("TIDEGATE_REQUIRE_SERVERS"):
            raise
        pytest.skip(f"no {flavour} here: {error}")


class _MariaDB(mariadb.MariaDB):
    def initialise(self) -> None:
        initialised = self.base / "initialised"
        if not initialised.exists():
            with locked(self.base.parent / ".initialised.lock"):
                if not initialised.exists():
                    super().initialise()
                    _keep(self.data / "data", initialised)
                    return
        shutil.copytree(initialised, self.data / "data", symlinks=True)


class _MySQL9(mysql9.MySQL9):
    def initialise(self) -> None:
        initialised = self.base / "root" / "initialised"  # goes when the packages are unpacked anew
        if not initialised.exists():
            with locked(self.base / ".initialised.lock"):
                if not initialised.exists():
                    super().initialise()
                    (self.data / "data" / "auto.cnf").unlink(missing_ok=True)  # each server has a UUID of its own
                    _keep(self.data / "data", initialised)
                    return
        shutil.copytree(initialised, self.data / "data", symlinks=True)


def _keep(data: Path, initialised: Path) -> None:
    """Copy beside and rename: half a copy is never taken for one."""
    scratch = Path(tempfile.mkdtemp(dir=initialised.parent))
    shutil.copytree(data, scratch / "data", symlinks=True)
    (scratch / "data").rename(initialised)
    scratch.rmdir()
