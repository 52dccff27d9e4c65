"""Migration 2: the facts of a table beside its cause have columns of their own.

In:  rows of control/table_states of format 2. There a released table keeps the cause of its hold,
     as long as something of that hold still counts.
Out: the same rows with approved_ts and unread; a released table has no cause.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.lake.format.typed_causes import STATES_ADDED
from tidegate.lake.format.typed_causes import STATES_BEFORE as _FIRST

STATES_BEFORE: Final = frozenset({*(_FIRST - {"error"}), *STATES_ADDED})


def states(rows: pa.Table) -> pa.Table:
    """Rows of control/table_states."""
    state, cause, at_ts = (rows[name].combine_chunks() for name in ("state", "cause", "place_at_ts"))
    released = pc.equal(state, "released")

    def of(word: str) -> pa.Array:
        return pc.fill_null(pc.and_(released, pc.equal(cause, word)), False)

    approved = pc.if_else(of("ddl_asks"), at_ts, pa.scalar(None, pa.int64()))
    unread = pc.if_else(of("ddl_not_read"), pa.scalar(True), pa.scalar(None, pa.bool_()))
    index = rows.schema.get_field_index("cause")
    held = pc.if_else(released, pa.scalar(None, pa.string()), cause)
    made = rows.set_column(index, rows.schema.field(index), held)
    return made.append_column("approved_ts", approved).append_column("unread", unread)
