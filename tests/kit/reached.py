"""How far capture of a server is, and a run that ends where the server's log ended when it began.

In:  the position of a CaptureResult; a run over a binlog.
Out: a Position of its binlog; run_to(): a run that doesn't wait for silence to know that it has everything.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from tidegate.capture.progress import CaptureResult
from tidegate.capture.run import CaptureRun
from tidegate.position import Position


def position_of(text: str) -> Position:
    """From "file:offset"."""
    file, _, offset = text.rpartition(":")
    return Position.of(file, int(offset))


def run_to(run: CaptureRun, goal: Position | None, seconds: float, *, idle_seconds: float) -> CaptureResult:
    """A run that is stopped as soon as the stream is at the goal and there is a segment; else it ends when idle.

    A stop keeps and lands what was received, as the end of an idle run does.
    """
    if goal is None:
        return run.run(seconds, idle_seconds=idle_seconds)
    stop = threading.Event()
    real = run.source

    def watched() -> Any:
        return _Source(real(), goal, stop)

    return replace(run, source=watched).run(seconds, idle_seconds=idle_seconds, stop=stop)


@dataclass(slots=True)
class _Source:
    """A source whose readers look how far they are."""

    real: Any
    goal: Position
    stop: threading.Event

    def connect(self) -> _Reader:
        return _Reader(self.real.connect(), self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@dataclass(slots=True)
class _Reader:
    real: Any
    source: _Source

    def receive(self, timeout_seconds: float) -> Any:
        segments = self.real.receive(timeout_seconds)
        reached = self.real._cutter.reached
        begun = segments or self.real.waiting_bytes or self.real.checkpoint.seq
        if begun and reached is not None and reached >= self.source.goal and not self.real.in_transaction:
            self.source.stop.set()
        return segments

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)
