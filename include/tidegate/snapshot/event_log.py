"""Events of control/snapshots as they come: who looks again reads what was appended since.

In:  a lake.
Out: SnapshotEvents, each once; all of them anew when files that were read have been packed into others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.events import SnapshotEvent
from tidegate.tables import SNAPSHOTS


@dataclass(slots=True)
class EventLog:
    """version: of the table as it was last looked at; -1: never, or there is none."""

    lake: LakeFiles
    version: int = -1
    _files: frozenset[str] = field(default=frozenset())

    def look(self) -> tuple[bool, list[SnapshotEvent]]:
        """Whether what came before is told once more, and the events. Raises LakeUnavailable, LakeRefused."""
        found = control.load(self.lake, SNAPSHOTS)
        if found is None or found.version == self.version:
            return False, []
        files = {file.path: file for file in found.files}
        anew = not self._files <= files.keys()
        wanted = [file for path, file in files.items() if anew or path not in self._files]
        rows = control.rows_of(self.lake, SNAPSHOTS, found, files=wanted).to_pylist()
        self._files, self.version = frozenset(files), found.version
        return anew, [SnapshotEvent.from_row(row) for row in rows]
