"""The part of a lake's files that its format is read from.

In:  -
Out: LakeFolder, which tidegate.lake.files.LakeFiles is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from tidegate.delta.log import DeltaLog
from tidegate.delta.stores.store import LogStore


class LakeFolder(Protocol):
    """A lake whose format isn't known yet. Paths are relative to root."""

    @property
    def root(self) -> str: ...

    def log(self, path: str) -> DeltaLog: ...

    def store(self, path: str) -> LogStore: ...

    def open(self, path: str) -> pa.NativeFile: ...

    def listed(self, path: str) -> Sequence[pafs.FileInfo]: ...
