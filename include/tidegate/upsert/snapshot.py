"""One version of a silver table as its Delta log says it: live files, schema, properties.

In:  `add` actions as in the log's JSON (PROTOCOL.md, "Add File and Remove File"), and the table's metadata.
Out: SilverFile and SilverSnapshot, plain data that travels to workers; and why a table can't be written by position.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final
from urllib.parse import unquote

from tidegate.errors import LakeRefused, UnsupportedValue
from tidegate.upsert.delta_types import arrow_schema

Bounds = tuple[Any, Any]

# Writer features (PROTOCOL.md, "Valid Feature Names in Table Features") that a positional write keeps as they are.
_FEATURES_KEPT: Final = frozenset(
    {
        "appendOnly",
        "invariants",
        "deletionVectors",
        "clustering",
        "domainMetadata",
        "rowTracking",  # only as a feature: enabled, it is refused below
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "checkConstraints",  # a feature of legacy protocols; a constraint itself is refused below
        "changeDataFeed",
        "generatedColumns",
        "identityColumns",
        "columnMapping",
        "typeWidening",
        "typeWidening-preview",
        "inCommitTimestamp",
    }
)
# Metadata keys of a column that Delta's own writer acts upon.
_GENERATED: Final = (
    "delta.generationExpression",
    "delta.identity.start",
    "delta.identity.step",
    "delta.invariants",
    "__CHAR_VARCHAR_TYPE_STRING",
)
_WIDENED: Final = "delta.typeChanges"


@dataclass(frozen=True, slots=True)
class VectorDescriptor:
    """PROTOCOL.md, "Deletion Vector Descriptor Schema". storage_type: u (file by uuid), i (inline), p (absolute path).

    size: bytes of the vector without length and checksum. cardinality: positions in it.
    """

    storage_type: str
    path_or_inline: str
    offset: int | None
    size: int
    cardinality: int

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> VectorDescriptor:
        offset = action.get("offset")
        return cls(
            str(action["storageType"]),
            str(action["pathOrInlineDv"]),
            None if offset is None else int(offset),
            int(action["sizeInBytes"]),
            int(action["cardinality"]),
        )

    def as_action(self) -> dict[str, Any]:
        """The log's JSON form."""
        offset = {} if self.offset is None else {"offset": self.offset}
        return {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path_or_inline,
            **offset,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }

    @property
    def unique_id(self) -> str:
        """Together with a path what names a logical file in the log."""
        tail = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline}{tail}"


@dataclass(frozen=True)
class SilverFile:
    """One live file. action: its `add` action as in the Delta log's JSON.

    What is asked of the statistics is kept, the parsed text isn't: a lake has many files.
    """

    action: Mapping[str, Any]
    _known: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> Mapping[str, Any]:
        return dict(self.action)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        object.__setattr__(self, "action", state)
        object.__setattr__(self, "_known", {})

    @property
    def path(self) -> str:
        """As in the log: URL-encoded, relative to the table, or an absolute URL (of a shallow clone)."""
        return str(self.action["path"])

    @property
    def local_path(self) -> str:
        """Decoded, relative to the table. Raises LakeRefused for a file outside of the table's folder."""
        path = self.path
        if "://" in path or path.startswith(("/", "file:")):
            raise LakeRefused(
                "a data file lies outside of the table's folder", where=path, remedy="use apply.writer: merge for it"
            )
        return unquote(path)

    @property
    def size(self) -> int:
        """Bytes of the Parquet file."""
        return int(self.action["size"])

    @property
    def partition_values(self) -> Mapping[str, str | None]:
        return self.action.get("partitionValues") or {}

    @property
    def rows(self) -> int | None:
        """Rows in the Parquet file, dead ones included; None when the statistics don't say."""
        if "rows" not in self._known:
            count = self._statistics().get("numRecords")
            self._known["rows"] = None if count is None else int(count)
        known: int | None = self._known["rows"]
        return known

    @property
    def live_rows(self) -> int | None:
        """Rows less those in the deletion vector; None as above."""
        vector = self.deletion_vector
        dead = vector.cardinality if vector else 0
        return None if self.rows is None else self.rows - dead

    @property
    def deletion_vector(self) -> VectorDescriptor | None:
        found = self.action.get("deletionVector")
        return VectorDescriptor.of(found) if found else None

    def bounds(self, column: str) -> Bounds | None:
        """(min, max) of a top-level column as the statistics' JSON has them, fractions as Decimal; None when unknown.

        Wide bounds: no value lies outside, but strings and timestamps may be cut (PROTOCOL.md, "Per-file Statistics").
        """
        name = f"bounds {column}"
        if name not in self._known:
            statistics = self._statistics()
            low = (statistics.get("minValues") or {}).get(column)
            high = (statistics.get("maxValues") or {}).get(column)
            self._known[name] = None if low is None or high is None else (low, high)
        known: Bounds | None = self._known[name]
        return known

    def _statistics(self) -> dict[str, Any]:
        text = self.action.get("stats")
        found = json.loads(text, parse_float=Decimal) if text else {}
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class SilverSnapshot:
    """A table at one version.

    uri: as Spark wants it. schema: the metadata's schemaString, parsed. configuration: table properties.
    features: reader and writer features; of a legacy protocol those that its versions imply. applied_ts: the
    transaction version recorded under the pipeline's app id, 0 when none. created: whether the table exists.
    """

    uri: str
    version: int
    files: tuple[SilverFile, ...]
    schema: Mapping[str, Any]
    partition_columns: tuple[str, ...]
    configuration: dict[str, str]
    features: frozenset[str]
    applied_ts: int
    created: bool

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


def why_not(snapshot: SilverSnapshot) -> str | None:
    """Why the table can't be written by position, in one phrase; None when it can."""
    on = {name for name, value in snapshot.configuration.items() if value.strip().lower() == "true"}
    mapping = snapshot.configuration.get("delta.columnMapping.mode", "none")
    switches = {
        "delta.enableChangeDataFeed": "change data feed is on",
        "delta.enableRowTracking": "row tracking is on",
        "delta.appendOnly": "the table is append-only",
        "delta.enableIcebergCompatV1": "it is kept readable as Iceberg",
        "delta.enableIcebergCompatV2": "it is kept readable as Iceberg",
    }
    reasons = [why for name, why in switches.items() if name in on]
    if "delta.enableDeletionVectors" not in on or "deletionVectors" not in snapshot.features:
        reasons.append("deletion vectors are off")
    if mapping != "none":
        reasons.append("column mapping is on")
    if snapshot.configuration.get("delta.universalFormat.enabledFormats"):
        reasons.append("it is kept readable as another format")
    reasons += [
        f"it has a CHECK constraint {name}" for name in snapshot.configuration if name.startswith("delta.constraints.")
    ]
    unknown = sorted(snapshot.features - _FEATURES_KEPT)
    if unknown:
        reasons.append(f"it has the feature {unknown[0]}")
    return reasons[0] if reasons else _why_not_columns(snapshot)


def _why_not_columns(snapshot: SilverSnapshot) -> str | None:
    for column in snapshot.schema["fields"]:
        metadata = column.get("metadata") or {}
        if any(name in metadata for name in _GENERATED):
            return f"column {column['name']} is generated, or its values are checked"
        if _WIDENED in metadata:
            return f"the type of column {column['name']} was widened"
    try:
        arrow_schema(snapshot.schema)
    except UnsupportedValue as error:
        return error.what
    if any("://" in file.path or file.path.startswith(("/", "file:")) for file in snapshot.files):
        return "it holds files of another table"
    return None
