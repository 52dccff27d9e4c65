"""A quiet pipeline: CPU seconds a second of all its processes, what its commits and its applications' starts wait for.

In:  sizes.
Out: rows that only the report shows: smaller is better in all of them.
"""

from __future__ import annotations

from benchmarks.figures import Row
from benchmarks.sizes import Sizes


def measure(sizes: Sizes) -> list[Row]:
    """Rows for the CPU of 100 changes a second, the first window of a new application, and latency by tables."""
    from benchmarks import bench_quiet

    found = bench_quiet.measure(sizes.quiet_seconds, sizes.quiet_latency_seconds)
    quiet, start = found["quiet"], found["start"]
    tables = f"{bench_quiet.FIRST_TABLES} tables"
    rows = [
        Row("quiet_cpu", "100 changes a second over 4 tables, capture and apply together", "CPU seconds a second"),
        Row("quiet_first", f"first window of a new application, {tables} to be made in silver", "seconds"),
        Row("quiet_first_again", f"first window of a new application, {tables} that are in silver", "seconds"),
    ]
    for row, figure in zip(rows, (quiet["all"], start["first_window"], start["first_window_again"]), strict=True):
        row.ours = [figure]
    rows[0].note = ", ".join(f"{name} {value:.3g}" for name, value in quiet.items() if name != "all")
    for number in bench_quiet.LATENCIES:
        figures = found[f"latency_{number}"]
        row = Row(f"quiet_p95_{number}", f"commit to visible in silver, p95, {number} tables in a window", "seconds")
        row.ours = [figures["p95"]]
        row.note = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
        rows.append(row)
    return rows
