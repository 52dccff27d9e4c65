"""How large silver tables are, by the log's own `add` actions: nothing is opened.

In:  a TableState at hand.
Out: cells for a row of control/cuts, and SilverSize of such a row.

The publisher of a version holds the table's state anyway. A page of 10,000 tables therefore reads no silver log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate.delta.table.state import TableState

SIZE_COLUMNS: Final = ("silver_rows", "silver_files", "silver_bytes")


@dataclass(frozen=True, slots=True)
class SilverSize:
    """A published version's size. rows: as a reader counts them, deleted ones that silver keeps included; None where a
    file has no statistics. bytes: of the Parquet files.
    """

    rows: int | None
    files: int
    bytes: int


def size_cells(state: TableState) -> dict[str, int | None]:
    """Cells of control/cuts; null for a table that isn't there, and for a state that holds not all files."""
    if not state.created or state.keep is not None:
        return dict.fromkeys(SIZE_COLUMNS)
    totals = state.totals
    rows = None if totals.unsaid else totals.rows
    return {"silver_rows": rows, "silver_files": totals.files, "silver_bytes": totals.bytes}


def size_of(row: Mapping[str, Any]) -> SilverSize | None:
    """None of a row from before a release that writes sizes, and of a table without silver."""
    if row.get("silver_files") is None:
        return None
    return SilverSize(row["silver_rows"], row["silver_files"], row["silver_bytes"])
