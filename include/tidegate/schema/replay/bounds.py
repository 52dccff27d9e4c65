"""The facts in all rows of a source's schema history, where only some rows are at hand.

In:  columns of control/schema_history (lake/schema_history/schema_rows.py).
Out: Bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.schema.ddl.tree import TableName


@dataclass(frozen=True, slots=True)
class Bounds:
    """next_id: above every column id that was ever given. floor: the newest baseline's commit_ts. standing: as
    SchemaHistory's.
    """

    next_id: int
    floor: int
    standing: Mapping[TableName, int]
