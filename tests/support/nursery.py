"""Capture processes that start at once: forked from one that has imported everything.

In:  arguments and environment of `tidegate capture` or `tidegate pump`; or `upkeep FILE SEQ` (tests/soak/upkeep.py).
Out: Child: a process of its own, in a session of its own, that any signal reaches. Importing numba and delta-rs takes
     seconds; a soak that kills capture hundreds of times would do little else.

Run as a module it is the process that is forked from: single-threaded, commands on stdin, news on stdout, a JSON line
each. When stdin ends it kills what it started.

A child's lake can be gated by files in TIDEGATE_TEST_GATE: `stall` (a file of bronze is not written while it exists),
`full` (half of it is, then there is no space), `slow` (bytes per second); `arm` names the failpoint that is set once a
stall is over, or at once on SIGUSR1.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

GATE: Final = "TIDEGATE_TEST_GATE"
TERMINAL, TRANSIENT, BROKEN = 1, 75, 70  # exit codes: stop, try again, an exception that isn't ours


class Child:
    """One forked process. returncode: as subprocess has it, None while it runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._over = threading.Event()

    def wait(self, seconds: float | None = None) -> int | None:
        """Its return code; None when it still runs after so many seconds."""
        self._over.wait(seconds)
        return self.returncode

    def send(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it ended, and we weren't told yet
                os.kill(self.pid, number)

    def ended(self, status: int) -> None:
        self.returncode = os.waitstatus_to_exitcode(status)
        self._over.set()


class Nursery:
    """A context manager: start() forks; at the end all that still run are killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._children: dict[int, Child] = {}
        self._changed = threading.Condition()
        self._started: list[Child] = []
        self._starting = threading.Lock()  # one at a time: who starts two gets each its own
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, arguments: Sequence[str], environment: dict[str, str], log: Path) -> Child:
        """`tidegate ARGUMENTS` with these variables beside our own; stdout and stderr are appended to log."""
        assert self._process.stdin is not None
        line = json.dumps({"arguments": list(arguments), "environment": environment, "log": str(log)})
        with self._starting, self._changed:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            assert self._changed.wait_for(lambda: self._started, 600), "the nursery doesn't answer"
            return self._started.pop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(300)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                news = json.loads(line)
                with self._changed:
                    if "status" in news:
                        self._children.pop(news["pid"]).ended(news["status"])
                    else:
                        child = Child(news["pid"])
                        self._children[child.pid] = child
                        self._started.append(child)
                        self._changed.notify_all()
        except ValueError:  # closed beneath us
            return


# --- inside -------------------------------------------------------------------------------------------------------


def _gate_lake(folder: Path) -> None:
    """Make what writes files of bronze look at the folder first."""
    from tidegate.lake.bronze import file as bronze_file

    real = bronze_file.write_file

    def write_file(sink: Any, segments: Any, *arguments: Any) -> None:
        stalled = False
        while (folder / "stall").exists():
            stalled = True
            time.sleep(0.02)
        if stalled:
            _arm()
        if (folder / "full").exists():
            sink.write(b"PAR1" + bytes(1000))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with contextlib.suppress(FileNotFoundError, ValueError):
            time.sleep(sum(len(one.payload) for one in segments) / float((folder / "slow").read_text()))
        real(sink, segments, *arguments)

    bronze_file.write_file = write_file


def _arm(*_: object) -> None:
    with contextlib.suppress(KeyError, FileNotFoundError):
        os.environ["TIDEGATE_FAILPOINT"] = (Path(os.environ[GATE]) / "arm").read_text()


def _child(command: dict[str, Any]) -> None:
    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    log = os.open(command["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in ((0, nothing), (1, log), (2, log)):
        os.dup2(file, number)
    os.environ.update(command["environment"])
    if gate := os.environ.get(GATE):
        _gate_lake(Path(gate))
    from tests.soak.upkeep import upkeep
    from tidegate.cli.main import app
    from tidegate.errors import TidegateError, Transient

    try:
        if command["arguments"][0] == "upkeep":
            upkeep(Path(command["arguments"][1]), int(command["arguments"][2]))
            return
        app(args=command["arguments"], standalone_mode=False)
    except TidegateError as error:
        print(f"tidegate: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        sys.exit(TRANSIENT if isinstance(error, Transient) else TERMINAL)


def _report(**news: int) -> None:
    os.write(1, (json.dumps(news) + "\n").encode())


def _reap(children: set[int], *, how: int = os.WNOHANG) -> None:
    while children:
        pid, status = os.waitpid(-1, how)
        if not pid:
            return
        children.discard(pid)
        _report(pid=pid, status=status)


def main() -> None:
    """Fork for each line of stdin until it ends."""
    import tests.soak.upkeep
    import tests.support.loaded  # noqa: F401
    import tidegate.actions.erase_order
    import tidegate.capture.run
    import tidegate.capture.status_file
    import tidegate.cli.capture
    import tidegate.cli.main
    import tidegate.erase.erasure
    import tidegate.lake.storage.storage_options  # noqa: F401

    assert threading.active_count() == 1, "a fork would lose threads"
    signal.signal(signal.SIGUSR1, _arm)  # before the first fork: a child may be told at once
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started us; capture has handlers of its own
    children: set[int] = set()
    pending = b""
    while True:
        _reap(children)
        if not select.select([0], [], [], 0.02 if children else None)[0]:  # without any it sleeps
            continue
        read = os.read(0, 1 << 16)
        if not read:
            break
        pending += read
        *lines, pending = pending.split(b"\n")
        for line in lines:
            pid = os.fork()
            if pid == 0:
                try:
                    _child(json.loads(line))
                except SystemExit as end:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(end.code if isinstance(end.code, int) else 1)
                except BaseException:  # noqa: BLE001  as an interpreter would end
                    import traceback

                    traceback.print_exc()
                    sys.stderr.flush()
                    os._exit(BROKEN)
                sys.stdout.flush()
                os._exit(0)
            children.add(pid)
            _report(pid=pid)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    _reap(children, how=0)


if __name__ == "__main__":
    main()
