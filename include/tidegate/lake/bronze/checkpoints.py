"""Checkpoints of bronze's log, written by whoever appends to it, beside its commits.

In:  bronze's new state.
Out: a checkpoint after CHECKPOINT_COMMITS commits, or more where bronze has many files; entries
     older than delta.logRetentionDuration leave the log; how many files bronze has.

A checkpoint lists every file. The more files there are, the more commits lie between two
checkpoints: writing them stays cheap, and so does reading the commits after the last one. One
thread writes. If there are several captures, the first one to find a checkpoint due writes it.
After a failure it is tried again later; until then readers read more commits.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from tidegate.delta.cleaning.log_upkeep import LogUpkeep
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import LAST_CHECKPOINT, Hint, told
from tidegate.delta.table.state import TableState
from tidegate.errors import TidegateError
from tidegate.limits import BRONZE_CHECKPOINT_COMMIT_ROWS, CHECKPOINT_COMMITS

log = logging.getLogger(__name__)


class BronzeCheckpoints:
    """live_files: of all sources, as the newest checkpoint counts them."""

    def __init__(self, table: DeltaLog) -> None:
        self.live_files = 0
        self._table = table
        self._due: int | None = None  # the version at which the next checkpoint is due
        self._pool: ThreadPoolExecutor | None = None
        self._busy = False
        self._upkeep = LogUpkeep()

    def note(self, state: TableState) -> None:
        """Bronze has this new state. A due checkpoint is written in another thread."""
        version = state.version
        if self._busy or (self._due is not None and version < self._due):
            return
        self._busy = True
        if self._due is None:  # the first time: nearly always too early for one
            self._look(version)
        if self._due is None or version < self._due:
            self._busy = False
            return
        self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pool.submit(self._write, state)

    def _look(self, version: int) -> None:
        try:
            self._learn(told(self._table.store.get(LAST_CHECKPOINT)) or Hint(-1, 0, 0, 0))
        except TidegateError as error:
            self._failed(version, error)

    def _write(self, state: TableState) -> None:
        try:
            self._look(state.version)  # another capture may have written it
            if self._due is not None and state.version >= self._due:
                self._learn(self._upkeep.run(self._table, state))
        except Exception as error:  # noqa: BLE001 - the segments are in bronze: no fault of a checkpoint may stop them
            self._failed(state.version, error)
        self._busy = False

    def _learn(self, newest: Hint) -> None:
        self.live_files = newest.adds or 0
        rows = max(newest.actions, 0)
        self._due = newest.version + max(CHECKPOINT_COMMITS, rows // BRONZE_CHECKPOINT_COMMIT_ROWS)

    def _failed(self, version: int, error: Exception) -> None:
        log.warning("%s: no checkpoint written: %s", self._table.place, error)
        self._due = version + CHECKPOINT_COMMITS
