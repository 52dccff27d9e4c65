"""A command of `make` that may be silent for minutes is said to run still, and ends as it ends by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from tests.support.servers import ROOT

PROGRAM = ROOT / "tools" / "patience.py"


def test_output_and_exit_code_are_the_commands_own() -> None:
    command = [sys.executable, str(PROGRAM), "sh", "-c", "echo a line; exit 7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "a line\n", "")


def test_a_silent_command_is_said_to_run_still() -> None:
    program = "import sys; sys.path.insert(0, sys.argv[1]); import patience; patience.run(['sleep', '1'], 0.3)"
    command, began = [sys.executable, "-c", program, str(PROGRAM.parent)], time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 1 <= done.stdout.count("tidegate: still at it") <= (time.monotonic() - began) / 0.3


def test_ctrl_c_ends_both() -> None:
    process = subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, str(PROGRAM), "sh", "-c", "echo begun; exec sleep 600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "")
