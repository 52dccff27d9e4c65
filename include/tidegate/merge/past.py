"""Rows of silver from the source's past: deleted ones, and ended versions of rows.

In:  the names of a silver table's columns.
Out: Past: SQL to tell live rows, and to end them. None of a table without a past.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from tidegate import tables


@dataclass(frozen=True, slots=True)
class Past:
    """live: SQL condition of the source's rows. kept: a name for the others. open: SQL condition of rows that may be
    taken for live: another writer may have left a row without a mark.
    """

    live: str
    kept: str
    open: str

    def ended(self, commit_ts: int) -> str:
        """SQL assignments: live rows end at a commit_ts."""
        if self is DELETED_ROWS:
            return f"{tables.DELETED} = true, {tables.COMMIT_TS} = {commit_ts}"
        return f"{tables.VALID_TO} = {commit_ts}, {tables.IS_CURRENT} = false"


# SQL of these columns of a row that has none of them yet: it was seen first by its commit_ts.
BEGUN: Final = {
    tables.DELETED: "false",
    tables.VALID_FROM: tables.COMMIT_TS,
    tables.VALID_TO: "CAST(NULL AS BIGINT)",
    tables.IS_CURRENT: "true",
    tables.FROM_KNOWN: "false",
}
DELETED_ROWS: Final = Past(f"NOT {tables.DELETED}", "deleted rows", f"{tables.DELETED} IS NOT TRUE")
OLD_VERSIONS: Final = Past(
    tables.IS_CURRENT, "old versions", f"({tables.IS_CURRENT} IS NOT FALSE OR {tables.VALID_TO} IS NULL)"
)


def past_of(columns: Collection[str]) -> Past | None:
    """By the columns of a table."""
    if tables.DELETED in columns:
        return DELETED_ROWS
    return OLD_VERSIONS if tables.IS_CURRENT in columns else None
