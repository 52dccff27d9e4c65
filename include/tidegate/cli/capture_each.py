"""`tidegate capture` of a pipeline with several sources: each in a process of its own, forked from one that has loaded
all modules.

In:  the sources' names, and how long to capture.
Out: in a child its source's name: the child goes on as a capture of this source alone. In the parent None, once all
     have ended, and an exit code.

Sources fail apart, as in Airflow: one that ends with an error begins again after a minute, and the others go on. All
share the modules' memory, and none waits for their import. Before a fork comes nothing but imports: a child has none of
its parent's threads.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress

from tidegate.cli.stop_signals import SIGNALS
from tidegate.home import EXIT_OK, EXIT_TRANSIENT
from tidegate.limits import CAPTURE_LOOK_SECONDS, CAPTURE_REFUSED_SECONDS

log = logging.getLogger(__name__)


class Captures:
    """The captures of several sources. stop: it is time to end, in parent and children alike."""

    def __init__(self, sources: Iterable[str], run_for_seconds: float) -> None:
        self.stop = threading.Event()
        self.run_for_seconds = run_for_seconds
        self._parent = os.getpid()
        self._is_ending = False
        self._ends_at = time.monotonic() + run_for_seconds
        self._due = dict.fromkeys(sources, 0.0)  # monotonic seconds of the next start
        self._running: dict[int, str] = {}  # by process id
        self._codes: dict[str, int] = {}  # of the last run of each source

    @property
    def left_seconds(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    @property
    def code(self) -> int:
        """0 if the last run of each source ended well. Otherwise an error for a person comes before a passing one."""
        codes = {EXIT_TRANSIENT if code < 0 else code for code in self._codes.values()}
        return min(codes - {EXIT_OK}, default=EXIT_OK)

    def end_orphan(self) -> None:
        """End this child if its parent has ended, and can't tell it any more."""
        if os.getppid() != self._parent:
            self.stop.set()

    @property
    def is_child(self) -> bool:
        return os.getpid() != self._parent

    def begun(self) -> str | None:
        """A source's name in a child, which is to capture it; None in the parent, at the end."""
        assert threading.active_count() == 1, "a fork would lose threads"
        gc.collect()
        gc.freeze()  # a child's collections then leave the shared pages alone
        for number in SIGNALS:
            signal.signal(number, self._end)
        while self._running or (self._due and not self.stop.is_set()):
            now = time.monotonic()
            for source in [source for source, at in self._due.items() if at <= now]:
                if not self.stop.is_set() and self._forked(source):
                    return source
            time.sleep(CAPTURE_LOOK_SECONDS)
            self._reap()
        return None

    def _forked(self, source: str) -> bool:
        """Whether this is the child. A signal that comes meanwhile is told to parent and child afterwards."""
        sys.stdout.flush()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self._running.clear()
                return True
            del self._due[source]
            self._running[pid] = source
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _end(self, *_: object) -> None:
        if self._is_ending:  # this handler may be interrupted by itself, while it holds the event's lock
            return
        self._is_ending = True
        self.stop.set()
        for pid in self._running:
            with suppress(ProcessLookupError):  # it ended just now
                os.kill(pid, signal.SIGTERM)

    def _reap(self) -> None:
        for pid in list(self._running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._note(self._running.pop(pid), os.waitstatus_to_exitcode(status))

    def _note(self, source: str, code: int) -> None:
        self._codes[source] = code
        if code == EXIT_OK or self.stop.is_set():
            return
        again = self.left_seconds > CAPTURE_REFUSED_SECONDS
        if again:
            self._due[source] = time.monotonic() + CAPTURE_REFUSED_SECONDS
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        then = f"; it begins again in {CAPTURE_REFUSED_SECONDS:.0f} s" if again else ""
        log.warning("capture of source %s %s%s", source, how, then, extra={"source": source})
