"""Checkpoints of the Delta logs of silver and control tables, written beside the windows, not inside their commits.

In:  the tables' new versions.
Out: a checkpoint of each table after CHECKPOINT_COMMITS commits, and, once a day, its log's expired
     files deleted.

Silver's tables have so large a delta.checkpointInterval that no other writer makes checkpoints
inside its commits (merge/silver_sql.py). One thread writes them, one after the other. Any process
may write one at any time, since a checkpoint only repeats commits. After a failure it is tried
again CHECKPOINT_COMMITS commits later; until then readers read a longer tail.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tidegate.delta.checkpoints import checkpoint
from tidegate.delta.cleaning.log_upkeep import LogUpkeep
from tidegate.lake.files import LakeFiles
from tidegate.limits import CHECKPOINT_COMMITS

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Checkpoints:
    """commits: between two checkpoints of a table."""

    lake: LakeFiles
    commits: int = CHECKPOINT_COMMITS
    _done: dict[str, int] = field(default_factory=dict)  # path -> version of the last one, or of the last try
    _upkeep: LogUpkeep = field(default_factory=LogUpkeep)
    _waiting: set[str] = field(default_factory=set)
    _pool: ThreadPoolExecutor | None = None

    def note(self, path: str, version: int) -> None:
        """Note the table's new version. A due checkpoint is written by the thread, so the caller
        doesn't wait.
        """
        known = self._done.get(path)
        if (known is None or checkpoint.due(version, known, self.commits)) and path not in self._waiting:
            self._waiting.add(path)
            self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
            self._pool.submit(self._work, path, version)

    def close(self) -> None:
        """Wait for checkpoints under way."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _work(self, path: str, version: int) -> None:
        try:
            log = self.lake.log(path)
            known = self._done.get(path)
            if known is None or version < known:  # or it was dropped and made again
                newest = checkpoint.find(log.store)
                self._done[path] = known = newest.version if newest else -1
            if checkpoint.due(version, known, self.commits):
                state = log.state()
                self._upkeep.run(log, state)
                self._done[path] = state.version
        except Exception as error:  # noqa: BLE001 - the rows are there: no fault of a checkpoint may stop them
            self._done[path] = version
            _log.warning("%s: no checkpoint written: %s", path, error)
        self._waiting.discard(path)
