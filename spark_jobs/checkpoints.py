"""Checkpoints of silver's Delta logs, written beside the windows instead of inside their commits.

In:  which table has come to which version.
Out: a checkpoint of each table after CHECKPOINT_COMMITS commits, with Delta's own cleaning of the log behind it.

Delta writes a table's checkpoint inside the commit whose number delta.checkpointInterval divides: Spark jobs that the
window waits for, of all tables at once that every window writes. Silver's tables have an interval that is not reached
(merge/silver_sql.py), and one thread writes their checkpoints one after the other. Any process may do so at any
time: a checkpoint says again what commits have said. One that fails is tried again after as many commits more; until
then readers read a longer tail.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from spark_jobs.delta_commit import DeltaCommitter
from tidegate.limits import CHECKPOINT_COMMITS


@dataclass(slots=True)
class Checkpoints:
    """committer: opened when it is first needed. commits: between two checkpoints of a table."""

    committer: Callable[[], DeltaCommitter]
    commits: int = CHECKPOINT_COMMITS
    _done: dict[str, int] = field(default_factory=dict)  # URI -> version of the last one, or of the last try
    _waiting: set[str] = field(default_factory=set)
    _pool: ThreadPoolExecutor | None = None

    def note(self, uri: str, version: int) -> None:
        """The table is at this version now. What that leads to takes none of the caller's time."""
        known = self._done.get(uri)
        due = known is None or version < known or version - known >= self.commits
        if due and uri not in self._waiting:
            self._waiting.add(uri)
            self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
            self._pool.submit(self._work, uri, version)

    def close(self) -> None:
        """Wait for what is under way."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _work(self, uri: str, version: int) -> None:
        try:
            known = self._done.get(uri)
            if known is None or version < known:  # or it was dropped and made again
                self._done[uri] = known = self.committer().checkpoint_version(uri)
            if version - known >= self.commits:
                self._done[uri] = self.committer().checkpoint(uri)
        except Exception as error:  # noqa: BLE001 - the rows are in silver: no fault of a checkpoint may stop them
            self._done[uri] = version
            print(f"{uri}: no checkpoint written: {error}", file=sys.stderr, flush=True)
        self._waiting.discard(uri)
