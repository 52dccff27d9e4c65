"""Whether a silver table can be written by position.

In:  its state: features, properties, columns, live files.
Out: why not, in one phrase; None when it can.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Final

from tidegate.delta.table.arrow_types import TYPE_CHANGES, logged_schema
from tidegate.delta.table.state import TableState
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
        "checkpointProtection",
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
# Metadata keys of a column that Delta's own writer obeys.
_GENERATED: Final = (
    "delta.generationExpression",
    "delta.identity.start",
    "delta.identity.step",
    "delta.invariants",
    "__CHAR_VARCHAR_TYPE_STRING",
)


def why_not(snapshot: TableState) -> str | None:
    """Why the table can't be written by position, in one phrase; None when it can."""
    on = {name for name, value in snapshot.configuration.items() if value.strip().lower() == "true"}
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
    if snapshot.maps_columns:
        reasons.append("column mapping is on")
    if snapshot.configuration.get("delta.universalFormat.enabledFormats"):
        reasons.append("it is kept readable as another format")
    reasons += [
        f"it has a CHECK constraint {name}" for name in snapshot.configuration if name.startswith("delta.constraints.")
    ]
    unknown = sorted(snapshot.features - _FEATURES_KEPT)
    if unknown:
        reasons.append(f"it has the feature {unknown[0]}")
    if reasons:
        return reasons[0]
    if any("://" in file.path or file.path.startswith(("/", "file:")) for file in snapshot.files):
        return "it holds files of another table"
    return _why_not_columns(snapshot.metadata["schemaString"])


@lru_cache(maxsize=1024)
def _why_not_columns(schema: str) -> str | None:
    for column in json.loads(schema)["fields"]:
        metadata = column.get("metadata") or {}
        if any(name in metadata for name in _GENERATED):
            return f"column {column['name']} is generated, or its values are checked"
        if TYPE_CHANGES in metadata:
            return f"the type of column {column['name']} was widened"
    try:
        logged_schema(schema)
    except UnsupportedValue as error:
        return error.what
    return None
