"""A held table's state, for the commands that let it go on.

In:  a lake, a logical table.
Out: the table's state in control/table_states; UsageError that names the held tables when it isn't one of them.
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
