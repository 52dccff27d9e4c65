"""Backups of a lake, and one of them put back while its sources have gone on.

In:  the pipeline file, a folder for backups, its sources' connections as variables of the environment.
Out: Copies: backup(), which may run beside others' work; restore(): the words of `tidegate lake restore`. Wrong where a
     command ends otherwise than it may, or silver that is put back is other than the one that was copied.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from tests.soak.witness import Wrong
from tidegate.local.server import Server

_SECONDS: Final = 300
_REMOVE_TIMES_MAX: Final = 100
_REMOVE_PAUSE_SECONDS: Final = 0.2
_PROGRAM: Final = "from tidegate.cli.main import run; run()"
# Of a lake that another backup was put back into, a later backup isn't renewed.
_REFUSED: Final = "it isn't the lake of the earlier backup any more"
_GOES_ON: Final = "goes on by itself"
_NOT_IN_IT: Final = re.compile(r"^silver/(\S+) isn't in the backup", re.MULTILINE)
Memory = TypeVar("Memory")


@dataclass(frozen=True, slots=True)
class Backup(Generic[Memory]):
    """A folder. unlike: tables of silver that weren't as published; None: others wrote meanwhile. memory: what its
    maker knew when it began.
    """

    folder: Path
    unlike: frozenset[str] | None
    memory: Memory


class Copies(Generic[Memory]):
    """made: backups that can be put back, the oldest first."""

    def __init__(self, folder: Path, file: Path, environment: Mapping[str, str], note: Callable[[str], None]) -> None:
        """environment: a variable per source."""
        self._folder, self._file, self._environment, self._note = folder, file, dict(environment), note
        self._number = 0
        self.made: list[Backup[Memory]] = []

    def backup(
        self,
        memory: Memory,
        renewed: Backup[Memory] | None,
        meanwhile: Callable[[], None] | None,
        *,
        killed_after: float = 0.0,
    ) -> None:
        """Into a folder of its own, or the one of an earlier backup. killed_after: seconds, then it is begun again."""
        unlike = None if meanwhile else self.unlike()
        if renewed is None:
            self._number += 1
        folder = renewed.folder if renewed else self._folder / f"backup_{self._number}"
        if killed_after:
            self._killed(killed_after, "backup", str(self._file), str(folder))
        process = self._started("backup", str(self._file), str(folder))
        if meanwhile is not None:
            meanwhile()
        out = self._ended(process)
        if process.returncode != 0 and renewed is not None and _REFUSED in out:
            return
        if process.returncode != 0 and "nor " not in out:  # a table that lacks files isn't in it
            raise Wrong(f"lake backup ended with {process.returncode}: {out[-1500:]}")
        self.made = [one for one in self.made if one is not renewed]
        self.made.append(Backup(folder, unlike, memory))

    def keep(self, most: int) -> None:
        """The newest; the others are removed."""
        for old in self.made[:-most]:
            shutil.rmtree(old.folder)
        self.made = self.made[-most:]

    def restore(self, backup: Backup[Memory], lake: Path) -> frozenset[str]:
        """In the place of the lake that is there. Tables (database.table) whose silver isn't as it was published."""
        _empty(lake)
        process = self._started("restore", str(self._file), str(backup.folder))
        out = self._ended(process)
        if process.returncode != 0 or out.count(_GOES_ON) < len(self._environment):
            raise Wrong(f"lake restore ended with {process.returncode}: {out[-1500:]}")
        unlike = self.unlike()
        if backup.unlike is not None and unlike != backup.unlike:
            raise Wrong(f"silver that was put back: {sorted(unlike)} aren't as published, were {sorted(backup.unlike)}")
        lacking = {path.replace("/", ".") for path in _NOT_IN_IT.findall(out)}
        return frozenset({words.partition(" ")[0] for words in unlike} | lacking)

    def unlike(self) -> frozenset[str]:
        """Tables that `tidegate lake check` names, and how they are."""
        process = self._started("check", str(self._file), "--json")
        out = self._ended(process)
        if process.returncode not in (0, 1):
            raise Wrong(f"lake check ended with {process.returncode}: {out[-1500:]}")
        tables = json.loads(next(line for line in out.splitlines() if line.startswith('{"tables"')))["tables"]
        return frozenset(f"{table['table']} {table['unlike']}" for table in tables if table["unlike"] is not None)

    def _started(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, "lake", *words],
            env=os.environ | self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _killed(self, seconds: float, *words: str) -> None:
        process = self._started(*words)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        self._ended(process)

    def _ended(self, process: subprocess.Popen[str]) -> str:
        out, _ = process.communicate(timeout=_SECONDS)
        self._note("\n-- ".join([f"lake {process.args[4]}: {process.returncode}", *out.splitlines()[-12:]]))  # type: ignore[index]
        return out


def login(server: Server) -> str:
    """The connection of a source, as a variable of the environment has it."""
    words = {"conn_type": "mysql", "host": server.host, "port": server.port, "login": server.user}
    return json.dumps(words | {"password": server.password})


def _empty(folder: Path) -> None:
    """What is mounted in it stays, and is empty, too."""
    for path in folder.iterdir():
        if path.is_mount():
            _empty(path)
        elif path.is_dir():
            _remove(path)
        else:
            path.unlink()


def _remove(folder: Path) -> None:
    """A task of Spark may outlive the driver that was killed, and write there: the JVM is the soak's own."""
    for _ in range(_REMOVE_TIMES_MAX):
        with suppress(OSError):
            shutil.rmtree(folder)
            return
        time.sleep(_REMOVE_PAUSE_SECONDS)
    shutil.rmtree(folder)
