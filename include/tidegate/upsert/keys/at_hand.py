"""Staged changes of one window in memory, if the process that decodes also writes silver.

In:  key files, and changes of tables with history, by path, from threads side by side.
Out: the same. Beyond limits.UPSERT_KEYS_BYTES_MAX (with their few rows) or VERSIONED_BYTES_MAX they go to the staging
     folder.
"""

from __future__ import annotations

from threading import Lock

import pyarrow as pa

from tidegate import limits
from tidegate.upsert.cost import KEY_RECORD_BYTES
from tidegate.upsert.keys.file import KeyFile


class KeyFilesAtHand:
    """bytes: of all key files kept so far. They count for the whole window: a window with more is given back, and isn't
    read.
    """

    def __init__(self) -> None:
        self._files: dict[str, KeyFile] = {}
        self._changes: dict[str, pa.Table] = {}
        self.bytes = self._changes_bytes = 0
        self._lock = Lock()

    def keep(self, path: str, keys: KeyFile) -> bool:
        """Whether there was room for them."""
        needed = keys.changes * KEY_RECORD_BYTES + (keys.rows.nbytes if keys.rows is not None else 0)
        with self._lock:
            if self.bytes + needed > limits.UPSERT_KEYS_BYTES_MAX:
                return False
            self.bytes += needed
            self._files[path] = keys
            return True

    def take(self, path: str) -> KeyFile | None:
        """Once; None when they aren't here."""
        return self._files.pop(path, None)

    def keep_changes(self, path: str, changes: pa.Table) -> bool:
        """Whether there was room for them."""
        with self._lock:
            if self._changes_bytes + changes.nbytes > limits.VERSIONED_BYTES_MAX:
                return False
            self._changes_bytes += changes.nbytes
            self._changes[path] = changes
            return True

    def changes(self, path: str) -> pa.Table | None:
        """As often as phases ask for them; None when they aren't here."""
        return self._changes.get(path)
