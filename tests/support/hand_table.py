"""Delta tables for tests of the positional upsert, without Spark: delta-rs makes them, a test commits by hand.

In:  an Arrow schema. Out: states, and commits of actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import moved
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.lake.files import LakeFiles

CONFIGURATION = {"delta.enableDeletionVectors": "true"}


@dataclass(frozen=True)
class HandTable:
    """A table under a local lake; path: relative to it."""

    lake: LakeFiles
    path: str

    @classmethod
    def create(cls, root: Path, schema: pa.Schema, partition_by: Sequence[str] = ()) -> HandTable:
        made = cls(LakeFiles(str(root)), "silver/shop/orders")
        uri = made.lake.uri(made.path)
        DeltaTable.create(uri, schema=schema, partition_by=list(partition_by), configuration=CONFIGURATION)
        return made

    @property
    def log(self) -> Path:
        return Path(self.lake.uri(self.path)) / "_delta_log"

    def snapshot(self) -> TableState:
        return DeltaLog(self.lake.uri(self.path)).state()

    def commit(self, removes: Iterable[LiveFile], adds: Iterable[Mapping[str, Any]]) -> None:
        log = DeltaLog(self.lake.uri(self.path))
        log.commit(log.state(), Change(moved(list(removes), list(adds), data_change=True), "UPSERT"))
