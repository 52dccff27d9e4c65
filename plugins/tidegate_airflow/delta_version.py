"""The newest version of a Delta table, asked for again and again as cheaply as it can be.

In:  a table's place (local folder or store URL) and the store's options.
Out: its version, or -1 while there is no table.

A local log is a folder of files named by version: one look for the next name answers, where opening the
table would read the log. A store is asked through delta-rs, which reads only what it hasn't seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

_COMMIT = re.compile(r"^(\d{20})\.json$")
_MISSING = -1


class DeltaVersion(Protocol):
    """Something that can be asked for a table's newest version; blocks while it looks."""

    def latest(self) -> int: ...


def delta_version(place: str, options: Mapping[str, str]) -> DeltaVersion:
    """The right way to look at a table at a local path (file:// too) or a store's URL."""
    if place.startswith("file://"):
        return LocalDeltaVersion(Path(place.removeprefix("file://")))
    if "://" in place:
        return StoreDeltaVersion(place, options)
    return LocalDeltaVersion(Path(place))


class LocalDeltaVersion:
    """Follow the commit files of a table in a local folder."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._known = _MISSING

    def latest(self) -> int:
        """The newest version, -1 without a table. A table made anew starts again at its own version."""
        if self._known == _MISSING or not self._commit(self._known).exists():
            self._known = self._list()
        while self._commit(self._known + 1).exists():
            self._known += 1
        return self._known

    def _commit(self, version: int) -> Path:
        return self._log / f"{version:020d}.json"

    def _list(self) -> int:
        """Read the folder once: at the start, and when the version we knew has been cleaned up."""
        if not self._log.is_dir():
            return _MISSING
        found = (_COMMIT.match(entry.name) for entry in self._log.iterdir())
        return max((int(match[1]) for match in found if match), default=_MISSING)


class StoreDeltaVersion:
    """Follow a table in an object store."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self._url = url
        self._options = dict(options)
        self._table: Any = None

    def latest(self) -> int:
        """The newest version, -1 without a table. Raises delta-rs's own error when the store can't be asked."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        if self._table is None:
            try:
                self._table = DeltaTable(self._url, storage_options=self._options)
            except TableNotFoundError:
                return _MISSING
        else:
            self._table.update_incremental()
        return int(self._table.version())
