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
    from tidegate.lake.held import held_events

    held = held_events(lake)
    if table not in held:
        known = ", ".join(sorted(held)) or "none"
        raise UsageError(f"{table} is not held", where=pipeline, remedy=f"held tables: {known}")
    return held[table]
