"""Actions of a Delta log as dicts, one per line of a commit.

In:  the parts of a commit: removed and added files, a new schema, a transaction version.
Out: {kind: body}, as in PROTOCOL.md, "Actions".
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import Action
from tidegate.limits import ACTION_USER_CHARACTERS_MAX

_ENGINE: Final = "tidegate"
_KEPT_IN_REMOVE: Final = (
    "path",
    "partitionValues",
    "size",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
    "stats",
)
# With table features (PROTOCOL.md, "Protocol Evolution").
_READER_VERSION: Final = 3
_WRITER_VERSION: Final = 7
# Features that a reader must know, too.
_READER_FEATURES: Final = frozenset(
    {
        *("deletionVectors", "timestampNtz", "columnMapping", "v2Checkpoint", "vacuumProtocolCheck"),
        *("typeWidening", "typeWidening-preview", "variantType", "variantType-preview"),
    }
)


def now_ms() -> int:
    """Unix milliseconds."""
    return int(time.time() * 1000)


def commit_info(operation: str, attempt: str, *, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The commit's commitInfo. attempt: an id by which a writer recognises its own commit."""
    return {
        "commitInfo": {
            "timestamp": now_ms(),
            "operation": operation,
            # Spark reads each value as JSON text.
            "operationParameters": {name: json.dumps(value) for name, value in (parameters or {}).items()},
            "isolationLevel": "Serializable",
            "engineInfo": _ENGINE,
            "txnId": attempt,
        }
    }


def info_of(actions: Iterable[Action]) -> Mapping[str, Any]:
    """A commit's commitInfo; {} if it has none, or one of another form."""
    for action in actions:
        info = action.get("commitInfo")
        if isinstance(info, Mapping):
            return info
    return {}


def operation_and_engine(actions: Iterable[Action]) -> tuple[str, str]:
    """A commit's operation and writer, for people: each may be empty. The cells may have any type and length."""
    info = info_of(actions)
    operation, engine = (
        cell[:ACTION_USER_CHARACTERS_MAX] if isinstance(cell := info.get(name), str) else ""
        for name in ("operation", "engineInfo")
    )
    return operation, engine


def made_by_us(actions: Iterable[Action]) -> bool:
    """Whether a commit has this module's commit_info."""
    return info_of(actions).get("engineInfo") == _ENGINE


def metadata(
    schema: Mapping[str, Any],
    configuration: Mapping[str, str],
    *,
    partition_columns: Sequence[str] = (),
    description: str = "",
    table_id: str = "",
) -> dict[str, Any]:
    """A `metaData` action. schema: as the log has it. table_id: a new one when empty."""
    body = {
        "id": table_id or str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema, ensure_ascii=False, separators=(",", ":")),
        "partitionColumns": list(partition_columns),
        "configuration": dict(configuration),
        "createdTime": now_ms(),
    }
    return {"metaData": body | ({"description": description} if description else {})}


def protocol(features: Iterable[str]) -> dict[str, Any]:
    """The `protocol` action of a table with exactly these features; (1, 2) for none."""
    named = set(features)
    if not named:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    readers = sorted(named & _READER_FEATURES)
    body: dict[str, Any] = {
        "minReaderVersion": _READER_VERSION if readers else 1,
        "minWriterVersion": _WRITER_VERSION,
        "writerFeatures": sorted(named),
    }
    return {"protocol": body | ({"readerFeatures": readers} if readers else {})}


def clustering(columns: Sequence[str]) -> dict[str, Any]:
    """The `domainMetadata` action that names clustering columns (PROTOCOL.md, "Clustered Table")."""
    described = {"clusteringColumns": [[name] for name in columns], "domainName": "delta.clustering"}
    return domain("delta.clustering", json.dumps(described, separators=(",", ":"), ensure_ascii=False))


def domain(name: str, configuration: str, *, removed: bool = False) -> dict[str, Any]:
    """A `domainMetadata` action."""
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


def transaction(app_id: str, version: int) -> dict[str, Any]:
    """A `txn` action (PROTOCOL.md, "Transaction Identifiers")."""
    return {"txn": {"appId": app_id, "version": version, "lastUpdated": now_ms()}}


def add(body: Mapping[str, Any], *, data_change: bool) -> dict[str, Any]:
    """An `add` action with this body."""
    return {"add": {**body, "dataChange": data_change}}


def remove(file: LiveFile, *, data_change: bool) -> dict[str, Any]:
    """The tombstone of a live file: its identity, and the fields for change feeds and VACUUM."""
    kept = {name: file.action[name] for name in _KEPT_IN_REMOVE if file.action.get(name) is not None}
    gone = {"deletionTimestamp": now_ms(), "dataChange": data_change, "extendedFileMetadata": True}
    return {"remove": kept | gone}


def lines(actions: Iterable[Action]) -> bytes:
    """A commit file's bytes."""
    return "".join(json.dumps(action, ensure_ascii=False, separators=(",", ":")) + "\n" for action in actions).encode()


def parsed(data: bytes) -> list[dict[str, Any]]:
    """A commit file's actions. Raises ValueError."""
    actions = []
    for line in data.decode().split("\n"):
        if line:
            action = json.loads(line)
            if not isinstance(action, dict):
                raise ValueError(f"a line is no object: {line[:80]}")
            actions.append(action)
    return actions


def moved(removes: Iterable[LiveFile], adds: Iterable[Mapping[str, Any]], *, data_change: bool) -> list[Action]:
    """Actions that replace live files by new ones (`add` bodies)."""
    gone: list[Action] = [remove(file, data_change=data_change) for file in removes]
    return gone + [add(body, data_change=data_change) for body in adds]
