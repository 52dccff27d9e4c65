"""When to start a reader of snapshots: due tables aren't requested yet, or requested tables have no
reader.

In:  the Delta logs of control/table_states, schema_history and snapshots, looked at now and then;
     their rows when one has grown, or a table's time has come. A running reader makes
     control/snapshots grow with each wave: its read part isn't read again.
Out: names of tables; none of them once the pipeline file keeps others, for of a quiet one only its
     server knows (unheard.py). The caller keeps the last news and starts the reader.

An open table has a reader as long as new events about it come. If none come, the reader may be
gone, and another one is started; less and less often while nothing comes of it.
"""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tidegate.config import SnapshotMode
from tidegate.delta.log import DeltaLog
from tidegate.delta.tail import LogTail
from tidegate.limits import SNAPSHOT_SILENT_SECONDS, SNAPSHOT_WAKE_SECONDS_MAX
from tidegate.table_names import Physical

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tidegate.config import Pipeline
    from tidegate.lake.files import LakeFiles
    from tidegate.snapshot.progress.requests import Told

_NEVER: Final = -2  # below the version of a log that isn't there


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _Woken:
    """The last news, its version of control/snapshots, its Unix time, and how long it counts (s);
    and its selection of tables.
    """

    tables: list[str]
    version: int
    at: float
    pause: float
    selection: int = 0


class WaitingTables:
    """Tables in need of a reader. kept: the last news, as JSON."""

    def __init__(self, pipeline: Pipeline, kept: Mapping[str, Any] | None) -> None:
        self._pipeline = pipeline
        self._woken = _Woken(**kept) if kept else _Woken([], _NEVER, 0.0, SNAPSHOT_SILENT_SECONDS)
        self._tails: list[LogTail] = []
        self._lake: LakeFiles | None = None
        self._told: Told | None = None
        self._waits: Mapping[str, Collection[Physical]] = {}
        self._waits_at: list[int] = []  # versions of the tables that say so
        self._seen: list[int] = []
        self._again_at = 0.0

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Blocks."""
        from tidegate.lake.files import LakeFiles  # imports pyarrow: in the thread of whoever looks
        from tidegate.snapshot.progress.requests import Told
        from tidegate.tables import SCHEMA_HISTORY, SNAPSHOTS, TABLE_STATES

        self._lake = LakeFiles(lake.rstrip("/"), options)
        self._told, self._waits_at = Told(self._lake, self._pipeline.pipeline), []
        paths = (SNAPSHOTS.path, TABLE_STATES.path, SCHEMA_HISTORY.path)
        self._tails = [LogTail(DeltaLog(self._lake.uri(path), options)) for path in paths]
        self._seen = []

    @property
    def kept(self) -> dict[str, Any]:
        """The last news."""
        return asdict(self._woken)

    def look(self) -> dict[str, Any] | None:
        """{"tables": [...]} in need of a reader, unless just that was told lately. Blocks."""
        versions, now = [tail.version() for tail in self._tails], _now().timestamp()
        if versions == self._seen and now < self._again_at:
            return None
        needy = self._needy(versions)
        self._seen = versions
        woken, selection = self._woken, self._selection()
        # Before there is a baseline all of it is in that.
        is_new = versions[-1] >= 0 and selection != woken.selection and self._asks_by_itself
        if not needy and not is_new:
            return None
        same = versions[0] == woken.version
        counts_to = woken.at + (woken.pause if same else SNAPSHOT_SILENT_SECONDS)
        if set(needy) <= set(woken.tables) and now < counts_to and not is_new:
            self._again_at = min(self._again_at, counts_to)
            return None
        pause = min(2 * woken.pause, SNAPSHOT_WAKE_SECONDS_MAX) if same else SNAPSHOT_SILENT_SECONDS
        self._woken = _Woken(needy, versions[0], now, pause, selection)
        self._again_at = min(self._again_at, now + pause)
        return {"tables": needy}

    @property
    def _asks_by_itself(self) -> bool:
        return self._pipeline.snapshot.mode is SnapshotMode.AUTO

    def _selection(self) -> int:
        from tidegate.lake.standing.followed import Selection

        return zlib.crc32(Selection.of(self._pipeline).text.encode())

    def _needy(self, versions: list[int]) -> list[str]:
        """The due tables by name; sets when to look again though nothing has changed."""
        from tidegate.snapshot.progress.automatic import outlooks, waiting
        from tidegate.snapshot.progress.captured_reading import lost_ends
        from tidegate.snapshot.progress.events import SnapshotState

        assert self._lake is not None, "it is open"
        assert self._told is not None, "it is open"
        now = _now()
        if versions[1:] != self._waits_at:
            self._waits, self._waits_at = waiting(self._pipeline, self._lake), versions[1:]
        known = [table for table in self._told.tables() if table.source in self._pipeline.sources]
        by_table = outlooks(self._pipeline, self._waits, known, now)
        needy = {name for name, outlook in by_table.items() if outlook.is_due(now)}
        times = [outlook.due_at for outlook in by_table.values() if outlook.due_at is not None]
        for progress in known:
            silent_at = progress.told_at + timedelta(seconds=SNAPSHOT_SILENT_SECONDS)
            if progress.state in (SnapshotState.REQUESTED, SnapshotState.RUNNING):
                times.append(silent_at)
                if silent_at <= now:
                    needy.add(".".join(progress.name))
            elif (
                progress.state is SnapshotState.ENDED
            ):  # another server may be captured at any time before apply has it
                times.append(now + timedelta(seconds=SNAPSHOT_SILENT_SECONDS))
        needy |= {".".join(table.name) for table in lost_ends(self._lake, known)}
        coming = [at.timestamp() for at in times if at > now]
        self._again_at = min(coming, default=float("inf"))
        return sorted(needy)
