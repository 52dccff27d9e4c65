"""From a commit at the source to its rows being visible in silver, measured per marker.

In:  silver's marker table (tables.MARKER), right after a cut was published.
Out: rows of control/latency; percentiles of the last minutes for `tidegate status`.

A marker holds the source's clock when it was written, and how far that clock was ahead of the
writer's machine. Therefore the figures are as exact as the clocks of the two machines agree (NTP:
milliseconds).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from tidegate import tables
from tidegate.delta.log import DeltaLog
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.limits import LATENCY_COMMITS_MAX


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Seconds. markers: how many were measured."""

    markers: int
    p50: float
    p95: float
    p99: float
    longest: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Percentiles | None:
        """Nearest rank; None without any."""
        ascending = sorted(seconds)
        if not ascending:
            return None

        def rank(share: float) -> float:
            return ascending[math.ceil(share * len(ascending)) - 1]

        return cls(len(ascending), rank(0.5), rank(0.95), rank(0.99), ascending[-1])

    def __str__(self) -> str:
        return f"p50 {self.p50:.2f} s, p95 {self.p95:.2f} s, p99 {self.p99:.2f} s, longest {self.longest:.2f} s"


def of_window(
    lake: LakeFiles, pipeline: str, version: int, after_ts: int, cut_ts: int, visible_us: int
) -> list[dict[str, Any]]:
    """Rows of control/latency for silver's new markers in (after_ts, cut_ts]. version: of silver.

    The window's commits are found by their version numbers: opening the table would list a log of
    many days. A marker another one replaced within the window may count, too.
    """
    place = tables.silver_path(tables.MARKER_DATABASE, tables.MARKER_TABLE)
    markers = []
    for path in _files_since(lake.log(place), tables.app_id(pipeline, tables.MARKER), version, after_ts):
        with lake.open(f"{place}/{unquote(path)}") as file:
            rows = pq.read_table(file, columns=["written_us", "ahead_us", tables.COMMIT_TS], partitioning=None)
        markers += [row for row in rows.to_pylist() if after_ts < row[tables.COMMIT_TS] <= cut_ts]
    return [
        {
            "written_us": row["written_us"],
            "visible_us": visible_us,
            "seconds": (visible_us - row["written_us"] + row["ahead_us"]) / 1e6,
            "cut_ts": cut_ts,
        }
        for row in markers
    ]


def _files_since(log: DeltaLog, app_id: str, version: int, after_ts: int) -> list[str]:
    """Live files that were added after the commit up to after_ts."""
    paths: list[str] = []
    gone: set[str] = set()
    for at in range(version, max(-1, version - LATENCY_COMMITS_MAX), -1):
        actions = log.actions(at) or []
        marks = [action["txn"] for action in actions if "txn" in action]
        if any(mark["appId"] == app_id and mark["version"] <= after_ts for mark in marks):
            break
        added = [action["add"]["path"] for action in actions if "add" in action]
        paths += [path for path in added if path not in gone and path not in paths]
        gone |= {action["remove"]["path"] for action in actions if "remove" in action} - set(added)
    return paths


def recent(lake: LakeFiles, seconds: float) -> Percentiles | None:
    """Figures of the markers that became visible in the last seconds; None without any."""
    return _since(lake, "visible_us", int((time.time() - seconds) * 1e6))


def written_since(lake: LakeFiles, since_us: int) -> Percentiles | None:
    """Figures of the markers written since then, by the source's clock (Unix microseconds)."""
    return _since(lake, "written_us", since_us)


def _since(lake: LakeFiles, column: str, since_us: int) -> Percentiles | None:
    rows = control.read(lake, tables.LATENCY, columns=["seconds"], filters=[(column, ">=", since_us)])
    return Percentiles.of(rows["seconds"].to_pylist())
