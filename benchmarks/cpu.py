"""CPU seconds, and how steady the machine was while they were counted.

In:  a process id, the ids of processes that don't count (the database server), work to run.
Out: user + system seconds of a process with everything below it, ended children included.

Wall time says how busy the machine was; CPU seconds say what the work costs, give or take what shared caches
and clocks do to them. A fixed piece of work is timed before and after each run, so the report shows that too.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

_TICKS = os.sysconf("SC_CLK_TCK")
TICK_SECONDS = 1 / _TICKS  # less than that is counted as nothing
_KERNEL_BYTES = 16 << 20
_KERNEL_SORTED = 1 << 20


def tree_cpu(root: int, without: Collection[int] = ()) -> float:
    """User + system seconds of a process and all below it; those of `without`, and all below them, left out.

    /proc/PID/stat: field 4 is the parent, 14 to 17 are own and waited-for children's user and system ticks (proc(5)).
    """
    spent: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended while we looked
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.name))
        spent[int(entry.name)] = sum(map(int, fields[11:15])) / _TICKS
    total, waiting = 0.0, [root]
    while waiting:
        pid = waiting.pop()
        if pid == root or pid not in without:
            total += spent.get(pid, 0.0)
            waiting += children.get(pid, [])
    return total


def peak_bytes() -> int:
    """The most memory that this process has had. (ru_maxrss would count what its parent had before it.)"""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@dataclass(slots=True)
class Run:
    """One run's cost."""

    cpu_seconds: float
    wall_seconds: float


@dataclass(slots=True)
class Meter:
    """Times work; `without` are processes of this tree that don't count, such as the database server."""

    without: set[int] = field(default_factory=set)
    kernel_seconds: list[float] = field(default_factory=list)
    _bytes: bytes = field(default=b"", repr=False)
    _numbers: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)

    def __post_init__(self) -> None:
        self._bytes = bytes(_KERNEL_BYTES)
        self._numbers = np.random.default_rng(1).random(_KERNEL_SORTED)
        self._kernel()

    def _kernel(self) -> float:
        """CPU seconds of a fixed piece of work: arithmetic, and memory that no cache holds."""
        started = time.process_time()
        hashlib.sha256(self._bytes).digest()
        np.sort(self._numbers)
        return time.process_time() - started

    def run(self, work: Callable[[], object], *, root: int | None = None) -> Run:
        """Do the work once; the CPU seconds of `root`'s tree (default: this process's) meanwhile."""
        pid = root or os.getpid()
        self.kernel_seconds.append(self._kernel())
        wall, before = time.monotonic(), tree_cpu(pid, self.without)
        work()
        run = Run(tree_cpu(pid, self.without) - before, time.monotonic() - wall)
        self.kernel_seconds.append(self._kernel())
        return run

    def run_here(self, work: Callable[[], object]) -> Run:
        """The same for work within this process alone, to the microsecond: /proc counts in hundredths of a second."""
        self.kernel_seconds.append(self._kernel())
        wall, before = time.monotonic(), time.process_time()
        work()
        run = Run(time.process_time() - before, time.monotonic() - wall)
        self.kernel_seconds.append(self._kernel())
        return run

    def noise(self) -> dict[str, float]:
        """The fixed work's median in seconds; its extremes and 5th and 95th percentiles as multiples of that."""
        self.kernel_seconds.append(self._kernel())
        middle = statistics.median(self.kernel_seconds)
        low, high = min(self.kernel_seconds), max(self.kernel_seconds)
        often = statistics.quantiles(self.kernel_seconds, n=20) if len(self.kernel_seconds) > 1 else [low, high]
        return {
            "kernel_median_s": round(middle, 4),
            "kernel_fastest": round(low / middle, 3),
            "kernel_slowest": round(high / middle, 3),
            "kernel_p5": round(often[0] / middle, 3),
            "kernel_p95": round(often[-1] / middle, 3),
            "kernel_timings": len(self.kernel_seconds),
            "load_average_1_minute": round(os.getloadavg()[0], 2),
        }
