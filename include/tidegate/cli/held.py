"""A held table's last event, for the commands that let it go on.

In:  a lake, a logical table.
Out: its row of control/table_states; UsageError that names the tables that are held when it isn't.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.errors import UsageError

if TYPE_CHECKING:
    from tidegate.lake.files import LakeFiles


def held_event(pipeline: str, lake: LakeFiles, table: str) -> dict[str, Any]:
    """Raises UsageError when the table isn't held."""
    from tidegate import tables
    from tidegate.lake import control

    events = control.read(lake, tables.TABLE_STATES).sort_by("recorded_at").to_pylist()
    last: dict[str, dict[str, Any]] = {event["table"]: event for event in events}
    held = sorted(name for name, event in last.items() if event["state"] == "held")
    if table not in held:
        known = ", ".join(held) or "none"
        raise UsageError(f"{table} is not held", where=pipeline, remedy=f"held tables: {known}")
    return last[table]
