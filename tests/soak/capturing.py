"""Capture, which somebody starts again whenever it ends, and how far bronze has come.

In:  a nursery, a folder, an environment; a server and a witness.
Out: Capture, a context manager; until() and catch_up() raise Wrong when nothing comes any more.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from tests.soak.source import DATABASE
from tests.soak.witness import Witness, Wrong
from tests.support.captures import binlog_end
from tests.support.nursery import GATE, TERMINAL, TRANSIENT, Child, Nursery
from tidegate.local.server import Server

_CATCH_UP_SECONDS: Final = 300.0
_END_SECONDS: Final = 60.0
_MARKER_SESSION: Final = 98


class Capture:
    """Capture, started again whenever it ends, as Airflow does. failure: what should never have ended it."""

    def __init__(self, nursery: Nursery, folder: Path, environment: dict[str, str], *, source: str = "one") -> None:
        self.gate = folder / f"gate-{source}"
        self.gate.mkdir()
        self.child: Child | None = None
        self._asked: Child | None = None  # to end, perhaps before it could answer
        self.failure = ""
        self.starts = 0
        self.rivals = 0  # since the last time all was settled: what fences one is then no failure
        self._nursery, self._folder, self._source = nursery, folder, source
        self.state = folder / ("state" if source == "one" else f"state-{source}")
        self._log = folder / f"capture-{source}.log"
        self._environment = environment | {GATE: str(self.gate)}
        self._over, self._may = threading.Event(), threading.Event()
        self._may.set()
        self._starting = threading.Lock()
        self._thread = threading.Thread(target=self._run)

    def start(self, state: Path, log: Path) -> Child:
        arguments = ["capture", str(self._folder / "soak.yaml"), "--source", self._source, "--run-for", "86400"]
        arguments += ["--state-dir", str(state)]
        return self._nursery.start(arguments, self._environment, log)

    def upkeep(self, point: str, seen: int) -> Child:
        """Begin upkeep of bronze, which dies at the point. seen: the last seq that the witness has read."""
        arguments = ["upkeep", str(self._folder / "soak.yaml"), str(seen)]
        return self._nursery.start(arguments, {"TIDEGATE_FAILPOINT": point}, self._folder / "upkeep.log")

    def stop(self) -> None:
        """None runs until go_on()."""
        with self._starting:
            self._may.clear()
        if (child := self.child) is not None:
            self._asked = child
            child.send(signal.SIGTERM)

    def end(self) -> None:
        """As stop(), and none runs any more."""
        self.stop()
        if self.child is not None and self.child.wait(_END_SECONDS) is None:
            self.child.send(signal.SIGKILL)
            self.child.wait()

    def go_on(self) -> None:
        self._may.set()

    @property
    def stopped(self) -> bool:
        return not self._may.is_set()

    def kill(self) -> None:
        if self.child is not None:
            self.child.send(signal.SIGKILL)

    def arm(self, point: str) -> Child:
        """Let the process that runs now die at this point."""
        end = time.monotonic() + _CATCH_UP_SECONDS
        while (child := self.child) is None or child.returncode is not None:
            if self.failure or time.monotonic() > end:
                raise Wrong(self.failure or "capture isn't started again")
            time.sleep(0.02)
        (self.gate / "arm").write_text(point)
        child.send(signal.SIGUSR1)
        return child

    def said(self, words: str) -> Callable[[], bool]:
        """Whether capture's log has these words, from now on."""
        log = self._log
        start = log.stat().st_size
        return lambda: words.encode() in log.read_bytes()[start:]

    def died(self, child: Child, seconds: float) -> None:
        """Wait for it; a process that doesn't reach its point is killed where it is."""
        if child.wait(seconds) is None:
            child.send(signal.SIGKILL)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.go_on()
        if self.child is not None:
            self.child.send(signal.SIGTERM)
            if self.child.wait(20) is None:
                self.child.send(signal.SIGKILL)
        self._thread.join(30)

    def _run(self) -> None:
        log = self._log
        while not self._over.is_set() and not self.failure:
            if not self._may.wait(0.2):
                continue
            with self._starting:
                if not self._may.is_set():
                    continue
                child = self.child = self.start(self.state, log)
            self.starts += 1
            code = child.wait()
            if code in (0, -signal.SIGKILL) or (code == -signal.SIGTERM and child is self._asked):
                continue
            last = next((line for line in reversed(log.read_text().splitlines()) if line.startswith("tidegate: ")), "")
            if code == TERMINAL and self.rivals:
                self._let_go(last)
            elif code != TRANSIENT:
                self.failure = f"capture ended with {code}: {last}"
            self._over.wait(0.2)

    def _let_go(self, line: str) -> None:
        """Another capture won: what this one's value log has beyond bronze is moved away, as the error says."""
        if "move it away" in line or "value log away" in line:
            folder = self.state / "value_log"
            folder.rename(self._folder / f"fenced-{self._source}-{self.starts}")


def until(capture: Capture, witness: Witness, condition: Callable[[], bool], what: str) -> None:
    """Raises Wrong when nothing comes any more: a machine that is busy with other things only takes longer."""
    end, seen = time.monotonic() + _CATCH_UP_SECONDS, witness.position
    while not condition():
        if capture.failure:
            raise Wrong(capture.failure)
        if witness.position != seen:
            end, seen = time.monotonic() + _CATCH_UP_SECONDS, witness.position
        if time.monotonic() > end:
            raise Wrong(f"{what}: nothing came in {_CATCH_UP_SECONDS:.0f} s after {seen[0]}:{seen[1]}")
        time.sleep(0.1)


def catch_up(server: Server, capture: Capture, witness: Witness) -> None:
    """Bronze has all that the server has now. Raises Wrong."""
    server.query("INSERT INTO txns VALUES (%s, %s)", (_MARKER_SESSION, time.time_ns()), database=DATABASE)
    end = binlog_end(server)
    until(capture, witness, lambda: witness.look() >= end, f"bronze doesn't get to {end[0]}:{end[1]}")
