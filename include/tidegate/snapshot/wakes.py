"""When a reader of snapshots is to be started: tables are due that nobody has asked for, or were asked for and left.

In:  the Delta logs of control/table_states, schema_history and snapshots, looked at now and then; their rows when one
     has grown, or a table's time has come.
Out: names of tables. What was told is kept by whoever starts the reader.

A table that is open is a reader's as long as anything is said of it. When nothing is, its reader may be gone: another
one is started, ever more seldom while nothing comes of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tidegate.delta.log import DeltaLog
from tidegate.delta.tail import LogTail
from tidegate.limits import SNAPSHOT_SILENT_SECONDS, SNAPSHOT_WAKE_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.config import Pipeline
    from tidegate.lake.files import LakeFiles

_NEVER: Final = -2  # below the version of a log that isn't there


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _Told:
    """What was told last, at which version of control/snapshots, when (Unix time), and how long it counts (s)."""

    tables: list[str]
    version: int
    at: float
    pause: float


class WaitingTables:
    """Tables that need a reader. kept: what was told, as JSON."""

    def __init__(self, pipeline: Pipeline, kept: Mapping[str, Any] | None) -> None:
        self._pipeline = pipeline
        self._told = _Told(**kept) if kept else _Told([], _NEVER, 0.0, SNAPSHOT_SILENT_SECONDS)
        self._tails: list[LogTail] = []
        self._lake: LakeFiles | None = None
        self._seen: list[int] = []
        self._again_at = 0.0

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Blocks."""
        from tidegate.lake.files import LakeFiles  # imports pyarrow: in the thread of whoever looks
        from tidegate.tables import SCHEMA_HISTORY, SNAPSHOTS, TABLE_STATES

        self._lake = LakeFiles(lake.rstrip("/"), options)
        paths = (SNAPSHOTS.path, TABLE_STATES.path, SCHEMA_HISTORY.path)
        self._tails = [LogTail(DeltaLog(self._lake.uri(path), options)) for path in paths]
        self._seen = []

    @property
    def kept(self) -> dict[str, Any]:
        """What was told last."""
        told = self._told
        return {"tables": told.tables, "version": told.version, "at": told.at, "pause": told.pause}

    def look(self) -> dict[str, Any] | None:
        """{"tables": [...]} that need a reader, unless just that was told lately. Blocks."""
        versions, now = [tail.version() for tail in self._tails], _now().timestamp()
        if versions == self._seen and now < self._again_at:
            return None
        found = self._needy()
        self._seen = versions
        told = self._told
        if not found:
            return None
        same = versions[0] == told.version
        counts_to = told.at + (told.pause if same else SNAPSHOT_SILENT_SECONDS)
        if set(found) <= set(told.tables) and now < counts_to:
            self._again_at = min(self._again_at, counts_to)
            return None
        pause = min(2 * told.pause, SNAPSHOT_WAKE_SECONDS_MAX) if same else SNAPSHOT_SILENT_SECONDS
        self._told = _Told(found, versions[0], now, pause)
        self._again_at = min(self._again_at, now + pause)
        return {"tables": found}

    def _needy(self) -> list[str]:
        """By name; sets when to look again though nothing has changed."""
        from tidegate.snapshot.automatic import outlooks, waiting
        from tidegate.snapshot.events import SnapshotState
        from tidegate.snapshot.requests import told

        assert self._lake is not None
        now = _now()
        known = told(self._lake, self._pipeline.pipeline)
        found = outlooks(self._pipeline, waiting(self._pipeline, self._lake), known, now)
        needy = {name for name, outlook in found.items() if outlook.is_due(now)}
        times = [outlook.due_at for outlook in found.values() if outlook.due_at is not None]
        for one in known:
            if one.state in (SnapshotState.REQUESTED, SnapshotState.RUNNING) and one.source in self._pipeline.sources:
                silent_at = one.told_at + timedelta(seconds=SNAPSHOT_SILENT_SECONDS)
                times.append(silent_at)
                if silent_at <= now:
                    needy.add(".".join(one.name))
        coming = [at.timestamp() for at in times if at > now]
        self._again_at = min(coming, default=float("inf"))
        return sorted(needy)
