"""Delta tables for tests of the positional upsert, without Spark: delta-rs makes them, a test commits by hand.

In:  an Arrow schema. Out: snapshots as the log says them, and commits of actions as JSON. Only tests write a log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tidegate.delta.live_file import LiveFile
from tidegate.lake.files import LakeFiles
from tidegate.upsert.snapshot import SilverSnapshot

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

    def snapshot(self) -> SilverSnapshot:
        live: dict[tuple[str, str | None], dict[str, Any]] = {}
        schema: dict[str, Any] = {}
        partitions: tuple[str, ...] = ()
        commits = sorted(self.log.glob("*.json"))
        for commit in commits:
            for line in commit.read_text().splitlines():
                action = json.loads(line)
                if "add" in action:
                    live[_name(action["add"])] = action["add"]
                elif "remove" in action:
                    del live[_name(action["remove"])]
                elif "metaData" in action:
                    schema = json.loads(action["metaData"]["schemaString"])
                    partitions = tuple(action["metaData"]["partitionColumns"])
        return SilverSnapshot(
            uri=self.lake.uri(self.path),
            version=len(commits) - 1,
            files=tuple(LiveFile(add) for add in live.values()),
            schema=schema,
            partition_columns=partitions,
            configuration=dict(CONFIGURATION),
            features=frozenset({"deletionVectors"}),
            applied_ts=0,
            created=True,
        )

    def commit(self, removes: Iterable[LiveFile], adds: Iterable[Mapping[str, Any]]) -> None:
        lines: list[dict[str, Any]] = [{"commitInfo": {"timestamp": 0, "operation": "UPSERT"}}]
        for file in removes:
            kept = {
                k: file.action[k] for k in ("path", "partitionValues", "size", "deletionVector") if k in file.action
            }
            lines.append({"remove": {**kept, "deletionTimestamp": 1, "dataChange": True, "extendedFileMetadata": True}})
        lines += [{"add": dict(add)} for add in adds]
        text = "\n".join(json.dumps(line) for line in lines) + "\n"
        (self.log / f"{len(list(self.log.glob('*.json'))):020d}.json").write_text(text)


def _name(action: Mapping[str, Any]) -> tuple[str, str | None]:
    vector = action.get("deletionVector")
    return str(action["path"]), None if not vector else f"{vector['pathOrInlineDv']}@{vector.get('offset')}"
