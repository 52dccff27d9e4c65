"""The state of a Delta table at one version, updated by its log's own actions.

In:  the actions of a checkpoint, then those of each commit after it, in order.
Out: TableState: live files, transaction versions, domain metadata, metadata, protocol.

Reconciled by PROTOCOL.md, "Action Reconciliation". Tombstones aren't kept here. Only checkpoints
need them, and they are made from the checkpoint before and the commits since
(checkpoints/write.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from tidegate.delta.table.live_file import LiveFile

Action = Mapping[str, Any]  # one line of the log: {kind: body}
Keep = Callable[[Mapping[str, Any]], bool]  # of an `add` action's body: whether the file is wanted

NO_TABLE = -1
# What older protocol versions demand without naming it (PROTOCOL.md, "Writer Version Requirements", and readers').
_BY_WRITER_VERSION = (
    (2, ("appendOnly", "invariants")),
    (3, ("checkConstraints",)),
    (4, ("changeDataFeed", "generatedColumns")),
    (5, ("columnMapping",)),
    (6, ("identityColumns",)),
)
# A Python object costs about this many times the text it was parsed from.
_OBJECT_FACTOR = 3


def no_files(_: Mapping[str, Any]) -> bool:
    """A Keep for callers that need no files: a checkpoint's files aren't even read."""
    return False


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Sums over live files. rows: without deleted ones, of files with statistics. unsaid: files
    without.
    """

    files: int = 0
    bytes: int = 0
    rows: int = 0
    unsaid: int = 0

    def with_file(self, file: LiveFile, sign: int) -> FileTotals:
        """sign: 1 for an added file, -1 for a removed one."""
        rows = file.live_rows
        unsaid = self.unsaid + sign * (rows is None)
        return FileTotals(self.files + sign, self.bytes + sign * file.size, self.rows + sign * (rows or 0), unsaid)


@dataclass(frozen=True)
class TableState:
    """A table at one version. It never changes, so any thread may hold it.

    place: of the table, for messages. version: NO_TABLE before it exists. live: (path, id of its
    deletion vector) -> file, the protocol's key. transactions: application id -> version. domains:
    name -> configuration. bytes: about how much memory it takes. keep: which live files to hold;
    None: all. For a table of 100,000 files, a caller that needs only transactions, or the newest
    files, saves 250 MB.
    """

    place: str
    version: int = NO_TABLE
    live: Mapping[tuple[str, str], LiveFile] = field(default_factory=dict, repr=False)
    transactions: Mapping[str, int] = field(default_factory=dict, repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)
    bytes: int = 0
    keep: Keep | None = field(default=None, repr=False, compare=False)

    @property
    def created(self) -> bool:
        """Whether there is such a table."""
        return self.version != NO_TABLE

    @property
    def table_id(self) -> str:
        """An id that changes if a table is dropped and made again at the same place."""
        return str(self.metadata.get("id", ""))

    @property
    def maps_columns(self) -> bool:
        """Whether its files have other names for columns (PROTOCOL.md, "Column Mapping")."""
        return str(self.configuration.get("delta.columnMapping.mode", "none")) != "none"

    @cached_property
    def files(self) -> tuple[LiveFile, ...]:
        """The live files."""
        return tuple(self.live.values())

    @cached_property
    def totals(self) -> FileTotals:
        """Counted once, then updated by each commit: its cost follows what changed."""
        made = FileTotals()
        for file in self.files:
            made = made.with_file(file, 1)
        return made

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The metadata's schemaString, parsed (PROTOCOL.md, "Schema Serialization Format")."""
        if not self.created:
            return {"type": "struct", "fields": []}
        return _parsed(self.metadata["schemaString"])

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(self.metadata.get("partitionColumns") or ())

    @property
    def clustering_columns(self) -> tuple[str, ...]:
        """The columns the table is clustered by (PROTOCOL.md, "Clustered Table"), nested ones with
        dots.
        """
        text = self.domains.get("delta.clustering")
        return tuple(".".join(path) for path in json.loads(text)["clusteringColumns"]) if text else ()

    @property
    def configuration(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self.metadata.get("configuration") or {})

    @cached_property
    def features(self) -> frozenset[str]:
        """Names of the table features in force, also those that old protocol versions imply."""
        return features(self.protocol)

    def transaction(self, app_id: str) -> int:
        """The version recorded under an application id; 0 when none."""
        return self.transactions.get(app_id, 0)

    def after(self, version: int, actions: Iterable[Action]) -> TableState:
        """The state after the next commit, or after a checkpoint's actions when there is none yet."""
        assert self.version in (version - 1, NO_TABLE), "commits are applied in order"
        made = _Making(self)
        for action in actions:
            made.take(action)
        return made.state(version)


class _Making:
    """A state while actions change it."""

    def __init__(self, before: TableState) -> None:
        self._place, self._keep = before.place, before.keep
        self._live = dict(before.live)
        self._transactions = dict(before.transactions)
        self._domains = dict(before.domains)
        self._metadata, self._protocol, self._bytes = before.metadata, before.protocol, before.bytes
        self._totals: FileTotals | None = before.__dict__.get("totals")

    def take(self, action: Action) -> None:
        """Take in one action. No two actions of a commit are about one file, so their order doesn't
        matter.
        """
        if add := action.get("add"):
            key = file_key(add)
            self._drop(key)
            if self._keep is None or self._keep(add):
                self._live[key] = file = LiveFile(add)
                self._bytes += _weight(add)
                self._count(file, 1)
        elif remove := action.get("remove"):
            self._drop(file_key(remove))
        elif txn := action.get("txn"):
            self._transactions[str(txn["appId"])] = int(txn["version"])
        elif metadata := action.get("metaData"):
            self._metadata = dict(metadata)
        elif protocol := action.get("protocol"):
            self._protocol = dict(protocol)
        elif domain := action.get("domainMetadata"):
            self._domains.pop(domain["domain"], None)
            if not domain.get("removed"):
                self._domains[str(domain["domain"])] = str(domain["configuration"])

    def _drop(self, key: tuple[str, str]) -> None:
        gone = self._live.pop(key, None)
        if gone is not None:
            self._bytes = max(0, self._bytes - _weight(gone.action))
            self._count(gone, -1)

    def _count(self, file: LiveFile, sign: int) -> None:
        if self._totals is not None:
            self._totals = self._totals.with_file(file, sign)

    def state(self, version: int) -> TableState:
        made = TableState(
            self._place,
            version,
            self._live,
            self._transactions,
            self._metadata,
            self._protocol,
            self._domains,
            self._bytes,
            self._keep,
        )
        if self._totals is not None:
            made.__dict__["totals"] = self._totals
        return made


@lru_cache(maxsize=1024)
def _parsed(schema: str) -> Mapping[str, Any]:
    """The parsed schema, cached: each commit makes a new state, and hardly any has another schema."""
    made: Mapping[str, Any] = json.loads(schema)
    return made


def _weight(add: Mapping[str, Any]) -> int:
    return _OBJECT_FACTOR * (200 + len(str(add["path"])) + len(add.get("stats") or ""))


def file_key(action: Mapping[str, Any]) -> tuple[str, str]:
    """The identity of a logical file: its path and its deletion vector (PROTOCOL.md, "Add File and Remove File")."""
    vector = action.get("deletionVector")
    if not vector:
        return str(action["path"]), ""
    offset = vector.get("offset")
    tail = "" if offset is None else f"@{offset}"
    return str(action["path"]), f"{vector['storageType']}{vector['pathOrInlineDv']}{tail}"


def features(protocol: Mapping[str, Any]) -> frozenset[str]:
    """Names of a protocol's table features, also those that old protocol versions imply."""
    named = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    version = int(protocol.get("minWriterVersion", 0))
    if version < 7:
        named.update(name for least, names in _BY_WRITER_VERSION if version >= least for name in names)
    return frozenset(named)
