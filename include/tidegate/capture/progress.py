"""What a capture run tells of itself, while it runs and at its end.

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
    """What a run did. reason: its time was up, the source was quiet, or it was told to stop. position: the end of what
    is captured, as the source names it. landed: bronze has all of it.
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
    """What on_progress gets about once a second. lag_seconds: the source's clock minus resolved_ts."""

    segments: int
    bytes: int
    bytes_per_second: float
    last_seq: int
    landed_seq: int
    queued_bytes: int
    status: CaptureStatus
    lag_seconds: float
    position: str
