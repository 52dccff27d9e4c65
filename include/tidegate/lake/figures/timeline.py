"""How far behind silver was, and how much went through, over the last hour, day or week.

In:  a lake: control/cuts (when a cut was published), bronze's log (the first commit above a cut),
     control/ledger (rows and bytes of each window), control/usage (CPU; lag and pace of thinned
     cuts).
Out: a Timeline of equal steps; nothing is written.

maintain bounds all of these: it thins cuts, forgets old ledger rows, and sums up usage. A step
older than an hour shows what apply itself recorded of its cuts, and the kept cuts.

While a source is quiet its newest cut gets older, and silver lacks nothing. Therefore silver is behind
from the first commit above the cut on, not from the cut on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Final

import numpy as np

from tidegate import tables
from tidegate.commit_ts import compose, physical_ms
from tidegate.lake import control
from tidegate.lake.bronze.first_commits import FirstCommits
from tidegate.lake.bronze.log import BronzeFiles
from tidegate.lake.figures.usage import used_steps
from tidegate.lake.files import LakeFiles
from tidegate.limits import CUTS_LATE_SECONDS, DENSE_CUTS_SECONDS
from tidegate.limits.formats import LOGICAL_BITS
from tidegate.tables.usage_table import UsedBy

STEPS: Final = 60
_RATE_STEPS: Final = 5
_LEDGER: Final = ["cut_ts", "rows", "payload_bytes"]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Equal steps of step_seconds; the last one ends at end (Unix seconds).

    lag: seconds, the largest in each step; None before the first known cut. rows, payload_bytes:
    applied in the step. window_seconds: the longest time from one cut to the next one, counted in
    the step of the later one; None if none is known. capture_cpu, apply_cpu: CPU seconds per
    second, all sources together; None if nothing is known.
    """

    end: float
    step_seconds: float
    lag: tuple[float | None, ...]
    rows: tuple[int, ...]
    payload_bytes: tuple[int, ...]
    window_seconds: tuple[float | None, ...] = ()
    capture_cpu: tuple[float | None, ...] = ()
    apply_cpu: tuple[float | None, ...] = ()

    @property
    def rows_a_second(self) -> float:
        """Mean over the last five steps."""
        return self._a_second(self.rows)

    @property
    def bytes_a_second(self) -> float:
        """Mean over the last five steps."""
        return self._a_second(self.payload_bytes)

    @property
    def longest_window(self) -> float | None:
        """Seconds, over the last five steps; None without a window."""
        known = [seconds for seconds in self.window_seconds[-_RATE_STEPS:] if seconds is not None]
        return max(known, default=None)

    def _a_second(self, amounts: tuple[int, ...]) -> float:
        return sum(amounts[-_RATE_STEPS:]) / (_RATE_STEPS * self.step_seconds)

    def with_lag_now(self, seconds: float | None) -> Timeline:
        """The timeline with the present lag. That lag has grown since it began, even if no cut
        shows it.
        """
        if seconds is None:
            return replace(self, lag=(*self.lag[:-1], None))
        lag, since = list(self.lag), self.end - seconds
        for step, known in enumerate(lag):
            end = self.end - self.step_seconds * (len(lag) - 1 - step)
            if known is not None and end > since:
                lag[step] = max(known, end - since)
        return replace(self, lag=(*lag[:-1], seconds))


def timeline(
    lake: LakeFiles,
    now: float,
    seconds: float,
    sources: Collection[str] | None = None,
    firsts: FirstCommits | None = None,
) -> Timeline:
    """Raises LakeUnavailable, LakeRefused, OSError. now: Unix seconds. sources: the pipeline's; None: all of bronze.
    firsts: for repeated looks.
    """
    step = seconds / STEPS
    edges = [now - seconds + step * number for number in range(STEPS + 1)]
    # A cut is older than its publication: by up to CUTS_LATE_SECONDS, or by as much as is shown.
    oldest = now - seconds - max(seconds, CUTS_LATE_SECONDS)
    newer = ("cut_ts", compose(max(0, int(oldest * 1000))))
    wanted = ["cut_ts", "published_at"]
    cuts = control.read_above(lake, tables.CUTS, newer, columns=wanted, filters=[("table", "=", "")])
    cuts = cuts.sort_by("published_at")
    published = [micros / 1e6 for micros in cuts["published_at"].cast("int64").to_pylist()]
    stamps: list[int | None] = cuts["cut_ts"].to_pylist()
    dense = seconds <= DENSE_CUTS_SECONDS
    if dense:
        firsts = firsts or FirstCommits(lake)
        stamps = firsts.above(
            BronzeFiles(lake.log(tables.SEGMENTS.path)).by_source(), cuts["cut_ts"].to_pylist(), sources
        )
    complete = [inf if stamp is None else physical_ms(stamp) / 1000 for stamp in stamps]
    lag = tuple(_lags(edges, published, complete, dense=dense))
    ledger = control.read_above(lake, tables.LEDGER, newer, columns=_LEDGER)
    # A window is dated by its cut, which was published later, by its lag.
    seconds_of = (ledger["cut_ts"].to_numpy().astype(np.int64) >> LOGICAL_BITS) / 1000
    places = np.searchsorted(edges, seconds_of, side="right") - 1
    inside = (places >= 0) & (places < STEPS)
    rows, payload = (
        tuple(int(value) for value in np.bincount(places[inside], ledger[name].to_numpy()[inside], STEPS))
        for name in _LEDGER[1:]
    )
    used = used_steps(lake, edges)
    windows = tuple(_windows(edges, published)) if dense else used.gap
    if not dense:
        lag = tuple(map(_larger, lag, used.lag))
    return Timeline(now, step, lag, rows, payload, windows, used.cpu[UsedBy.CAPTURE], used.cpu[UsedBy.APPLY])


def _larger(first: float | None, second: float | None) -> float | None:
    return max((each for each in (first, second) if each is not None), default=None)


def _windows(edges: list[float], published: list[float]) -> Iterator[float | None]:
    for before, after in pairwise(edges):
        first, last = bisect_right(published, before), bisect_right(published, after)
        yield max((published[cut] - published[cut - 1] for cut in range(max(1, first), last)), default=None)


def _lags(edges: list[float], published: list[float], complete: list[float], *, dense: bool) -> Iterator[float | None]:
    """complete: when the first commit above each cut was made. dense: all cuts are here. Then the
    previous cut counts until one is published, and the last one counts until now.
    """
    steps = len(edges) - 1
    for step in range(steps):
        first, last = (bisect_right(published, edge) for edge in edges[step : step + 2])
        known = [published[cut] - complete[cut] for cut in range(first, last)]
        if dense:
            known += [published[cut] - complete[cut - 1] for cut in range(max(1, first), last)]
        if last and (dense or step == steps - 1):
            known.append(edges[step + 1] - complete[last - 1])
        yield max(0.0, *known) if known else None
