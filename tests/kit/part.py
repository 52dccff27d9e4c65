"""A process of the topology: started, killed with all that it started, started again.

In:  a command, an environment, a folder for its log, a question that says whether it is ready.
Out: Part.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tidegate.local.processes import end_all

_READY_SECONDS: Final = 300.0
# Tells the processes of one part from all others.
_MARK: Final = "TIDEGATE_TOPOLOGY_PART"


class PartError(Exception):
    """A part ended by itself or never became ready; the text has the end of its log."""


@dataclass
class Part:
    """user: whom it runs as, None for ours. is_ready: asked until it says yes."""

    name: str
    command: list[str]
    folder: Path
    environment: Mapping[str, str]
    is_ready: Callable[[], bool]
    user: str | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Raises PartError."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                env={**self.environment, _MARK: self._mark},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=self.user,
            )
        end = time.monotonic() + _READY_SECONDS
        while not self.is_ready():
            if time.monotonic() > end:
                raise PartError(f"{self.name} isn't ready after {_READY_SECONDS:.0f} s\n{self.tail()}")
            self.check()
            time.sleep(0.3)

    def check(self) -> None:
        """Raises PartError when it has ended."""
        if self._process is None or self._process.poll() is not None:
            raise PartError(f"{self.name} ended\n{self.tail()}")

    def revive(self) -> None:
        """Start it again if it has ended, as Compose and Kubernetes do. Raises PartError."""
        if self._process is not None and self._process.poll() is not None:
            self.start()

    def kill(self) -> None:
        """SIGKILL to it and to all that it started, as when its machine loses power."""
        assert self._process is not None, f"{self.name} was never started"
        os.killpg(self._process.pid, signal.SIGKILL)
        end_all(self._process, f"{_MARK}={self._mark}", patience=0.1)
        self._process.wait()

    def stop(self) -> None:
        """End it in order."""
        end_all(self._process, f"{_MARK}={self._mark}")

    @property
    def pid(self) -> int:
        """Of its process, which runs."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def tail(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-30:])

    @property
    def _mark(self) -> str:
        return f"{self.folder}/{self.name}"
