"""How far capture of a server is, and a run that ends where the server's log ended when it began.

In:  the position of a CaptureResult; a run over a binlog; a server's newest file.
Out: a Position of its binlog; run_to(): a run that doesn't wait for silence to know that it has everything;
     wait_for_checkpoint(): from then on the server writes nothing of itself behind what others write.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tidegate.binlog.format.events import EventType, read_header
from tidegate.capture.progress import CaptureResult
from tidegate.capture.run import CaptureRun
from tidegate.local.server import Server
from tidegate.position import Position

_HEADER_BYTES: Final = 19
_CHECKPOINT_SECONDS_MAX: Final = 10.0

_checked: set[Path] = set()


def wait_for_checkpoint(server: Server, file: str) -> None:
    """MariaDB begins a file before all of the last one is safe in InnoDB, and says so in the new one once it is: from a
    thread of its own, often a second later. Whoever has captured all by then lacks this BINLOG_CHECKPOINT.
    """
    path = server.data / "data" / file
    if server.flavour != "mariadb" or path in _checked:
        return
    end = time.monotonic() + _CHECKPOINT_SECONDS_MAX
    while path.exists() and not _has_checkpoint(path) and time.monotonic() < end:
        server.query("FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")  # that is what it waits for
        time.sleep(0.02)
    _checked.add(path)


def _has_checkpoint(path: Path) -> bool:
    """Whether a binlog file has the BINLOG_CHECKPOINT of itself; True of one that is encrypted."""
    with path.open("rb") as file:
        at = file.seek(4)
        while len(head := file.read(_HEADER_BYTES)) == _HEADER_BYTES:
            header = read_header(head)
            if header.type == EventType.MARIADB_START_ENCRYPTION or header.size < _HEADER_BYTES:
                return True
            body = file.read(header.size - _HEADER_BYTES) if header.type == EventType.MARIADB_BINLOG_CHECKPOINT else b""
            if path.name.encode() in body:
                return True
            at = file.seek(at + header.size)
    return False


def position_of(text: str) -> Position:
    """From "file:offset"."""
    file, _, offset = text.rpartition(":")
    return Position.of(file, int(offset))


def run_to(
    run: CaptureRun, goal: Position | None, seconds: float, *, idle_seconds: float, heartbeat: bool = False
) -> CaptureResult:
    """A run that is stopped as soon as the stream is at the goal and there is a segment; else it ends when idle.

    A stop keeps and lands what was received, as the end of an idle run does. heartbeat: there must be one at the goal.
    """
    if goal is None:
        return run.run(seconds, idle_seconds=idle_seconds)
    stop = threading.Event()
    real = run.source

    def watched() -> Any:
        return _Source(real(), goal, stop, heartbeat)

    return replace(run, source=watched).run(seconds, idle_seconds=idle_seconds, stop=stop)


@dataclass(slots=True)
class _Source:
    """A source whose readers look how far they are."""

    real: Any
    goal: Position
    stop: threading.Event
    heartbeat: bool

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
        begun = segments or self.real.waiting_bytes or self.real.checkpoint.seq
        if begun and not self.source.heartbeat:
            self._stop_at_goal()
        return segments

    def heartbeat(self) -> Any:
        proof = self.real.heartbeat()
        if proof is not None:
            self._stop_at_goal()
        return proof

    def _stop_at_goal(self) -> None:
        reached = self.real._cutter.reached
        if reached is not None and reached >= self.source.goal and not self.real.in_transaction:
            self.source.stop.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)
