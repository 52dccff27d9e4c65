"""Backups of a lake, and one of them put back while its source has gone on.

In:  the lake, its pipeline file, the connection of its source.
Out: Copies: backup(), which may run beside others' work; restore(): the words of `tidegate lake restore`. Wrong where a
     command ends otherwise than it may, or silver that is put back is other than the one that was copied.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.soak.witness import Wrong
from tidegate.local.server import Server

_SECONDS: Final = 300
_PROGRAM: Final = "from tidegate.cli.main import run; run()"
# Of a lake that another backup was put back into, a later backup isn't renewed.
_REFUSED: Final = "tidegate: error: "


@dataclass(frozen=True, slots=True)
class Backup:
    """A folder. unlike: tables of silver that weren't as published; None: others wrote meanwhile. touched: tables with
    rows of somebody else; wider: with columns of somebody else.
    """

    folder: Path
    unlike: frozenset[str] | None
    touched: frozenset[str]
    wider: frozenset[str]


class Copies:
    """made: backups that can be put back, the oldest first."""

    def __init__(self, folder: Path, server: Server, file: Path, note: Callable[[str], None]) -> None:
        self._folder, self._server, self._file, self._note = folder, server, file, note
        self._number = 0
        self.made: list[Backup] = []

    def backup(
        self,
        touched: frozenset[str],
        wider: frozenset[str],
        renewed: Backup | None,
        meanwhile: Callable[[], None] | None,
    ) -> None:
        """Into a folder of its own, or the one of an earlier backup."""
        unlike = None if meanwhile else self.unlike()
        if renewed is None:
            self._number += 1
        folder = renewed.folder if renewed else self._folder / f"backup_{self._number}"
        process = self._started("backup", str(self._file), str(folder))
        if meanwhile is not None:
            meanwhile()
        out = self._ended(process)
        if process.returncode != 0 and renewed is not None and _REFUSED in out:
            return
        if process.returncode != 0 and "nor " not in out:  # a table that lacks files isn't in it
            raise Wrong(f"lake backup ended with {process.returncode}: {out[-1500:]}")
        self.made = [one for one in self.made if one is not renewed]
        self.made.append(Backup(folder, unlike, touched, wider))

    def restore(self, backup: Backup, lake: Path) -> None:
        """In the place of the lake that is there."""
        shutil.rmtree(lake)
        process = self._started("restore", str(self._file), str(backup.folder))
        out = self._ended(process)
        if process.returncode != 0 or "goes on by itself" not in out:
            raise Wrong(f"lake restore ended with {process.returncode}: {out[-1500:]}")
        unlike = self.unlike()
        if backup.unlike is not None and unlike != backup.unlike:
            raise Wrong(f"silver that was put back: {sorted(unlike)} aren't as published, were {sorted(backup.unlike)}")

    def unlike(self) -> frozenset[str]:
        """Tables that `tidegate lake check` names."""
        process = self._started("check", str(self._file), "--json")
        out = self._ended(process)
        if process.returncode not in (0, 1):
            raise Wrong(f"lake check ended with {process.returncode}: {out[-1500:]}")
        tables = json.loads(next(line for line in out.splitlines() if line.startswith('{"tables"')))["tables"]
        return frozenset(f"{table['table']} {table['unlike']}" for table in tables if table["unlike"] is not None)

    def _started(self, *words: str) -> subprocess.Popen[str]:
        server = self._server
        login = {"conn_type": "mysql", "host": server.host, "port": server.port, "login": server.user,
                 "password": server.password}  # fmt: skip
        environment = os.environ | {"AIRFLOW_CONN_ROAD_ONE": json.dumps(login)}
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, "lake", *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _ended(self, process: subprocess.Popen[str]) -> str:
        out, _ = process.communicate(timeout=_SECONDS)
        self._note("\n-- ".join([f"lake {process.args[4]}: {process.returncode}", *out.splitlines()[-12:]]))  # type: ignore[index]
        return out
