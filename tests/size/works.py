"""Commands of `tidegate`, each again whenever it ends; they are killed, and what they take is measured.

In:  commands; an environment with the connections.
Out: Works; Works.cpu_seconds and Works.peaks, by role: a command's Python processes, and its JVM.

All processes of a command are in a session of their own: what is looked at, and killed, is that session.
"""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tidegate.home import EXIT_OK, EXIT_TRANSIENT

TIDEGATE: Final = str(Path(sys.executable).parent / "tidegate")
_STOP_SECONDS: Final = 60
_LOOK_SECONDS: Final = 1.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Works:
    """trouble: what ended otherwise than it would be tried again. logs: a folder."""

    def __init__(self, environment: dict[str, str], logs: Path) -> None:
        self.trouble: list[str] = []
        self.starts: collections.Counter[str] = collections.Counter()
        self.peaks: dict[str, int] = {}  # role -> MiB
        self.environment, self._logs = environment, logs
        self._cpu: dict[tuple[str, int, int], float] = {}  # role, process and when it began -> seconds
        self._over = threading.Event()
        self._running: dict[str, subprocess.Popen[Any]] = {}
        self._threads: list[threading.Thread] = []
        self._meter = threading.Thread(target=self._look)
        self._meter.start()

    def start(self, name: str, arguments: Sequence[str]) -> None:
        """name: also of its log."""
        thread = threading.Thread(target=self._run, args=(name, arguments))
        self._threads.append(thread)
        thread.start()

    def kill(self, name: str) -> None:
        """SIGKILL to all of its processes."""
        if (process := self._running.get(name)) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def stop(self) -> None:
        self._over.set()
        for thread in [*self._threads, self._meter]:
            thread.join()

    def once(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, measured as the others are."""
        name = arguments[0]
        with (self._logs / f"{name}.log").open("a") as log:
            process = subprocess.Popen(
                [TIDEGATE, *arguments],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
            self._running[f"{name} once"] = process
            out, _ = process.communicate()
            del self._running[f"{name} once"]
        return subprocess.CompletedProcess(process.args, process.returncode, out)

    @property
    def cpu_seconds(self) -> dict[str, float]:
        """By role, of all that there was of it."""
        found: dict[str, float] = collections.defaultdict(float)
        for (role, _, _), seconds in list(self._cpu.items()):
            found[role] += seconds
        return dict(found)

    def _run(self, name: str, arguments: Sequence[str]) -> None:
        while not self._over.is_set():
            with (self._logs / f"{name}.log").open("a") as log:
                argv = [TIDEGATE, *arguments]
                process = subprocess.Popen(argv, env=self.environment, stdout=log, stderr=log, start_new_session=True)
                self._running[name] = process
                self.starts[name] += 1
                while process.poll() is None and not self._over.wait(0.2):
                    pass
            if process.poll() is None:
                self._stop(process)
                return
            if process.returncode not in (EXIT_OK, EXIT_TRANSIENT, -signal.SIGKILL):
                self.trouble.append(f"{name} ended with {process.returncode}: see {name}.log")
            self._over.wait(0.5)

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    # --- measure ------------------------------------------------------------------------------------------

    def _look(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            sessions = {process.pid: name.removesuffix(" once") for name, process in list(self._running.items())}
            for pid, program, session, began, seconds in _processes():
                if (name := sessions.get(session)) is None:
                    continue
                role = f"{name}'s JVM" if program == "java" else name
                self._cpu[role, pid, began] = seconds
                with contextlib.suppress(OSError, StopIteration):  # it has ended
                    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                    kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
                    self.peaks[role] = max(self.peaks.get(role, 0), kib >> 10)


def _processes() -> Iterator[tuple[int, str, int, int, float]]:
    """(pid, program, session, when it began, its CPU seconds) of each process there is."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_text()
                program, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
                yield int(entry.name), program, int(rest[3]), int(rest[19]), (int(rest[11]) + int(rest[12])) / _TICKS
