"""End a process that we started together with everything it started.

In:  the process, and a mark `NAME=value` that only its environment carries.
Out: none of them runs any more.

A process group isn't enough: Airflow's children start groups of their own, and outlive its SIGTERM.
Where there is no /proc (macOS) the group is all that we can name.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final

_POLL_SECONDS: Final = 0.1


def end_all(process: subprocess.Popen[Any] | None, mark: str, *, patience: float = 15.0) -> None:
    """SIGTERM to all of them, SIGKILL to those that are still there after `patience` seconds."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
        for pid in marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        end = time.monotonic() + patience
        while time.monotonic() < end:
            running = process is not None and process.poll() is None
            if not running and not marked(mark):
                return
            time.sleep(_POLL_SECONDS)


def run_whole(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run to the end, output captured; an exception meanwhile (Ctrl-C, SIGTERM) ends it with all its children.

    subprocess.run would kill a shell script and leave what the script runs. It gets a TMPDIR of its own: a
    database server that starts removes every `#sql` file in its temporary folder, another server's too.
    """
    with tempfile.TemporaryDirectory(prefix="tidegate-") as scratch:
        return _run_whole(command, os.environ | {"TMPDIR": scratch})


def _run_whole(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            told, _ = process.communicate()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout=told)


def marked(mark: str) -> list[int]:
    """Processes of ours, this one excluded, whose environment holds `NAME=value`."""
    wanted, found = mark.encode(), []
    proc = Path("/proc")
    if not proc.is_dir():
        return []
    for entry in proc.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue  # ended meanwhile, or another user's
        if wanted in environment.split(b"\0"):
            found.append(int(entry.name))
    return found
