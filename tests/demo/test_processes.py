"""What we started is ended, children in groups of their own and deaf to SIGTERM included; nothing else is.

In:  real processes.
Out: which of them still run.
"""

from __future__ import annotations

import os
import subprocess
import time
import uuid

from tidegate.local.processes import end_all, marked

DEAF_CHILD = """
import subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
time.sleep(600)
"""


def test_children_that_left_the_group_and_ignore_sigterm_are_ended_too() -> None:
    name, value = "TIDEGATE_TEST_MARK", uuid.uuid4().hex
    mark = f"{name}={value}"
    stranger = subprocess.Popen(["sleep", "600"])
    parent = subprocess.Popen(
        ["python3", "-c", DEAF_CHILD], env=os.environ | {name: value}, stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"deaf\n"
    assert len(marked(mark)) == 2
    end_all(parent, mark, patience=1.0)
    parent.stdout.close()
    assert marked(mark) == []
    assert parent.poll() is not None
    assert stranger.poll() is None, "a process of someone else was ended"
    stranger.kill()
    stranger.wait()


NAMELESS_CHILD = """
import os, subprocess, sys, time
child = "import os, time; os.setpgid(0, 0); print('nameless', flush=True); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child], env={})
time.sleep(600)
"""


def test_children_without_the_mark_are_known_by_their_session() -> None:
    parent = subprocess.Popen(["python3", "-c", NAMELESS_CHILD], stdout=subprocess.PIPE, start_new_session=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"nameless\n"
    end_all(parent, "TIDEGATE_TEST_MARK=nobody", patience=1.0)
    assert parent.stdout.read() == b"", "a child still holds the pipe"
    parent.stdout.close()


def test_ending_what_ended_long_ago_is_harmless_and_quick() -> None:
    gone = subprocess.Popen(["true"], start_new_session=True)
    gone.wait()
    started = time.monotonic()
    end_all(gone, "TIDEGATE_TEST_MARK=nobody", patience=400)
    end_all(None, "TIDEGATE_TEST_MARK=nobody", patience=400)
    assert time.monotonic() - started < 300, "it has patience only with what runs"
