"""How large silver tables are, by the log's own `add` actions: nothing is opened.

In:  a TableState.
Out: cells for a row of control/cuts; the SilverSize of such a row.

The publisher of a version has the table's state anyway, so a page with 10,000 tables reads no log
of silver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate.delta.table.state import TableState

SIZE_COLUMNS: Final = ("silver_rows", "silver_files", "silver_bytes")


@dataclass(frozen=True, slots=True)
class SilverSize:
    """A published version's size. rows: as a reader counts them, so with deleted rows that silver
    keeps; None if a file has no statistics. bytes: of the Parquet files.
    """

    rows: int | None
    files: int
    bytes: int


def size_cells(state: TableState) -> dict[str, int | None]:
    """Cells of control/cuts. They are null for a missing table, and for a state that doesn't hold
    all files.
    """
    if not state.created or state.keep is not None:
        return dict.fromkeys(SIZE_COLUMNS)
    totals = state.totals
    rows = None if totals.unsaid else totals.rows
    return {"silver_rows": rows, "silver_files": totals.files, "silver_bytes": totals.bytes}


def size_of(row: Mapping[str, Any]) -> SilverSize | None:
    """None if an older release wrote the row, or if the table had no silver."""
    if row.get("silver_files") is None:
        return None
    return SilverSize(row["silver_rows"], row["silver_files"], row["silver_bytes"])
