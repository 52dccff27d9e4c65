"""CPU of capture and apply over time, in control/usage: small, and bounded.

In:  a process at work; rows of control/usage.
Out: one row per minute of work; sums of older rows; the CPU use in each step of a time.

A slow lake delays no work: another thread appends the rows. A killed process loses the rows it had
not appended, mostly those of one minute. With many sources each row covers a longer time: all
sources together append some ten rows per minute.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.config import Pipeline
from tidegate.errors import TidegateError
from tidegate.lake import control
from tidegate.lake.control.rows import load, pack
from tidegate.lake.files import LakeFiles
from tidegate.limits import (
    USAGE_CLOSE_SECONDS,
    USAGE_FILES_MAX,
    USAGE_KEPT_SECONDS,
    USAGE_LEAST_SECONDS,
    USAGE_PENDING_ROWS_MAX,
    USAGE_SECONDS,
    USAGE_SOURCE_SECONDS,
    USAGE_SUMMED_SECONDS,
)
from tidegate.tables.usage_table import USAGE, UsedBy

log = logging.getLogger(__name__)

_PACKED_BYTES: Final = 4 << 20
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_STAT_CPU: Final = slice(11, 15)  # utime, stime, cutime, cstime after the name of proc(5)'s stat
_STAT_BEGAN: Final = 19  # starttime
_SUMS: Final = [
    ("ended_ms", "max"),
    ("seconds", "sum"),
    ("cpu_seconds", "sum"),
    ("lag_seconds", "max"),
    ("gap_seconds", "max"),
]
_COLUMNS: Final = ["work", "ended_ms", "seconds", "cpu_seconds", "lag_seconds", "gap_seconds"]


def tree_cpu_seconds(root: int) -> float:
    """User and system time of a process and of all its descendants, also of those that have ended.
    Without /proc: of this process.
    """
    total, pids = 0.0, [root]
    while pids:
        folder = f"/proc/{pids.pop()}"
        try:
            total += sum(map(int, _bytes_of(f"{folder}/stat").rpartition(b")")[2].split()[_STAT_CPU])) / _TICKS
            with os.scandir(f"{folder}/task") as threads:
                for thread in threads:
                    with suppress(OSError):  # a thread that has ended since has no children
                        pids += map(int, _bytes_of(f"{thread.path}/children").split())
        except (OSError, ValueError):
            continue  # it has ended: its parent's figures have its time
    return total or sum(os.times()[:4])


def _bytes_of(path: str) -> bytes:
    """A JVM has hundreds of threads: to look for each one's file, and to open it as text, costs three times as much."""
    with FileIO(path) as file:
        return file.readall()


def age_seconds(pid: int) -> float:
    """How long ago a process began; 0 where there is no /proc."""
    try:
        began = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[_STAT_BEGAN]) / _TICKS
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began)
    except (OSError, ValueError, AttributeError):
        return 0.0


def every_seconds(sources: int) -> float:
    """How long one row covers, in a pipeline with so many sources."""
    return max(USAGE_SECONDS, USAGE_SOURCE_SECONDS * sources)


class Meter:
    """The CPU use of one process. Not thread-safe. root: an ancestor process started only for this
    work; the first row includes its start.
    """

    def __init__(
        self,
        lake: LakeFiles,
        work: UsedBy,
        of: str,
        every: float,
        root: int | None = None,
        cpu: Callable[[int], float] = tree_cpu_seconds,
    ) -> None:
        self._lake, self._work, self._of, self._every = lake, work, of, every
        self._root, self._cpu = root or os.getpid(), cpu
        self._lock = threading.Lock()
        self._pending: list[dict[str, Any]] = []
        self._appending: threading.Thread | None = None
        self._began, self._used = time.monotonic(), cpu(self._root)
        if root not in (None, os.getpid()) and (age := age_seconds(self._root)):
            self._began, self._used = self._began - age, 0.0
        self._cut_at: float | None = None
        self._lag: float | None = None
        self._gap: float | None = None

    def cut(self, lag_seconds: float) -> None:
        """A cut was published. lag_seconds: of the oldest change that readers see with it."""
        now = time.monotonic()
        self._lag = max(lag_seconds, self._lag or 0.0)
        if self._cut_at is not None:
            self._gap = max(now - self._cut_at, self._gap or 0.0)
        self._cut_at = now

    def tick(self) -> None:
        """Call it about once a second. It does nothing until a row is due."""
        if time.monotonic() - self._began >= self._every:
            self._take()
            self._append()

    def close(self) -> None:
        """Append the rest. It waits for a slow lake only shortly."""
        if time.monotonic() - self._began >= USAGE_LEAST_SECONDS:
            self._take()
            self._append()
        if self._appending is not None:
            self._appending.join(USAGE_CLOSE_SECONDS)

    def _take(self) -> None:
        now, used = time.monotonic(), self._cpu(self._root)
        row = {"work": str(self._work), "of": self._of, "ended_ms": int(time.time() * 1000)}
        row |= {"seconds": now - self._began, "cpu_seconds": max(0.0, used - self._used)}
        with self._lock:
            self._pending.append({**row, "lag_seconds": self._lag, "gap_seconds": self._gap})
            self._pending = self._pending[-USAGE_PENDING_ROWS_MAX:]
        self._began, self._used, self._lag, self._gap = now, used, None, None

    def _append(self) -> None:
        if self._appending is None or not self._appending.is_alive():
            self._appending = threading.Thread(target=self._write, name="usage", daemon=True)
            self._appending.start()

    def _write(self) -> None:
        with self._lock:
            rows = list(self._pending)
        try:
            control.append(self._lake, USAGE, rows)
            with self._lock:
                self._pending = [row for row in self._pending if row not in rows]
            state = load(self._lake, USAGE)
            if state is not None and len(state.files) > USAGE_FILES_MAX:
                pack(self._lake, USAGE, state, smaller_bytes=_PACKED_BYTES)
        except (pa.ArrowException, OSError, TidegateError) as error:
            log.debug("usage waits for the lake: %s", error)


def capture_meter(lake: LakeFiles, pipeline: Pipeline, source: str) -> Meter:
    """The meter of one source's run, in its own process."""
    return Meter(lake, UsedBy.CAPTURE, source, every_seconds(len(pipeline.sources)))


def summed(rows: pa.Table, now: float) -> pa.Table:
    """Rows of the last hours as they are, sums of older rows, nothing older than a week. Doing it
    twice changes nothing.

    now: Unix seconds.
    """
    ended = rows["ended_ms"].to_numpy()
    ages = now - ended / 1000
    spans = np.ones(len(ended), np.int64)
    for older, seconds in USAGE_SUMMED_SECONDS:
        spans[ages >= older] = int(seconds * 1000)
    named = rows.append_column("span", pa.array(spans)).append_column("at", pa.array(ended // spans))
    named = named.filter(pa.array(ages < USAGE_KEPT_SECONDS))
    groups = named.group_by(["work", "of", "span", "at"], use_threads=False).aggregate(_SUMS)
    sums = groups.rename_columns(["work", "of", "span", "at", *(name for name, _ in _SUMS)])
    return sums.select(USAGE.schema.names).cast(rows.schema).sort_by("ended_ms")


@dataclass(frozen=True, slots=True)
class UsedSteps:
    """Equal steps; None where nothing is known. cpu: per work, CPU seconds per second. lag, gap:
    largest seconds.
    """

    cpu: dict[UsedBy, tuple[float | None, ...]]
    lag: tuple[float | None, ...]
    gap: tuple[float | None, ...]


def used_steps(lake: LakeFiles, edges: Sequence[float]) -> UsedSteps:
    """edges: the steps' ends, ascending, Unix seconds. Raises LakeUnavailable, LakeRefused, OSError."""
    rows = control.read_above(lake, USAGE, ("ended_ms", int(edges[0] * 1000)), columns=_COLUMNS)
    cpu = {work: _cpu(rows.filter(pc.equal(rows["work"], str(work))), np.asarray(edges)) for work in UsedBy}
    lag, gap = list[float | None]([None] * (len(edges) - 1)), list[float | None]([None] * (len(edges) - 1))
    for row in rows.filter(pc.is_valid(rows["lag_seconds"])).to_pylist():
        ended = row["ended_ms"] / 1000
        step = bisect_left(edges, ended) - 1
        if not 0 <= step < len(lag):
            continue
        gap[step] = max(gap[step] or 0.0, row["gap_seconds"] or 0.0) if row["gap_seconds"] is not None else gap[step]
        # The lag grew to that from the first change that readers lacked.
        since, at = ended - row["lag_seconds"], step
        while at >= 0 and edges[at + 1] > since:
            lag[at] = max(lag[at] or 0.0, min(edges[at + 1], ended) - since)
            at -= 1
        lag[step] = max(lag[step] or 0.0, row["lag_seconds"])
    return UsedSteps(cpu, tuple(lag), tuple(gap))


def _cpu(rows: pa.Table, edges: npt.NDArray[np.float64]) -> tuple[float | None, ...]:
    """None before the first row and after the last one; 0 between rows without work."""
    if not rows.num_rows:
        return (None,) * (len(edges) - 1)
    ends, lengths = rows["ended_ms"].to_numpy() / 1000, np.maximum(rows["seconds"].to_numpy(), 1e-3)
    used = np.zeros(len(edges))
    for edge in range(len(edges)):
        used[edge] = (rows["cpu_seconds"].to_numpy() * np.clip((edges[edge] - ends) / lengths + 1, 0, 1)).sum()
    first, last = (ends - lengths).min(), ends.max()
    steps = np.diff(used) / np.diff(edges)
    known = (edges[1:] > first) & (edges[:-1] < last)
    return tuple(float(step) if is_known else None for step, is_known in zip(steps, known, strict=True))
