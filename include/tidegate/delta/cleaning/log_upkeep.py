"""The upkeep of a Delta log: a checkpoint of its newest version, and the removal of needless older
objects.

In:  a table's log and its newest state.
Out: a checkpoint. Once a day, expired commits and checkpoints are deleted, and what killed writers
     left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.cleaning.log_cleanup import clean_up
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import Hint
from tidegate.delta.stores.store import remove_unfinished
from tidegate.delta.table.actions import now_ms
from tidegate.delta.table.state import TableState

_DAY_MS: Final = 86_400_000


@dataclass(slots=True)
class LogUpkeep:
    """Remembers on which day nothing more had expired: a log with many commits takes long to list,
    and logs expire at midnight (log_cleanup.py).
    """

    _cleaned: dict[str, int] = field(default_factory=dict)  # a table's place -> days since 1970-01-01

    def run(self, log: DeltaLog, state: TableState) -> Hint:
        """Make the checkpoint of the state, then remove some old objects. Returns the content of
        `_last_checkpoint`.

        Raises LakeUnavailable, LakeRefused, DeltaUnsupported.
        """
        files = None if state.keep else len(state.files)  # a state that doesn't hold all files can't count them
        made = checkpoint_write.write(log.store, state.version, now_ms=now_ms(), files=files)
        today = now_ms() // _DAY_MS
        if self._cleaned.get(log.place) != today:
            remove_unfinished(log.store, now_ms() - _DAY_MS)
            if not clean_up(log.store, state.configuration, state.features, now_ms=now_ms()):
                self._cleaned[log.place] = today
        return made
