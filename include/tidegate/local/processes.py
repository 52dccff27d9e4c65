"""End a process and everything that it started; keep a second run out of a folder.

In:  the process, and a mark `NAME=value` in its environment alone; a folder for one run.
Out: none of them runs any more; a lock while a block runs.

A process group isn't enough: Airflow's children start groups of their own, and outlive its SIGTERM. Nor is the mark:
LocalExecutor's workers overwrite their environment with their name; but they are still in the session. Without /proc
(macOS) only the group can be ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tidegate.errors import UsageError

_POLL_SECONDS: Final = 0.1


@contextlib.contextmanager
def sole(folder: Path, what: str) -> Iterator[None]:
    """Hold the folder's lock. Whoever comes second has touched nothing and gets a UsageError that names the holder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            raise UsageError(
                f"{what} runs already: process {holder}", where=str(folder), remedy="use that one, or end it first"
            ) from error
        handle.truncate(0)
        handle.write(f"{os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        handle.flush()
        yield


def end_all(process: subprocess.Popen[Any] | None, mark: str, *, patience: float = 15.0) -> None:
    """SIGTERM to all of them, SIGKILL to those that are still there after `patience` seconds."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
        for pid in marked(mark) + _in_session(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        end = time.monotonic() + patience
        while time.monotonic() < end:
            running = process is not None and process.poll() is None
            if not running and not marked(mark) and not _in_session(process):
                return
            time.sleep(_POLL_SECONDS)


def _in_session(process: subprocess.Popen[Any] | None) -> list[int]:
    """The processes in the session that the process leads (it was started with start_new_session)."""
    if process is None:
        return []
    pids = []
    for pid in _all_processes():
        with contextlib.suppress(OSError):  # ended meanwhile
            state = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
            if os.getsid(pid) == process.pid and pid != process.pid and state != "Z":
                pids.append(pid)
    return pids


def _all_processes() -> list[int]:
    """Every process but this one; none where there is no /proc."""
    proc = Path("/proc")
    listed = (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()) if proc.is_dir() else ()
    return [pid for pid in listed if pid != os.getpid()]


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
            output, _ = process.communicate()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout=output)


def marked(mark: str) -> list[int]:
    """Processes of ours, this one excluded, whose environment holds `NAME=value`."""
    wanted, pids = mark.encode(), []
    for pid in _all_processes():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue  # ended meanwhile, or another user's
        if wanted in environment.split(b"\0"):
            pids.append(pid)
    return pids
