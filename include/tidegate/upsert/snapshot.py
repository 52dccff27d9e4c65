"""One version of a silver table as its Delta log says it: live files, schema, properties.

In:  `add` actions as in the log's JSON (PROTOCOL.md, "Add File and Remove File"), and the table's metadata.
Out: SilverSnapshot, plain data that travels to workers; and why a table can't be written by position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate.delta.live_file import LiveFile
from tidegate.delta.types import arrow_schema
from tidegate.errors import UnsupportedValue

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
class SilverSnapshot:
    """A table at one version.

    uri: as Spark wants it. schema: the metadata's schemaString, parsed. configuration: table properties.
    features: reader and writer features; of a legacy protocol those that its versions imply. applied_ts: the
    transaction version recorded under the pipeline's app id, 0 when none. created: whether the table exists.
    """

    uri: str
    version: int
    files: tuple[LiveFile, ...]
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
