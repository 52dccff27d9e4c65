"""`patience.py COMMAND...`: run a command that may be silent for minutes, and say now and then that it still runs.

In:  the command and its arguments.
Out: its output and its exit code; a line after each half minute.

Runs under the system's Python, perhaps an old one: standard library only, and no syntax newer than 3.7.
"""

from __future__ import annotations

import subprocess
import sys
import time

EACH_SECONDS = 30.0


def run(command: list, each_seconds: float = EACH_SECONDS, **options: object) -> int:
    """As subprocess.call."""
    began = time.monotonic()
    process = subprocess.Popen(command, **options)
    try:
        while True:
            try:
                return process.wait(each_seconds)
            except subprocess.TimeoutExpired:
                print(f"tidegate: still at it, since {time.monotonic() - began:.0f} s", flush=True)
    except KeyboardInterrupt:  # the command had it, too: its end is awaited
        process.wait()
        raise
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
