"""Latency: from a commit at the source to its rows being visible in silver, micro-batch, warm.

In:  rates (row changes a second), seconds per rate.
Out: a row per rate; the smallest rate's 95th percentile is the report's key.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.figures import Missing, Row
from benchmarks.sizes import Sizes

_MODULE = "benchmarks.bench_latency"


def measure(sizes: Sizes) -> list[Row]:
    """Raises Missing when this checkout doesn't measure it."""
    if find_spec(_MODULE) is None:
        raise Missing("benchmarks/bench_latency.py isn't there")
    found: dict[Any, dict[str, float]] = import_module(_MODULE).measure(sizes.latency_rates, sizes.latency_seconds)
    rows = []
    for number, (rate, figures) in enumerate(sorted(found.items(), key=lambda item: float(item[0]))):
        key = "latency_p95_s" if number == 0 else f"latency_p95_s_at_{rate}"
        row = Row(key, f"commit at the source to visible in silver, p95, {rate} changes a second", "seconds")
        row.ours = [figures["p95"]]
        row.note = ", ".join(f"{name} {value:.3g}" for name, value in figures.items() if isinstance(value, float | int))
        rows.append(row)
    return rows
