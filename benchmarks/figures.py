"""The report's rows: what was measured, beside what, over which runs.

In:  pairs of runs, ours and a peer's, taken in turns.
Out: Row: medians over runs, the ratio as the median of each run's own ratio.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

# report.json has exactly these.
KEYS = (
    "capture_vs_mysqlbinlog_A",
    "capture_vs_mysqlbinlog_C",
    "decode_vs_mysql_replication_A",
    "decode_vs_java_A",
    "apply_1m_into_10m_vs_merge",
    "apply_100k_into_10m_vs_merge",
    "road_A_rows_per_cpu_s",
    "road_A_vs_debezium",
    "latency_p95_s",
)

_WARM_DIFFERENCE = 0.1
_WARM_TURNS_MAX = 8


class Missing(Exception):  # noqa: N818  (what is missing isn't this program's error)
    """A peer or a section that can't be had here, and why in one line."""


@dataclass(slots=True)
class Row:
    """One line of the report. key: its name in report.json, or of a further row, which only the report shows.

    ours, theirs: one figure per run, of `unit`; theirs is empty when there is no peer. note: what is counted.
    """

    key: str
    title: str
    unit: str
    ours: Sequence[float] = ()
    theirs: Sequence[float] = ()
    peer: str = ""
    note: str = ""
    why_missing: str = ""
    sizes: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """The median of the runs' own ratios."""
        pairs = list(zip(self.ours, self.theirs, strict=False))
        return statistics.median(a / b for a, b in pairs) if pairs and all(b for _, b in pairs) else None

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "ours": _figure(statistics.median(self.ours)) if self.ours else None,
            "theirs": _figure(statistics.median(self.theirs)) if self.theirs else None,
            "ratio": _figure(self.ratio),
            "runs": [_figure(value) for value in self.ours],
            "runs_theirs": [_figure(value) for value in self.theirs],
            "unit": self.unit,
        }
        if self.sizes:
            found["sizes"] = self.sizes
        if self.why_missing:
            found["why_missing"] = self.why_missing
        return found


def _figure(value: float | None) -> float | None:
    """Four significant digits: more would say more than was measured."""
    return None if value is None else float(f"{value:.4g}")


def warmed(road: Callable[[], float]) -> int:
    """A road that is played until two turns in a row differ by little, or it has had its share; how many it took."""
    before = road()
    for turn in range(2, _WARM_TURNS_MAX + 1):
        after = road()
        if abs(after - before) <= _WARM_DIFFERENCE * max(after, before):
            return turn
        before = after
    return _WARM_TURNS_MAX


def in_turns(runs: int, *roads: Callable[[], float]) -> list[list[float]]:
    """Each road `runs` times, in turns; a list of figures per road."""
    found: list[list[float]] = [[] for _ in roads]
    for _ in range(runs):
        for road, figures in zip(roads, found, strict=True):
            figures.append(road())
    return found
