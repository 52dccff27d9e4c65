"""The reports of a capture run, while it runs and at its end.

In:  nothing; these are values.
Out: CaptureResult, CaptureProgress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tidegate.capture.status_file import CaptureStatus
from tidegate.text_layout import age_text, counted

Reason = Literal["time", "idle", "stopped"]
_ENDED: Final[dict[Reason, str]] = {
    "time": "the run's time is up",
    "idle": "the source is quiet",
    "stopped": "stopped",
}


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """The result of a run. reason: its time was up, the source was quiet, or somebody stopped it.
    position: the end of the captured log, in the source's form. landed: whether bronze has all
    of it.
    """

    reason: Reason
    segments: int
    bytes: int
    last_seq: int
    resolved_ts: int
    position: str
    landed: bool

    def __str__(self) -> str:
        """For people: why it ended, and its captured log."""
        if not self.last_seq:
            return f"{_ENDED[self.reason]}: nothing is captured yet"
        work = f"{counted(self.segments, 'segment', 'segments')}, {self.bytes / 1e6:,.1f} MB"
        return f"{_ENDED[self.reason]}: {work}; captured to {self.position} (seq {self.last_seq})"


@dataclass(frozen=True, slots=True)
class CaptureProgress:
    """The input of on_progress, about once a second. lag_seconds: the source's clock minus resolved_ts."""

    segments: int
    bytes: int
    bytes_per_second: float
    last_seq: int
    landed_seq: int
    queued_bytes: int
    status: CaptureStatus
    lag_seconds: float
    position: str

    @property
    def lag_text(self) -> str:
        """For people. Nobody knows before a run's first segment whether anything is missing."""
        if not self.segments:
            return f"nothing has come yet since the last run, {age_text(self.lag_seconds)} ago"
        return f"{self.lag_seconds:.1f} s behind"
