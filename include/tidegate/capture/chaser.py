"""The slow chaser: capture goes on while the lake can't follow. Its state, and since when.

After TiDB Binlog, pump/storage/chaser.go.

In:  the lander's reports: a waiting reader, a failing lake, the size of the backlog.
Out: a state, its times, and whether it may try to return. It has no thread and no file: the lander calls it
     under its lock.

direct:    the reader hands segments to the lander in memory.
chasing:   the reader only writes the value log, at the network's speed. The lander follows from
           disk.
returning: the reader is held, for hold_seconds at most, while the rest on disk is read into memory. If
           that is done in time, the state is direct again; else it is chasing. A return is tried when
           little is left, and at most once in return_seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum


class ChaserState(StrEnum):
    DIRECT = "direct"
    CHASING = "chasing"
    RETURNING = "returning"


@dataclass(frozen=True, slots=True)
class ChaserStatus:
    """since: Unix seconds. chases, chasing_seconds, returns_failed, held_seconds_max: of this run so far."""

    state: ChaserState
    since: float
    reason: str
    chases: int
    chasing_seconds: float
    returns_failed: int
    held_seconds_max: float


class SlowChaser:
    """The state machine. Its times are of the monotonic clock, except `since`."""

    def __init__(self, return_seconds: float) -> None:
        self.state = ChaserState.DIRECT
        self.since = time.time()
        self.reason = ""
        self.chases = 0
        self.returns_failed = 0
        self.held_seconds_max = 0.0
        self._return_seconds = return_seconds
        self._on_at: float | None = None
        self._was_on_seconds = 0.0
        self._tried_at: float | None = None

    @property
    def on(self) -> bool:
        return self.state is not ChaserState.DIRECT

    def turn_on(self, reason: str) -> None:
        """Direct -> chasing."""
        self._enter(ChaserState.CHASING, reason)
        self.chases += 1
        self._on_at = time.monotonic()

    def may_return_in(self) -> float:
        """Seconds until the return may be tried; 0: now."""
        if self._tried_at is None:
            return 0.0
        return max(0.0, self._tried_at + self._return_seconds - time.monotonic())

    def begin_return(self) -> None:
        """Chasing -> returning: the reader is held from here on."""
        self._enter(ChaserState.RETURNING, self.reason)
        self._tried_at = time.monotonic()

    def end_return(self, *, done: bool) -> None:
        """The reader goes on. done: direct again; else chasing."""
        assert self._tried_at is not None
        assert self._on_at is not None
        now = time.monotonic()
        self.held_seconds_max = max(self.held_seconds_max, now - self._tried_at)
        if done:
            self._was_on_seconds += now - self._on_at
            self._on_at = None
            self._enter(ChaserState.DIRECT, "")
        else:
            self.returns_failed += 1
            self._enter(ChaserState.CHASING, self.reason)

    def status(self) -> ChaserStatus:
        on = 0.0 if self._on_at is None else time.monotonic() - self._on_at
        return ChaserStatus(
            self.state,
            self.since,
            self.reason,
            self.chases,
            self._was_on_seconds + on,
            self.returns_failed,
            self.held_seconds_max,
        )

    def _enter(self, state: ChaserState, reason: str) -> None:
        self.state, self.since, self.reason = state, time.time(), reason
