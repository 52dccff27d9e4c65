"""What is done to one source, one thing after the other, while other sources have their own turn.

In:  functions, in order; what is to be done later, and when.
Out: Turns, a context manager: done by a thread of its own. settle(): all of it is done. What one of them raises is
     raised there, and by check(); nothing is done behind it.

A fault mostly waits: for a server that starts, a process that dies, a network that is noticed. Those of several sources
wait beside each other.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from typing import Final, Self

_WAITING_MAX: Final = 6
_LOOK_SECONDS: Final = 0.1
What = Callable[[], object]


class Turns:
    """busy: whoever holds it has the source's turn."""

    def __init__(self) -> None:
        self.busy = threading.RLock()
        self._waiting: queue.Queue[What] = queue.Queue(_WAITING_MAX)
        self._later: list[tuple[float, What]] = []
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(120)

    def add(self, what: What) -> None:
        """Waits while much is waiting."""
        while True:
            try:
                self._waiting.put(what, timeout=_LOOK_SECONDS)
            except queue.Full:
                self.check()
            else:
                return

    def after(self, seconds: float, what: What) -> None:
        """In the meantime others have their turn."""
        with self.busy:
            self._later.append((time.monotonic() + seconds, what))

    def settle(self) -> None:
        """All that waits is done, and what is to be done later, too."""
        self._waiting.join()
        with self.busy:
            self._go_on(math.inf)
        self.check()

    def check(self) -> None:
        """Raises what something raised."""
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while not self._over.is_set():
            self._try(lambda: self._go_on(time.monotonic()))
            try:
                what = self._waiting.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            try:
                self._try(what)
            finally:
                self._waiting.task_done()

    def _try(self, what: What) -> None:
        if self._error is None:
            try:
                with self.busy:
                    what()
            except BaseException as error:  # noqa: BLE001  raised by whoever settles
                self._error = error

    def _go_on(self, now: float) -> None:
        ready = [what for at, what in self._later if at <= now]
        self._later = [(at, what) for at, what in self._later if at > now]
        for what in ready:
            what()
