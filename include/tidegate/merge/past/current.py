"""The plain mode: silver has the source's rows, and none of its past.

In:  a table without a key of another mode.
Out: NO_PAST.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from tidegate.merge.past.form import Past
from tidegate.schema.model.columns import TableVersion


class _Current(Past):
    def ended(self, commit_ts: int | str) -> dict[str, str]:
        raise AssertionError(f"rows that end at {commit_ts} are deleted")

    def staged(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        return changes

    def live_rows(self, rows: pa.Table) -> pa.Table:
        return rows

    def check(self, versions: Sequence[TableVersion]) -> None:
        """Every table may have it."""


NO_PAST: Final = _Current(
    word="", title="", kept="", columns=(), mark="", begun={}, taken={}, live="true", was_live="true", came_since="",
    open="true", stamp="NULL",
    ended_in="", rows_stay=False, versions=False, whole_deletes=False, moves_along=False, takes_rows=True,
)  # fmt: skip
