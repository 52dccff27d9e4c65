"""What a Delta table is at one version, kept in memory and carried forward by the log's own lines.

In:  the lines of commits (JSON), in order, or the rows of a classic checkpoint (Parquet).
Out: LogState: live files, transaction versions, metadata and protocol (PROTOCOL.md, "Action Reconciliation").

Reading a commit's few lines costs milliseconds; Delta's own state reconstruction is a Spark job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tidegate.delta.live_file import LiveFile
from tidegate.upsert.snapshot import SilverSnapshot

# What older protocols demand without naming it (PROTOCOL.md, "Writer Version Requirements" and readers').
_BY_WRITER_VERSION = (
    (2, ("appendOnly", "invariants")),
    (3, ("checkConstraints",)),
    (4, ("changeDataFeed", "generatedColumns")),
    (5, ("columnMapping",)),
    (6, ("identityColumns",)),
)
# A Python object costs about this many times the text it was parsed from.
_OBJECT_FACTOR = 3


@dataclass(slots=True)
class LogState:
    """A table's reconciled log. files: (path, id of its deletion vector) -> file, as the protocol keys them."""

    version: int = -1
    files: dict[tuple[str, str], LiveFile] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    protocol: dict[str, Any] = field(default_factory=dict)
    bytes: int = 0  # a rough measure of what it takes in memory
    _listed: tuple[LiveFile, ...] | None = None

    @property
    def table_id(self) -> str:
        """Changes when a table is dropped and made again at the same place."""
        return str(self.metadata.get("id", ""))

    def apply(self, version: int, lines: Iterable[str]) -> None:
        """Carry the state forward by one commit; it must be the next one."""
        assert self.version in (version - 1, -1), "commits are applied in order"
        for line in lines:
            if line:
                self._apply(json.loads(line), len(line))
        self.version = version
        self._listed = None

    def restore(self, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
        """Take a checkpoint's actions."""
        for action in actions:
            self._apply(action, len(str(action)))
        self.version = version
        self._listed = None

    def _apply(self, action: Mapping[str, Any], size: int) -> None:
        if add := action.get("add"):
            self.files[_key(add)] = LiveFile(add)
            self.bytes += size * _OBJECT_FACTOR
        elif remove := action.get("remove"):
            gone = self.files.pop(_key(remove), None)
            if gone is not None:
                self.bytes = max(0, self.bytes - len(str(gone.action)) * _OBJECT_FACTOR)
        elif txn := action.get("txn"):
            self.transactions[str(txn["appId"])] = int(txn["version"])
        elif metadata := action.get("metaData"):
            self.metadata = dict(metadata)
        elif protocol := action.get("protocol"):
            self.protocol = dict(protocol)

    def copy(self) -> LogState:
        """Another state to carry forward while readers hold this one."""
        return LogState(
            self.version, dict(self.files), dict(self.transactions), self.metadata, self.protocol, self.bytes, None
        )

    def listed(self) -> tuple[LiveFile, ...]:
        if self._listed is None:
            self._listed = tuple(self.files.values())
        return self._listed

    def snapshot(self, uri: str, app_id: str) -> SilverSnapshot:
        """The state as the writers see it."""
        created = self.version >= 0
        return SilverSnapshot(
            uri=uri,
            version=self.version,
            files=self.listed(),
            schema=json.loads(self.metadata["schemaString"]) if created else {"type": "struct", "fields": []},
            partition_columns=tuple(self.metadata.get("partitionColumns") or ()),
            configuration=dict(self.metadata.get("configuration") or {}),
            features=features(self.protocol),
            applied_ts=self.transactions.get(app_id, 0),
            created=created,
        )


def _key(action: Mapping[str, Any]) -> tuple[str, str]:
    vector = action.get("deletionVector")
    if not vector:
        return str(action["path"]), ""
    offset = vector.get("offset")
    tail = "" if offset is None else f"@{offset}"
    return str(action["path"]), f"{vector['storageType']}{vector['pathOrInlineDv']}{tail}"


def features(protocol: Mapping[str, Any]) -> frozenset[str]:
    """Names of the table features in force, those of old protocol versions included."""
    named = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    version = int(protocol.get("minWriterVersion", 0))
    if version < 7:
        named.update(name for least, names in _BY_WRITER_VERSION if version >= least for name in names)
    return frozenset(named)


def checkpoint_actions(table: pa.Table) -> list[dict[str, Any]] | None:
    """A classic checkpoint's actions as in the log's JSON; None when it holds them elsewhere or otherwise.

    table: the checkpoint's Parquet file(s), with columns add, txn, metaData, protocol and perhaps sidecar.
    """
    if "sidecar" in table.column_names and table["sidecar"].null_count < table.num_rows:
        return None
    actions: list[dict[str, Any]] = []
    for name in ("protocol", "metaData", "txn", "add"):
        if name not in table.column_names:
            return None
        for value in table[name].drop_null().to_pylist():
            action = _plain(value)
            if name == "add" and "stats" not in action and "stats_parsed" in value:
                return None  # statistics only as a struct: Delta knows how to print them
            actions.append({name: action})
    return actions


_MAPS = frozenset({"partitionValues", "tags", "configuration", "options"})


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """A Parquet row as the log's JSON: no nulls, maps as objects, no parsed duplicates."""
    plain: dict[str, Any] = {}
    for name, item in value.items():
        if item is None or name.endswith("_parsed"):
            continue
        if name in _MAPS:
            plain[name] = dict(item)
        else:
            plain[name] = _plain(item) if isinstance(item, dict) else item
    return plain
