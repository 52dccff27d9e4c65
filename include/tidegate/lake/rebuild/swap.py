"""The rebuilt silver table replaces the live one, in one commit to the live table's log.

In:  both tables' newest states. The rebuilt table's files are in the live table's folder, too.
Out: Change: removed and added files, columns, and the rebuilt table's transaction versions.

Readers see either the old or the new table. The live table keeps its id, its properties and its
history. It loses its column mapping: a rebuilt table has none. (Another writer that drops or
renames a column turns that on, delta.columnMapping.) No file of before stays, so none needs it. Its
transaction versions go back to those of the rebuilt table. If a kill follows, the guard
(standing/silver.py) sees a table older than published, and it catches up.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any, Final

from tidegate.computed.row_expressions import identities
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.table.actions import moved, protocol
from tidegate.delta.table.state import Action, TableState
from tidegate.errors import LakeRefused
from tidegate.lake.silver.as_published import is_own
from tidegate.lake.silver.silver_tables import renamed_columns, with_rules
from tidegate.tables import SYSTEM_PREFIX

# Under this name, after the table's own application id, a rebuilt table records up to where it has all rows.
REBUILT: Final = "/rebuilt"
_CLUSTERING: Final = "delta.clustering"
_BESIDE: Final = "drop it from silver, or give it back its name; without --swap the table is rebuilt beside"
_MAPPING: Final = "delta.columnMapping."


def mark_rebuilt(log: DeltaLog, app_id: str, at_ts: int) -> None:
    """Record that the table is complete: the last commit of a rebuild. A table without this mark is
    left from a killed rebuild.
    """
    change = Change([], "REBUILD", {app_id: at_ts, f"{app_id}{REBUILT}": at_ts})
    log.update(lambda read: None if rebuilt_ts(read, app_id) == at_ts else change)


def rebuilt_ts(state: TableState, app_id: str) -> int:
    """The commit_ts up to which a rebuilt table has all rows; 0 for an incomplete table, or none."""
    return state.transaction(f"{app_id}{REBUILT}")


def make_as(log: DeltaLog, rebuilt: TableState) -> None:
    """Make a live table that is gone again: without rows, with an id of its own."""
    nothing = log.state()
    if not nothing.created:
        own = {"metaData": {**rebuilt.metadata, "id": str(uuid.uuid4())}}
        log.commit(nothing, Change([protocol(rebuilt.features), own], "CREATE TABLE"))


def swapped(
    live: TableState, rebuilt: TableState, app_id: str, sources: Collection[str], history: Mapping[str, int]
) -> Change | None:
    """None if it is done already. sources: all columns the source ever gave to the table. history: as recorded()
    gives it for this commit.

    Raises LakeRefused if the live table has parts a rebuild doesn't know. The commit itself refuses
    properties that demand something of a writer.
    """
    if any(key in live.live for key in rebuilt.live):
        return None
    _check_columns(live, rebuilt, sources)
    actions: list[Action] = []
    if more := rebuilt.features - live.features:
        actions.append(protocol(live.features | more))
    changed: dict[str, Any] = {
        "schemaString": rebuilt.metadata["schemaString"],
        "partitionColumns": list(rebuilt.partition_columns),
        "configuration": with_rules(_unmapped(live), rebuilt.configuration),
    }
    if "description" in rebuilt.metadata:
        changed["description"] = rebuilt.metadata["description"]
    if any(live.metadata.get(name) != value for name, value in changed.items()):
        actions.append({"metaData": {**live.metadata, **changed}})
    domain = rebuilt.domains.get(_CLUSTERING)
    if domain is not None and domain != live.domains.get(_CLUSTERING):
        actions.append({"domainMetadata": {"domain": _CLUSTERING, "configuration": domain, "removed": False}})
    elif domain is None and _CLUSTERING in live.domains:
        gone = {"domain": _CLUSTERING, "configuration": live.domains[_CLUSTERING], "removed": True}
        actions.append({"domainMetadata": gone})
    actions += moved(live.files, [file.action for file in rebuilt.files], data_change=True)
    ours = {name for state in (live, rebuilt) for name in state.transactions if is_own(name, app_id)}
    back = {name: rebuilt.transaction(name) for name in sorted(ours)}
    parameters = {"mode": "Overwrite", "rebuilt": rebuilt_ts(rebuilt, app_id)}
    return Change(actions, "WRITE", {**back, **history}, parameters)


def _check_columns(live: TableState, rebuilt: TableState, sources: Collection[str]) -> None:
    more = _by_rules(live)  # perhaps of a rule that the pipeline file no longer has
    made = _by_rules(rebuilt) - more  # replaces a column that another rule made under this name
    known = {field["name"] for field in rebuilt.schema["fields"]} - made
    for name in (str(field["name"]) for field in live.schema["fields"]):
        if name not in known and name not in more and name not in sources and not name.startswith(SYSTEM_PREFIX):
            raise LakeRefused(
                f"column {name} isn't the source's, and its values would be lost", where=live.place, remedy=_BESIDE
            )


def _by_rules(state: TableState) -> set[str]:
    return {*identities(state.schema["fields"]), *renamed_columns(state)}


def _unmapped(live: TableState) -> dict[str, str]:
    """A table's properties, without column mapping."""
    return {name: value for name, value in live.configuration.items() if not name.startswith(_MAPPING)}
