"""Cuts a running apply has published: news once a minute, for those who can't wait for the run's
end.

In:  the log of control/cuts, and apply's lease, looked at once a minute.
Out: the newest cut, if the run seen at the last look has published it.

The run itself announces its end, so a cut of an ended run is no news here. A cut at the first look
at a run isn't either: a short run ends before the second look.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.delta.tail import LogTail
    from tidegate.lake.files import LakeFiles


class NewCuts:
    """pipeline: its name, which is in the name of apply's lease. kept: the value of the property
    `kept`.
    """

    def __init__(self, pipeline: str, kept: Mapping[str, Any] | None, look_seconds: float) -> None:
        self._pipeline, self._look_seconds = pipeline, look_seconds
        self._known = dict(kept or {"run": "", "cut_ts": 0})
        self._lake: LakeFiles | None = None
        self._cuts: LogTail | None = None
        self._version: int | None = None
        self._looked_at = -look_seconds

    @property
    def kept(self) -> dict[str, Any]:
        """The run seen at the last look, and its newest cut, as JSON."""
        return self._known

    def open(self, lake: str, options: dict[str, str]) -> None:
        """Open the logs. Blocks."""
        from tidegate.delta.log import DeltaLog
        from tidegate.delta.tail import LogTail
        from tidegate.lake.files import LakeFiles  # imports pyarrow: in the thread that looks
        from tidegate.tables import CUTS

        self._lake = LakeFiles(lake.rstrip("/"), options)
        self._cuts, self._version = LogTail(DeltaLog(self._lake.uri(CUTS.path), options)), None

    def look(self) -> dict[str, Any] | None:
        """{"cut_ts": the newest}; None without news. Blocks.

        An unchanged log costs one question to the store.
        """
        from tidegate.lake.figures.status import cut_ts
        from tidegate.lake.jobs.leases import newest_sign

        assert self._lake is not None
        assert self._cuts is not None
        if time.monotonic() - self._looked_at < self._look_seconds:
            return None
        version = self._cuts.version()
        if version != self._version:
            entry = newest_sign(self._lake, self._pipeline, "apply")
            run = entry.attempt if entry is not None and not entry.released else ""
            before, self._known = self._known, {"run": run, "cut_ts": cut_ts(self._lake)}
            self._version = version
            if run and run == before["run"] and self._known["cut_ts"] > before["cut_ts"]:
                self._looked_at = time.monotonic()
                return {"cut_ts": self._known["cut_ts"]}
        self._looked_at = time.monotonic()
        return None
