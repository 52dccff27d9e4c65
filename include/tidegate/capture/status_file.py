"""The state of capture for other processes, also while the lake doesn't answer.

In:  the lander, the value log, the run's counters.
Out: a CaptureStatus about once a second, in `status.json` beside the value log; if needed, a line
     in the log.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidegate.capture.chaser import ChaserState, ChaserStatus
from tidegate.capture.source import ClockState, Retention
from tidegate.capture.value_log.folder import value_log_folder
from tidegate.config import Pipeline
from tidegate.limits import BEHIND_TOLD_SECONDS, CLOCK_LEAP_SECONDS_MAX, DISK_ANSWER_SECONDS, LAKE_RATE_SECONDS
from tidegate.patience import Patience

if TYPE_CHECKING:  # heavy, and a reader of the status needs neither
    from tidegate.capture.lander import Lander
    from tidegate.capture.value_log.log import ValueLog

log = logging.getLogger(__name__)

_FILE: Final = "status.json"
_PATIENCE: Final = Patience(DISK_ANSWER_SECONDS)


@dataclass(frozen=True, slots=True)
class CaptureStatus(ChaserStatus):
    """The status of the lander and of the value log.

    Times are Unix seconds. behind_bytes: in the value log, but neither in bronze nor in memory.
    room_bytes: how much the value log may still take. bytes_per_second: what came in the last
    minute. seconds_left: how long the room lasts at this rate; None without input. retention: when
    the source would purge uncaptured log; None before the first look. clock_ahead_seconds: the
    source's clock minus this machine's. clock_doubted: it leapt, and isn't believed yet. lowered:
    segments with transactions dated after the source's clock.
    """

    lake_error: str
    last_seq: int
    landed_seq: int
    behind_bytes: int
    value_log_bytes: int
    room_bytes: int
    bytes_per_second: float
    seconds_left: float | None
    retention: Retention | None
    clock_ahead_seconds: float
    clock_doubted: bool
    lowered: int
    started_at: float
    written_at: float
    pid: int


class StatusFile:
    """Writes the present status. One per run."""

    def __init__(self, value_log: ValueLog, clock: Callable[[], ClockState]) -> None:
        self._value_log = value_log
        self._clock = clock
        self._started_at = time.time()
        now = time.monotonic()
        self._rates: list[tuple[float, int]] = [(now, 0)]
        self._reported_at = now - BEHIND_TOLD_SECONDS
        self._retention: Retention | None = None

    def write(
        self, lander: Lander, last_seq: int, captured_bytes: int, retention: Retention | None = None
    ) -> CaptureStatus:
        """captured_bytes: of the run so far. If the file can't be written, that is a warning:
        capture goes on.
        """
        self._retention = retention or self._retention
        status = self._look(lander, last_seq, captured_bytes)
        now = time.monotonic()
        if lander.chasing and now - self._reported_at >= BEHIND_TOLD_SECONDS:
            self._reported_at = now
            log.warning("the lake is behind by %s. %s", _size(status.behind_bytes), lasts_text(status))
        path = self._value_log.folder / _FILE
        try:
            path.with_suffix(".new").write_text(json.dumps(asdict(status)))
            path.with_suffix(".new").replace(path)
        except OSError as error:
            log.warning("%s can't be written: %s", path, error.strerror)
        return status

    def _look(self, lander: Lander, last_seq: int, captured_bytes: int) -> CaptureStatus:
        now, status, clock = time.monotonic(), lander.status(), self._clock()
        self._rates.append((now, captured_bytes))
        while len(self._rates) > 2 and now - self._rates[1][0] >= LAKE_RATE_SECONDS:
            self._rates.pop(0)
        then, bytes_then = self._rates[0]
        rate = (captured_bytes - bytes_then) / max(now - then, 1e-3)
        room = self._value_log.room_bytes()
        return CaptureStatus(
            **asdict(status),
            lake_error=lander.lake_error,
            last_seq=last_seq,
            landed_seq=lander.committed_seq,
            behind_bytes=lander.behind_bytes,
            value_log_bytes=self._value_log.bytes,
            room_bytes=room,
            bytes_per_second=rate,
            seconds_left=max(room, 0) / rate if rate > 0 else None,
            retention=self._retention,
            clock_ahead_seconds=clock.ahead_seconds,
            clock_doubted=clock.doubted,
            lowered=clock.lowered,
            started_at=self._started_at,
            written_at=time.time(),
            pid=os.getpid(),
        )


def lasts_text(status: CaptureStatus) -> str:
    """How long this machine's disk can keep segments the lake doesn't take."""
    text = f"The value log has {_size(status.value_log_bytes)} and room for {_size(status.room_bytes)}"
    if status.seconds_left is None:
        return text + "; nothing comes at present"
    rate = f"{status.bytes_per_second / 1e6:.1f} MB/s"
    return f"{text}, which lasts {_duration(status.seconds_left)} at the present {rate}"


def disk_text(status: CaptureStatus) -> str:
    """How much of this machine's disk the value log uses."""
    return f"the value log has {_size(status.value_log_bytes)} on its disk, and room for {_size(status.room_bytes)}"


def clock_text(status: CaptureStatus) -> str:
    """A warning about the source's clock, for people; "" if there is none."""
    parts = []
    if status.clock_doubted or abs(status.clock_ahead_seconds) > CLOCK_LEAP_SECONDS_MAX:
        way = "ahead of" if status.clock_ahead_seconds > 0 else "behind"
        parts.append(f"source's clock {_duration(abs(status.clock_ahead_seconds))} {way} this machine's")
    if status.clock_doubted:
        parts.append("it leapt and isn't believed yet")
    if status.lowered:
        parts.append(f"transactions say that they are later than it in {status.lowered} segments")
    return "; ".join(parts)


def read(folder: Path) -> CaptureStatus | None:
    """The newest status of a run in this folder; None if there is none in a known form."""
    try:
        values: dict[str, Any] = json.loads((folder / _FILE).read_text())
        purging = values.get("retention")
        state = ChaserState(values["state"])
        return CaptureStatus(**values | {"state": state, "retention": Retention(**purging) if purging else None})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def read_all(pipeline: Pipeline, state_dir: Path) -> dict[str, CaptureStatus]:
    """Source -> status, from this machine's value logs. Sources without a status, or with a hung disk,
    are left out.
    """
    known: dict[str, CaptureStatus] = {}
    for name in pipeline.sources:
        folder = value_log_folder(pipeline, name, state_dir)
        with suppress(TimeoutError):
            if (status := _PATIENCE.ask(f"status in {folder}", partial(read, folder))) is not None:
                known[name] = status
    return known


def _size(count: int) -> str:
    return f"{max(count, 0) / 1e9:.1f} GB" if count >= 1e9 else f"{max(count, 0) / 1e6:.1f} MB"


def _duration(seconds: float) -> str:
    if seconds >= 48 * 3600:
        return f"{seconds / 86400:.0f} days"
    if seconds >= 2 * 3600:
        return f"{seconds / 3600:.0f} hours"
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} s"
