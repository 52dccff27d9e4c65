"""The newest version of a Delta table, asked for again and again as cheaply as it can be, and what its commits say.

In:  a table's place (local folder or store URL) and the store's options.
Out: its version, or -1 while there is no table; the text of a commit.

A log is a folder of files named by version: one look for the next name answers, where opening the table would
read the log and keep every file's statistics in memory. Nothing heavy is imported before a store is asked:
Airflow's processes import this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

_COMMIT = re.compile(r"^(\d{20})\.json$")
_MISSING = -1
# A store is asked this seldom whether the version that we know is still there (a look is a request that costs money).
_LOOKS_TRUSTED = 20


class DeltaLog(Protocol):
    """Something that can be asked about a table's log; blocks while it looks."""

    def latest(self) -> int:
        """The newest version; -1 without a table."""

    def commit(self, version: int) -> str | None:
        """The actions of a version, one JSON object per line; None when the log no longer has them."""


def delta_log(place: str, options: Mapping[str, str]) -> DeltaLog:
    """The right way to look at a table at a local path (file:// too) or a store's URL."""
    if place.startswith("file://"):
        return LocalDeltaLog(Path(place.removeprefix("file://")))
    if "://" in place:
        return StoreDeltaLog(place, options)
    return LocalDeltaLog(Path(place))


class LocalDeltaLog:
    """Follow the commit files of a table in a local folder."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._known = _MISSING

    def latest(self) -> int:
        """The newest version, -1 without a table. A table made anew starts again at its own version."""
        if self._known == _MISSING or not self._commit(self._known).exists():
            self._known = self._list()
        while self._known != _MISSING and self._commit(self._known + 1).exists():
            self._known += 1
        return self._known

    def commit(self, version: int) -> str | None:
        """The commit file's text; None when it was cleaned up."""
        try:
            return self._commit(version).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def _commit(self, version: int) -> Path:
        return self._log / f"{version:020d}.json"

    def _list(self) -> int:
        """Read the folder once: at the start, and when the version we knew has been cleaned up."""
        if not self._log.is_dir():
            return _MISSING
        found = (_COMMIT.match(entry.name) for entry in self._log.iterdir())
        return max((int(match[1]) for match in found if match), default=_MISSING)


class StoreDeltaLog:
    """Follow the commit files of a table in an object store: a look is one request, whatever the table's size."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self._url = url
        self._options = dict(options)
        self._known = _MISSING
        self._looks = 0
        self._log: Any = None

    def latest(self) -> int:
        """The newest version, -1 without a table. Raises the store's own error when it can't be asked."""
        self._looks += 1
        if self._known == _MISSING or (self._looks % _LOOKS_TRUSTED == 0 and not self._exists(self._known)):
            self._known = self._open()
        while self._known != _MISSING and self._exists(self._known + 1):
            self._known += 1
        return self._known

    def commit(self, version: int) -> str | None:
        """The commit file's text; None when it was cleaned up."""
        try:
            with self._files().open_input_file(f"{version:020d}.json") as file:
                return bytes(file.read()).decode()
        except FileNotFoundError:
            return None

    def _exists(self, version: int) -> bool:
        from pyarrow import fs

        return bool(self._files().get_file_info(f"{version:020d}.json").type == fs.FileType.File)

    def _open(self) -> int:
        """Read the whole log once: at the start, and when the version we knew has been cleaned up."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return int(DeltaTable(self._url, storage_options=self._options).version())
        except TableNotFoundError:
            return _MISSING

    def _files(self) -> Any:
        from deltalake.fs import DeltaStorageHandler
        from pyarrow import fs

        if self._log is None:
            self._log = fs.PyFileSystem(DeltaStorageHandler(f"{self._url}/_delta_log", self._options))
        return self._log
