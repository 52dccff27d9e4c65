"""The logs of many tables, with a bound for the memory of all their states together.

In:  places of tables.
Out: a DeltaLog for each, always the same object. The least recently used ones forget their state.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.delta.log import DeltaLog
from tidegate.limits import LOG_STATES_BYTES_MAX

# What a log takes beside its files: schema, properties, a store.
_LOG_BYTES = 16 << 10


@dataclass(slots=True)
class DeltaLogs:
    """options: of the store. states_bytes: the memory all states may take. Thread-safe."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    states_bytes: int = LOG_STATES_BYTES_MAX
    _logs: OrderedDict[str, DeltaLog] = field(default_factory=OrderedDict)  # least recently used first
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, place: str) -> DeltaLog:
        """The table's log. place: from LakeFiles.uri."""
        with self._lock:
            log = self._logs.pop(place, None) or DeltaLog(place, self.options)
            self._logs[place] = log
            return log

    def trim(self) -> None:
        """Forget states beyond the bound. Call it between two windows: afterwards some logs are
        read again.
        """
        with self._lock:
            held = sum(log.held_bytes + _LOG_BYTES for log in self._logs.values())
            while held > self.states_bytes and len(self._logs) > 1:
                held -= self._logs.popitem(last=False)[1].held_bytes + _LOG_BYTES
