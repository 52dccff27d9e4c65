"""What becomes of Spark when the command that submitted it is told to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.servers import ROOT
from tidegate.cli.submit import _Ends
from tidegate.home import EXIT_INTERRUPTED

PIPELINE = "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['a.*']}\n"
# `submit` looks for spark-submit beside the interpreter.
COMMAND = "import sys; sys.executable = sys.argv[1]; from tidegate.cli.submit import submit; "
COMMAND += "sys.exit(submit('apply', sys.argv[2], [], 'local[1]'))"


def is_running(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_command_that_is_told_to_end_ends_spark_too(tmp_path: Path) -> None:
    """A Spark that went on by itself would hold its lease, and whoever is started next would end with 75."""
    (tmp_path / "p.yaml").write_text(PIPELINE)
    fake = tmp_path / "spark-submit"
    fake.write_text("#!/bin/sh\nsleep 3600 >/dev/null 2>&1 &\necho $$ $!\nwait\n")  # as a JVM has the job's Python
    fake.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(tmp_path / "python"), str(tmp_path / "p.yaml")],
        env=os.environ | {"TIDEGATE_HOME": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert all(map(is_running, pids))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (EXIT_INTERRUPTED, "")
    end = time.monotonic() + 60
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(is_running, pids))


def test_a_thread_of_spark_that_ends_meanwhile_keeps_nothing_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM's come and go: one that is listed may be gone when its children are read."""

    def gone(_: Path) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", gone)
    before = signal.getsignal(signal.SIGTERM)
    with subprocess.Popen(["sleep", "3600"], text=True) as process:
        try:
            ends = _Ends(process)
            signal.raise_signal(signal.SIGTERM)
            assert process.wait(60) == -signal.SIGTERM
            assert ends.signalled
        finally:
            process.kill()
            signal.signal(signal.SIGTERM, before)
