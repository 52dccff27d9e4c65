"""SIGTERM and Ctrl-C end a command in whatever it is at."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import faulthandler, signal, threading
    from tidegate.cli.stop_signals import set_by_signals
    faulthandler.dump_traceback_later(20, exit=True)
    stop = threading.Event()
    set_by_signals(stop)
    with stop._cond:  # as between two steps of wait()
        signal.raise_signal({number})
        signal.raise_signal({number})
    assert stop.wait(10)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_while_the_event_is_waited_for_ends_the_work(number: signal.Signals) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT.format(number=int(number)))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
