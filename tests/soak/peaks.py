"""How much memory the processes of a soak have had at most.

In:  a function that says which processes run now: name -> pid.
Out: Peaks.seen: name -> MiB, the kernel's own high-water mark, of all processes that had the name.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

_EVERY_SECONDS: Final = 1.0


class Peaks:
    """A context manager: looks each second inside it. Our Spark's JVM is looked at, too."""

    def __init__(self, running: Callable[[], Mapping[str, int | None]]) -> None:
        self.seen: dict[str, int] = {}
        self._running = running
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)

    def __str__(self) -> str:
        return "peak RSS " + ", ".join(f"{name} {mebibytes} MiB" for name, mebibytes in sorted(self.seen.items()))

    def _look(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            for name, pid in [*self._running().items(), *(("Spark's JVM", pid) for pid in _jvms())]:
                with contextlib.suppress(OSError, StopIteration):  # it has ended
                    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                    kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
                    self.seen[name] = max(self.seen.get(name, 0), kib >> 10)


def _jvms() -> list[int]:
    """Those that this process has started."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    found = [int(pid) for pid in children.read_text().split()]
    return [pid for pid in found if _name(pid) == "java"]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended
        return ""
