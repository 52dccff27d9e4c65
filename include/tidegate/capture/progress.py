"""The reports of a capture run, during the run and at its end.

In:  nothing.
Out: CaptureResult, CaptureProgress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tidegate.capture.status_file import CaptureStatus

Reason = Literal["time", "idle", "stopped"]


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """The result of a run. reason: its time was up, the source was quiet, or somebody stopped it. position: the end of
    the captured log, as the source names it. landed: bronze has all of it.
    """

    reason: Reason
    segments: int
    bytes: int
    last_seq: int
    resolved_ts: int
    position: str
    landed: bool


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
