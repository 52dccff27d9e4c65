"""From a commit at the source to its rows being visible in silver, measured per marker.

In:  silver's marker table (tables.MARKER), right after a cut was published.
Out: rows of control/latency; percentiles of the last minutes for `tidegate status`.

A marker holds the source's clock when it was written and how far that clock was ahead of the writer's machine. So what
is measured is true as far as the clocks of that machine and of the one that applies agree (NTP: milliseconds).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable, QueryBuilder

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.files import LakeFiles


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Seconds, over `markers` of them."""

    markers: int
    p50: float
    p95: float
    p99: float
    longest: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Percentiles | None:
        """Nearest rank; None without any."""
        found = sorted(seconds)
        if not found:
            return None

        def rank(share: float) -> float:
            return found[math.ceil(share * len(found)) - 1]

        return cls(len(found), rank(0.5), rank(0.95), rank(0.99), found[-1])

    def __str__(self) -> str:
        return f"p50 {self.p50:.2f} s, p95 {self.p95:.2f} s, p99 {self.p99:.2f} s, longest {self.longest:.2f} s"


def of_window(lake: LakeFiles, after_ts: int, cut_ts: int, visible_us: int) -> list[dict[str, Any]]:
    """Rows of control/latency for the markers that silver gained in (after_ts, cut_ts]."""
    place = tables.silver_path(tables.MARKER_DATABASE, tables.MARKER_TABLE)
    silver = DeltaTable(lake.uri(place), storage_options=dict(lake.storage_options))
    rows = (
        QueryBuilder()
        .register("marker", silver)
        .execute(
            f"SELECT written_us, ahead_us FROM marker WHERE {tables.COMMIT_TS} > {int(after_ts)}"
            f" AND {tables.COMMIT_TS} <= {int(cut_ts)}"
        )
    )
    return [
        {
            "written_us": row["written_us"],
            "visible_us": visible_us,
            "seconds": (visible_us - row["written_us"] + row["ahead_us"]) / 1e6,
            "cut_ts": cut_ts,
        }
        for row in rows.read_all().to_struct_array().to_pylist()
    ]


def recent(lake: LakeFiles, seconds: float) -> Percentiles | None:
    """Of the markers that became visible in the last seconds; None when there was none."""
    return _since(lake, "visible_us", int((time.time() - seconds) * 1e6))


def written_since(lake: LakeFiles, since_us: int) -> Percentiles | None:
    """Of the markers that were written since then by the source's clock (Unix microseconds)."""
    return _since(lake, "written_us", since_us)


def windows_since(lake: LakeFiles, since_us: int) -> int:
    """How many windows made markers visible that were written since then by the source's clock."""
    rows = control.read(lake, tables.LATENCY, columns=["cut_ts"], filters=[("written_us", ">=", since_us)])
    return len(set(rows["cut_ts"].to_pylist()))


def _since(lake: LakeFiles, column: str, since_us: int) -> Percentiles | None:
    rows = control.read(lake, tables.LATENCY, columns=["seconds"], filters=[(column, ">=", since_us)])
    return Percentiles.of(rows["seconds"].to_pylist())
