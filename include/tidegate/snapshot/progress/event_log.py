"""Events of control/snapshots as they come: a second look reads only the new ones.

In:  a lake; the caller's own appended events.
Out: SnapshotEvents, each once, whichever files they have been packed into since; all of them anew
     when some were taken out of the table (worth_keeping.py).

Each event has its own key. For a file whose events are known only the keys are read, and no event object is made
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa

from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress.events import SnapshotEvent
from tidegate.tables import SNAPSHOTS

_KEY: Final = ("snapshot", "source", "database", "table", "event", "token", "recorded_at")
_DEFINITION: Final = "definition"
WITHOUT_DEFINITIONS: Final = pa.schema([field for field in SNAPSHOTS.schema if field.name != _DEFINITION])
Key = tuple[str, str, str, str, str, str, datetime]


@dataclass(slots=True)
class EventLog:
    """version: of the table as it was last looked at; -1: never, or there is none.

    definitions: whether events have theirs, which are most of their bytes.
    """

    lake: LakeFiles
    definitions: bool = True
    version: int = -1
    _files: frozenset[str] = field(default=frozenset())
    _known: set[Key] = field(default_factory=set)

    def look(self) -> tuple[bool, list[SnapshotEvent]]:
        """(whether earlier events come again, the new events). Raises LakeUnavailable, LakeRefused."""
        state = control.load(self.lake, SNAPSHOTS)
        if state is None or state.version == self.version:
            return False, []
        files = {file.path: file for file in state.files}
        gone = not self._files <= files.keys()
        wanted = [file for path, file in files.items() if gone or path not in self._files]
        schema = None if self.definitions else WITHOUT_DEFINITIONS
        rows = control.rows_of(self.lake, SNAPSHOTS, state, schema, files=wanted)
        keys = _keys(rows)
        anew = gone and not self._known <= set(keys)
        if anew:
            self._known = set()
        new = [number for number, key in enumerate(keys) if key not in self._known]
        fresh = rows.take(np.array(new, dtype=np.int64)).to_pylist()
        events = [SnapshotEvent.from_row({_DEFINITION: None, **row}) for row in fresh]
        self._known.update(map(_key, events))
        self._files, self.version = frozenset(files), state.version
        return anew, events

    def know(self, events: Iterable[SnapshotEvent]) -> None:
        """Note events that the caller appends itself: look() doesn't return them."""
        self._known.update(map(_key, events))

    def appended(self, version: int) -> None:
        """The events given to know() are in the lake with this version: no look is needed if nobody
        else's came before.
        """
        if version != self.version + 1:
            return
        state = control.load(self.lake, SNAPSHOTS)
        if state is not None and state.version == version:
            self._files, self.version = frozenset(file.path for file in state.files), version


def _key(event: SnapshotEvent) -> Key:
    named = (event.snapshot, event.source, event.database, event.table, event.event.value, event.token)
    return (*named, event.recorded_at)


def _keys(rows: pa.Table) -> list[Key]:
    return list(zip(*(rows[name].to_pylist() for name in _KEY), strict=True))
