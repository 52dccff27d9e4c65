"""The latency of the window's markers: from their commit at the source to this cut.

In:  silver's marker table, when the window has changed it.
Out: rows of control/latency, and a line's worth of percentiles.

It comes after the cut is published, since readers may see the rows only then. Nothing depends on
it: an error here is logged, and the window is done all the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

import pyarrow as pa

from spark_jobs.window.application import Application
from spark_jobs.window.window import Window
from tidegate import tables
from tidegate.errors import TidegateError
from tidegate.lake.figures import latency

log = logging.getLogger(__name__)


def measure_latency(app: Application, window: Window, versions: Mapping[str, int]) -> latency.Percentiles | None:
    """Append the latencies of the window's markers; None when it has none."""
    entry = window.tables.get(tables.MARKER)
    version = versions.get(tables.MARKER)
    if entry is None or version is None:
        return None
    visible_us = time.time_ns() // 1000
    try:
        name = app.pipeline.pipeline
        rows = latency.of_window(app.lake, name, version, entry.after_ts, window.cut_ts, visible_us)
        if rows:
            app.control.append(tables.LATENCY, rows)
    except (pa.ArrowException, OSError, TidegateError) as error:
        log.warning("latency was not measured: %s", error)
        return None
    return latency.Percentiles.of(row["seconds"] for row in rows)
