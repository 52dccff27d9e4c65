"""What is in a Delta table, as DuckDB reads it: a reader that shares no code with any writer.

In:  a table's folder.
Out: its rows' count, and sums over the rows' hashes that don't depend on their order; what changed between two tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidegate import tables
from tidegate.verify.silver_side import SilverSide


@dataclass(frozen=True, slots=True)
class Content:
    """Two tables with equal contents have the same rows, system columns included."""

    rows: int
    hash_sum: int
    hash_xor: int


def content(table: Path, where: str = "") -> Content:
    """Read the whole of it. where: a condition of the rows that count; then the source's columns count alone."""
    side = SilverSide()
    try:
        scan = f"delta_scan('{table}')"
        names = [str(row[0]) for row in side._run(f"DESCRIBE SELECT * FROM {scan}", str(table))]
        own = tables.SYSTEM_PREFIX if where else "\0"
        columns = ", ".join(f'"{name}"' for name in names if not name.startswith(own))
        hashed = f"SELECT hash({columns}) AS h FROM {scan} WHERE {where or 'true'}"
        sql = f"SELECT count(*), sum(h::HUGEINT)::VARCHAR, bit_xor(h)::VARCHAR FROM ({hashed})"
        rows, total, mixed = next(side._run(sql, str(table)))
        return Content(int(rows), int(total or 0), int(mixed or 0))
    finally:
        side.close()


def write_changes(before: Path, after: Path, key: str, deleted: str, file: Path) -> tuple[int, int]:
    """The last row of each key that differs, in the order of keys, as a Parquet file with `deleted` as its last column;
    how many rows came or have other values, how many went. A row that is newer has another commit time.
    """
    side = SilverSide()
    try:
        old, new = f"delta_scan('{before}')", f"delta_scan('{after}')"
        came = f"SELECT n.*, false AS {deleted} FROM {new} n ANTI JOIN {old} o USING ({key}, {tables.COMMIT_TS})"
        went = f"SELECT o.*, true AS {deleted} FROM {old} o ANTI JOIN {new} n USING ({key})"
        list(side._run(f"COPY ({came} UNION ALL {went} ORDER BY {key}) TO '{file}' (FORMAT parquet)", str(file)))
        counted = f"SELECT count(*) FILTER (NOT {deleted}), count(*) FILTER ({deleted}) FROM '{file}'"
        upserts, deletes = next(side._run(counted, str(file)))
        return int(upserts), int(deletes)
    finally:
        side.close()


def count(table: Path) -> int:
    """Live rows."""
    side = SilverSide()
    try:
        return int(next(side._run(f"SELECT count(*) FROM delta_scan('{table}')", str(table)))[0])
    finally:
        side.close()
