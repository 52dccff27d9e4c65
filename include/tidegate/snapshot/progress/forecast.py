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
    of the estimate, from the last wave on; None if a table lacks an estimate, or nothing was read.

    read_at: Unix seconds of the last wave; 0 before the first.
    """

    tables: int
    rows: int
    estimate: int
    rate: float
    seconds_left: float | None
    read_at: float

    def done_at(self, now: float) -> float | None:
        """The end of reading, Unix seconds: never in the past."""
        return None if self.seconds_left is None else max(now, self.read_at + self.seconds_left)


def seconds_left(table: TableProgress) -> float | None:
    """Seconds for the rest of a table's estimate at its rate, from its last wave on; None if unknown."""
    known = is_to_read(table) and table.estimate and table.rate
    return max(0, table.estimate - table.rows) / table.rate if known else None


def is_to_read(table: TableProgress) -> bool:
    """Whether a reader has something left to do of it."""
    return table.state in (SnapshotState.REQUESTED, SnapshotState.RUNNING) and bool(table.left)


def forecast(tables: Sequence[TableProgress]) -> Forecast | None:
    """None without an unread table."""
    reads = [table for table in tables if is_to_read(table)]
    if not reads:
        return None
    begun = [table for table in reads if table.waves]
    rows, estimate = sum(table.rows for table in reads), sum(table.estimate for table in reads)
    rate, read_at = 0.0, 0.0
    if begun:
        last = max(table.read_at for table in begun)
        seconds = (last - min(table.began_at for table in begun)).total_seconds()
        rate, read_at = rows / seconds if seconds > 0 else 0.0, last.timestamp()
    known = all(table.estimate for table in reads)
    left = max(0, estimate - rows) / rate if rate and known else None
    return Forecast(len(reads), rows, estimate, rate, left, read_at)
