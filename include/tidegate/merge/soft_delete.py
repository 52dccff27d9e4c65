"""Deleted rows that stay: a delete becomes an upsert of the row's last image, with a mark.

In:  decoded changes of a table with a key, in log order.
Out: the same changes as upserts, with tables.DELETED: true where the source deleted the row.

Both writers therefore go on as they do: the last change per key wins, and an insert of a deleted key revives it. Right
only when a delete brings the whole row; decode holds a table whose deletes don't (binlog/decode.py,
Window.whole_deletes).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables


def marked(changes: pa.RecordBatch) -> pa.RecordBatch:
    """changes: TableChanges.batch. The mark is the last column."""
    at = changes.schema.get_field_index(tables.OP)
    mark = pc.equal(changes.column(at), tables.OP_DELETE)
    upserts = pa.array(np.full(changes.num_rows, tables.OP_UPSERT, np.int8))
    return changes.set_column(at, changes.schema.field(at), upserts).append_column(tables.DELETED, mark)
