"""The demands of a table on its readers and writers: a feature we don't implement exactly is
refused.

In:  a state and, for a commit, its actions.
Out: nothing, or DeltaUnsupported. PROTOCOL.md: "Table Features", "Requirements for Writers",
     "Append-only Tables".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidegate.delta.table.state import Action, TableState, features
from tidegate.errors import DeltaUnsupported

# Features that change nothing in how a log is reconciled, or that are reconciled here.
KNOWN: Final = frozenset(
    {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "identityColumns",
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "v2Checkpoint",
        "checkpointProtection",  # about checkpoints and log cleanup: checkpoints/write.py, cleaning/log_cleanup.py
        "vacuumProtocolCheck",
        "typeWidening",
        "typeWidening-preview",
        "domainMetadata",
        "clustering",
        "inCommitTimestamp",
        "rowTracking",
        "allowColumnDefaults",
        "variantType",
        "variantType-preview",
        "icebergCompatV1",
        "icebergCompatV2",
    }
)
# Features that demand something of each commit, and ours don't have it: row ids, Iceberg's rules.
_NOT_WRITTEN: Final = frozenset({"rowTracking", "icebergCompatV1", "icebergCompatV2"})
_ASKED_OF_FILES: Final = frozenset({"rowTracking"})  # it demands something of each `add`, and of nothing else
_READER_VERSION, _WRITER_VERSION = 3, 7  # the highest versions that list features (PROTOCOL.md, "Protocol Evolution")
_ON: Final = "true"
_MAPPED: Final = ("delta.columnMapping.id", "delta.columnMapping.physicalName")  # of each column of a mapped table
# Keys in a column's metadata by which a writer must check values, or make them.
_CHECKED_COLUMN: Final = ("delta.invariants", "delta.generationExpression", "delta.identity.start")


def check_readable(state: TableState) -> None:
    """Raise DeltaUnsupported if the log may hold something we would overlook."""
    _refuse(state, unknown(state.protocol), "can't be read")


def unknown(protocol: Mapping[str, Any]) -> list[str]:
    """The unknown features a protocol demands, in words; [] if there are none."""
    least = int(protocol.get("minReaderVersion", 0)), int(protocol.get("minWriterVersion", 0))
    versions = [f"protocol {least[0]}, {least[1]}"] if least[0] > _READER_VERSION or least[1] > _WRITER_VERSION else []
    return versions + sorted(features(protocol) - KNOWN)


def check_writable(state: TableState, actions: Sequence[Action], *, checked: bool = False) -> None:
    """Raise DeltaUnsupported if the protocol demands more of this commit than we do.

    state: the table after the commit. A caller that takes rows out of files, or adds files with
    rows, has itself checked that the values fit the columns. checked: as in Change.
    """
    check_readable(state)
    if checked:
        return
    adds = any("add" in action for action in actions)
    refused = _NOT_WRITTEN if adds else _NOT_WRITTEN - _ASKED_OF_FILES
    _refuse(state, sorted(state.features & refused), "can't be written")
    if state.maps_columns and not all(
        key in (column.get("metadata") or {}) for column in state.schema["fields"] for key in _MAPPED
    ):
        _refuse(state, ["column mapping and a column that isn't mapped"], "can't be written")
    changes = [action for action in actions if _changes_rows(action)]
    if not changes:
        return
    on = {name for name, value in state.configuration.items() if value.strip().lower() == _ON}
    # For a version without files of the feed, its readers take removed files' rows as deleted, and added files' rows as
    # inserted. That is right only if rows are removed and none are added.
    if "delta.enableChangeDataFeed" in on and any("remove" in change for change in changes) and adds:
        _refuse(state, ["change data feed"], "can't be written")
    if "delta.appendOnly" in on and any("remove" in change for change in changes):
        _refuse(state, ["rows that only come (delta.appendOnly)"], "can't be written")
    if state.maps_columns and adds:
        _refuse(state, ["column mapping"], "can't be written")
    if any("add" in change for change in changes):
        checks = [name for name in state.configuration if name.startswith("delta.constraints.")]
        checks += [
            f"{key} of column {column['name']}"
            for column in state.schema["fields"]
            for key in _CHECKED_COLUMN
            if key in (column.get("metadata") or {})
        ]
        _refuse(state, checks, "can't be written")


def _changes_rows(action: Action) -> bool:
    body = action.get("add") or action.get("remove")
    return bool(body) and bool(body.get("dataChange", True)) if body else False


def _refuse(state: TableState, names: Sequence[str], how: str) -> None:
    if names:
        raise DeltaUnsupported(
            f"a table with {names[0]} {how} by tidegate",
            where=state.place,
            remedy="take the feature or property off the table, then `tidegate release`; or tables.exclude",
        )
