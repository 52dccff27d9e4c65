"""Captures of several sources: each in a process of its own, which fails and ends apart from the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

BEGUN = """
    import os, sys, time
    from pathlib import Path
    from tidegate.cli import capture_each
    capture_each.CAPTURE_REFUSED_SECONDS, capture_each.CAPTURE_LOOK_SECONDS = 0.2, 0.02
    folder = Path(sys.argv[1])
    captures = capture_each.Captures(["eu", "us"], {seconds})
    source = captures.begun()
    if source is None:
        sys.exit(captures.code)
    with (folder / source).open("a") as file:
        file.write(f"{{os.getpid()}}\\n")
"""


def begun(folder: Path, seconds: float, *child: str) -> subprocess.Popen[str]:
    """A process that captures `eu` and `us`; child: what each child does."""
    script = textwrap.dedent(BEGUN.format(seconds=seconds)) + "\n".join(child)
    command = [sys.executable, "-c", script, str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def pids(folder: Path, source: str, count: int = 1) -> list[int]:
    """Of the source's processes so far, when there are so many."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        file = folder / source
        if file.exists() and len(lines := file.read_text().split()) >= count:
            return [int(line) for line in lines]
        time.sleep(0.02)
    raise AssertionError(f"{source} didn't begin {count} times")


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_each_source_has_a_process_and_all_end_well(tmp_path: Path) -> None:
    with begun(tmp_path, 60) as process:
        assert process.wait(60) == 0
    assert len({process.pid, *pids(tmp_path, "eu"), *pids(tmp_path, "us")}) == 3


def test_a_source_that_fails_begins_again_and_the_other_goes_on(tmp_path: Path) -> None:
    child = "if source == 'eu': sys.exit(75)", "captures.stop.wait(60)"
    with begun(tmp_path, 60, *child) as process:
        pids(tmp_path, "eu", 3)
        (other,) = pids(tmp_path, "us")
        assert is_alive(other)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 75, "a cause that may pass"
        assert process.stderr is not None
        said = process.stderr.read()
    assert "capture of source eu ended with exit code 75; it begins again in" in said
    assert "source us" not in said


def test_an_error_for_a_person_comes_before_one_that_may_pass(tmp_path: Path) -> None:
    with begun(tmp_path, 0.1, "sys.exit(1 if source == 'us' else 75)") as process:
        assert process.wait(60) == 1


def test_a_killed_process_begins_again(tmp_path: Path) -> None:
    with begun(tmp_path, 60, "captures.stop.wait(60)") as process:
        os.kill(pids(tmp_path, "eu")[0], signal.SIGKILL)
        assert is_alive(pids(tmp_path, "eu", 2)[1])
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, "each one's last run ended well"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all(tmp_path: Path, number: signal.Signals) -> None:
    with begun(tmp_path, 60, "captures.stop.wait(60)") as process:
        children = pids(tmp_path, "eu") + pids(tmp_path, "us")
        process.send_signal(number)
        assert process.wait(60) == 0
    assert not any(map(is_alive, children))


def test_children_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    child = "while not captures.stop.wait(0.02): captures.end_orphan()", "(folder / 'ended').write_text('')"
    with begun(tmp_path, 60, *child) as process:
        children = pids(tmp_path, "eu") + pids(tmp_path, "us")
        process.kill()
        process.wait()
        end = time.monotonic() + 60
        while any(map(is_alive, children)) and time.monotonic() < end:
            time.sleep(0.02)
    assert (tmp_path / "ended").exists()
    assert not any(map(is_alive, children))
