"""Deleted rows that stay: a delete becomes an upsert of the row's last image, with a mark.

In:  decoded changes of a table with a key, in log order.
Out: the same changes as upserts, with tables.DELETED: true where the source deleted the row.

Both writers work as usual: the last change per key wins, and an insert of a deleted key revives it. A delete must
have the whole row; decode holds a table whose deletes don't (CommitSpan.whole_deletes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.merge.column import SilverColumn
from tidegate.merge.past.form import Past
from tidegate.schema.model.columns import TableVersion


class _SoftDelete(Past):
    def ended(self, commit_ts: int | str) -> dict[str, str]:
        return {tables.DELETED: "true", tables.COMMIT_TS: str(commit_ts)}

    def staged(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        at = changes.schema.get_field_index(tables.OP)
        mark = pc.equal(changes.column(at), tables.OP_DELETE)
        upserts = pa.array(np.full(changes.num_rows, tables.OP_UPSERT, np.int8))
        return changes.set_column(at, changes.schema.field(at), upserts).append_column(tables.DELETED, mark)

    def live_rows(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.invert(pc.fill_null(rows.column(tables.DELETED), False)))

    def check(self, versions: Sequence[TableVersion]) -> None:
        """Every table may have it."""


SOFT_DELETE: Final = _SoftDelete(
    word="soft_delete",
    title="deleted rows",
    kept="deleted rows",
    columns=(SilverColumn(tables.DELETED, "boolean", "whether the source has deleted the row"),),
    mark=tables.DELETED,
    begun={tables.DELETED: "false"},
    taken={},
    live=f"NOT {tables.DELETED}",
    was_live=f"NOT {tables.DELETED}",
    came_since="",
    open=f"{tables.DELETED} IS NOT TRUE",
    stamp="NULL",
    ended_in="",
    rows_stay=True,
    versions=False,
    whole_deletes=True,
    moves_along=True,
    takes_rows=False,
)
