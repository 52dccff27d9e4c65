"""What verification costs: a table's rows hashed by the server's own SQL, and by DuckDB in silver, and joined.

In:  a context, a lake whose silver has all rows of its table; nobody writes.
Out: two rows for a table: rows per CPU second of this process (Python and DuckDB), and of the server.
"""

from __future__ import annotations

from benchmarks.context import Context
from benchmarks.cpu import TICK_SECONDS, tree_cpu
from benchmarks.figures import Row, in_turns
from benchmarks.lakes import BenchLake, connection_info
from tidegate.verify.under_way import VerifyOptions
from tidegate.verify.verification import verify

_UNIT = "rows per CPU second"


def measure(ctx: Context, lake: BenchLake, rows: int) -> list[Row]:
    """Each run verifies the whole table."""
    server: list[float] = []

    def once() -> float:
        before = tree_cpu(ctx.server.pid)
        spent = ctx.meter.run_here(lambda: _verify(lake, rows)).cpu_seconds
        server.append(rows / max(tree_cpu(ctx.server.pid) - before, TICK_SECONDS))
        return rows / spent

    (ours,) = in_turns(ctx.sizes.runs, once)
    title = f"verification, table {lake.table.upper()}"
    note = f"{rows} rows, all equal; one connection"
    return [
        Row(f"verify_{lake.table}", title, _UNIT, ours, note=f"{note}; Python and DuckDB"),
        Row(f"verify_{lake.table}_server", f"{title}: the server's part", _UNIT, server, note=note),
    ]


def _verify(lake: BenchLake, rows: int) -> None:
    report = verify(lake.pipeline, {"one": connection_info(lake.server)}, lake.files.root, options=VerifyOptions())
    (table,) = report.tables
    assert report.equal, table
    assert table.source_rows == table.silver_rows == rows, table
