"""A held table's state, for the commands that let it go on.

In:  a lake, a logical table.
Out: what control/table_states says; UsageError that names the tables that are held when it isn't.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import UsageError

if TYPE_CHECKING:
    from tidegate.lake.files import LakeFiles
    from tidegate.standing.standing import Standing


def held_table(pipeline: str, lake: LakeFiles, table: str) -> Standing:
    """Raises UsageError when the table isn't held."""
    from tidegate.lake.held import held_tables

    held = held_tables(lake)
    if table not in held:
        known = ", ".join(sorted(held)) or "none"
        raise UsageError(f"{table} is not held", where=pipeline, remedy=f"held tables: {known}")
    return held[table]
