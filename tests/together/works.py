"""Capture, apply, maintain and rebuild as a user starts them, each again whenever it ends.

In:  commands of `tidegate`; an environment with the connections.
Out: Works: how often each ran and how it ended; trouble: what ended otherwise than Airflow would try again.
"""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidegate.home import EXIT_OK, EXIT_TRANSIENT

_TIDEGATE: Final = str(Path(sys.executable).parent / "tidegate")
_STOP_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Work:
    """name: also of its log. pause_seconds: between its end and its next start."""

    name: str
    arguments: Sequence[str]
    pause_seconds: float = 0.5


class Works:
    """logs: a folder."""

    def __init__(self, environment: dict[str, str], logs: Path) -> None:
        self.ended: collections.Counter[str] = collections.Counter()
        self.trouble: list[str] = []
        self._environment, self._logs = environment, logs
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, work: Work) -> None:
        thread = threading.Thread(target=self._run, args=(work,))
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, work: Work) -> None:
        while not self._over.is_set():
            with (self._logs / f"{work.name}.log").open("a") as log:
                argv = [_TIDEGATE, *work.arguments]
                process = subprocess.Popen(argv, env=self._environment, stdout=log, stderr=log, start_new_session=True)
                while process.poll() is None and not self._over.wait(0.2):
                    pass
                if process.poll() is None:
                    self._stop(process)
                    return
            self._note(work, process.returncode)
            self._over.wait(work.pause_seconds)

    def _note(self, work: Work, code: int) -> None:
        self.ended[f"{work.name} {'ended' if code == EXIT_OK else f'ended with {code}'}"] += 1
        if code not in (EXIT_OK, EXIT_TRANSIENT):
            self.trouble.append(f"{work.name} ended with {code}: see {work.name}.log")

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        """Ctrl-C to it and to all that it started; then what is left of them is killed."""
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
