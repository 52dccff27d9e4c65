"""What is in a silver table, as DuckDB reads it: a reader that shares no code with either writer.

In:  a silver table's folder.
Out: its rows' count, and sums over the rows' hashes that don't depend on their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidegate.verify.silver_side import SilverSide


@dataclass(frozen=True, slots=True)
class Content:
    """Two tables with equal contents have the same rows, system columns included."""

    rows: int
    hash_sum: int
    hash_xor: int


def content(table: Path) -> Content:
    """Read the whole of it."""
    side = SilverSide()
    try:
        scan = f"delta_scan('{table}')"
        columns = ", ".join(f'"{row[0]}"' for row in side._run(f"DESCRIBE SELECT * FROM {scan}", str(table)))
        hashed = f"SELECT hash({columns}) AS h FROM {scan}"
        sql = f"SELECT count(*), sum(h::HUGEINT)::VARCHAR, bit_xor(h)::VARCHAR FROM ({hashed})"
        rows, total, mixed = next(side._run(sql, str(table)))
        return Content(int(rows), int(total or 0), int(mixed or 0))
    finally:
        side.close()


def count(table: Path) -> int:
    """Live rows."""
    side = SilverSide()
    try:
        return int(next(side._run(f"SELECT count(*) FROM delta_scan('{table}')", str(table)))[0])
    finally:
        side.close()
