"""The end of snapshots, at their present rate.

In:  TableProgress of tables.
Out: one Forecast of all unread ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.snapshot.progress.events import SnapshotState, TableProgress


@dataclass(frozen=True, slots=True)
class Forecast:
    """tables: to be read, or being read. rate: rows a second of those begun, waits included. seconds_left: for the rest
    of the estimate, from now on; None if a table lacks an estimate, or nothing was read.

    read_at: Unix seconds of the last wave; 0 before the first.
    """

    tables: int
    rows: int
    estimate: int
    rate: float
    seconds_left: float | None
    read_at: float

    def done_at(self, now: float) -> float | None:
        """The end of reading, Unix seconds. now: that of the forecast."""
        return None if self.seconds_left is None else now + self.seconds_left


def seconds_left(table: TableProgress, now: float) -> float | None:
    """Seconds from now on for the rest of a table's estimate; None if unknown. now: Unix seconds."""
    if not is_to_read(table) or not table.estimate:
        return None
    return _Pace.of([table], now).seconds(table.estimate - table.rows)


def rate(table: TableProgress, now: float) -> float:
    """Rows a second until now, waits included; 0 before a wave. now: Unix seconds."""
    return _Pace.of([table], now).rate


@dataclass(frozen=True, slots=True)
class _Pace:
    """rate: rows a second. head_start: seconds of the wave under way, which that rate has in it for the next rows."""

    rate: float
    head_start: float

    @classmethod
    def of(cls, begun: Sequence[TableProgress], now: float) -> _Pace:
        """The pace now. If the wave under way takes longer than those before, it lowers the rate: otherwise a throttled
        or missing reader would seem to be done at once.
        """
        waves, rows = sum(table.waves for table in begun), sum(table.rows for table in begun)
        if not waves:
            return cls(0.0, 0.0)
        read_at = max(table.read_at for table in begun).timestamp()
        seconds = read_at - min(table.began_at for table in begun).timestamp()
        if seconds <= 0:  # a clock that went back
            return cls(0.0, 0.0)
        silent, wave = max(0.0, now - read_at), seconds / waves
        return cls(rows / (seconds + max(0.0, silent - wave)), min(silent, wave))

    def seconds(self, rows: int) -> float | None:
        return max(0.0, max(0, rows) / self.rate - self.head_start) if self.rate else None


def is_to_read(table: TableProgress) -> bool:
    """Whether a reader has something left to do of it."""
    return table.state in (SnapshotState.REQUESTED, SnapshotState.RUNNING) and bool(table.left)


def forecast(tables: Sequence[TableProgress], now: float) -> Forecast | None:
    """None without an unread table. now: Unix seconds."""
    reads = [table for table in tables if is_to_read(table)]
    if not reads:
        return None
    begun = [table for table in reads if table.waves]
    rows, estimate = sum(table.rows for table in reads), sum(table.estimate for table in reads)
    read_at = max((table.read_at for table in begun), default=None)
    pace = _Pace.of(begun, now)
    left = pace.seconds(estimate - rows) if all(table.estimate for table in reads) else None
    return Forecast(len(reads), rows, estimate, pace.rate, left, read_at.timestamp() if read_at else 0.0)
