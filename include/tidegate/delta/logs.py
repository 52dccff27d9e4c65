"""The logs of many tables, whose states take no more memory together than they may.

In:  places of tables.
Out: a DeltaLog for each, the same one every time; the least recently used forget what they know.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.delta.log import DeltaLog
from tidegate.limits import LOG_STATES_BYTES_MAX

# What a log takes besides its files: schema, properties, a store.
_LOG_BYTES = 16 << 10


@dataclass(slots=True)
class DeltaLogs:
    """options: of the store. states_bytes: what all states may take in memory. For any number of threads."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    states_bytes: int = LOG_STATES_BYTES_MAX
    _logs: OrderedDict[str, DeltaLog] = field(default_factory=OrderedDict)  # least recently used first
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, place: str) -> DeltaLog:
        """The table's log. place: as LakeFiles.uri gives it."""
        with self._lock:
            log = self._logs.pop(place, None) or DeltaLog(place, self.options)
            self._logs[place] = log
            return log

    def trim(self) -> None:
        """Forget states beyond what they may take; for between two windows. Costs a look at each log."""
        with self._lock:
            held = sum(log.held_bytes + _LOG_BYTES for log in self._logs.values())
            while held > self.states_bytes and len(self._logs) > 1:
                held -= self._logs.popitem(last=False)[1].held_bytes + _LOG_BYTES
