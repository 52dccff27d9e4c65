"""How a reader of snapshots reads: how much at once, how fast, and when not.

In:  a pipeline file's settings, or none.
Out: ReaderSettings.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.config import SnapshotMarks
from tidegate.limits import (
    SNAPSHOT_CHUNK_BYTES_DEFAULT,
    SNAPSHOT_CHUNK_ROWS_DEFAULT,
    SNAPSHOT_STATEMENT_SECONDS,
    SNAPSHOT_THREADS_DEFAULT,
    SNAPSHOT_WAVE_BYTES_DEFAULT,
    SNAPSHOT_WAVE_SECONDS_DEFAULT,
)
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import ZeroDates
from tidegate.snapshot.load_guard import LoadBounds
from tidegate.snapshot.progress.events import TableProgress
from tidegate.snapshot.reading.table_reader import ChunkBounds


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """load: no wave begins above it. bytes_per_second: 0 for no bound. waves_waiting: the most unanswered waves.
    zero_dates: the policy of the log's. is_held_back: whether a table's waves wait for the end of a hold. changefeed:
    the source is one, and its TiDB is read. left_out: names of the columns of a version that silver doesn't have.
    """

    parallel: int = SNAPSHOT_THREADS_DEFAULT
    chunk: ChunkBounds = field(
        default_factory=lambda: ChunkBounds(
            SNAPSHOT_CHUNK_ROWS_DEFAULT, SNAPSHOT_CHUNK_BYTES_DEFAULT, SNAPSHOT_STATEMENT_SECONDS
        )
    )
    wave_bytes: int = SNAPSHOT_WAVE_BYTES_DEFAULT
    wave_seconds: float = SNAPSHOT_WAVE_SECONDS_DEFAULT
    load: LoadBounds = field(default_factory=LoadBounds)
    bytes_per_second: int = 0
    waves_waiting: int = 3
    zero_dates: ZeroDates = ZeroDates.NULL
    marks: SnapshotMarks = SnapshotMarks.AUTO
    is_held_back: Callable[[TableProgress], bool] = field(default=lambda _: False, compare=False)
    changefeed: bool = False
    left_out: Callable[[TableVersion], frozenset[str]] = field(default=lambda _: frozenset(), compare=False)

    def enough(self, started: float) -> Callable[[int], bool]:
        """Whether a wave has enough with so many bytes. started: time.monotonic()."""
        return lambda size: size >= self.wave_bytes or time.monotonic() - started > self.wave_seconds

    def pause(self, size: int, seconds: float) -> None:
        """Pause after a wave of so many bytes that took so long."""
        if self.bytes_per_second:
            time.sleep(max(0.0, size / self.bytes_per_second - seconds))
