"""The commands of a page, run in order, as a reader runs them.

In:  Markdown. A block ```shell is run by bash, in one folder. A block ```text behind it holds lines that the command
     prints; each must come, wherever it stands. A comment before the block says how to run it:
     `<!-- run: until it says -->` in a terminal of its own, which goes on running;
     `<!-- run: again until it says -->` again and again.
Out: each command's text and what it printed. Raises AssertionError for a command that fails or says something else.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_BLOCK = re.compile(r"(?:<!-- run: ([a-z ]+) -->\n)?```shell\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
_EXPORT = re.compile(r"^export .*$", re.MULTILINE)
# A terminal's shell; whoever runs the tests in the background ignores Ctrl-C, and so would all children.
_SHELL = ("env", "--default-signal=INT", "bash", "-euo", "pipefail", "-c")
_TICK_SECONDS = 1.0
ONCE, STAYS, AGAIN = "", "until it says", "again until it says"


@dataclass(frozen=True)
class Command:
    how: str
    text: str
    says: tuple[str, ...]


def commands(page: str) -> list[Command]:
    blocks = [Command(how or ONCE, text, tuple(says.split("\n")[:-1])) for how, text, says in _BLOCK.findall(page)]
    assert {block.how for block in blocks} <= {ONCE, STAYS, AGAIN}, "an unknown comment"
    assert len(blocks) == page.count("```shell\n"), "a block has a form that isn't run"
    return blocks


@dataclass
class Reader:
    """A person at terminals in one folder. exports: what was exported so far, for the terminals to come."""

    folder: Path
    environment: Mapping[str, str]
    seconds: float
    exports: list[str] = field(default_factory=list)
    terminals: list[tuple[subprocess.Popen[bytes], Path]] = field(default_factory=list)

    def follow(self, page: str) -> None:
        for command in commands(page):
            self.run(command)

    def run(self, command: Command) -> None:
        if command.how == STAYS:
            self._stays(command)
        else:
            self._ends(command)
        self.exports += _EXPORT.findall(command.text)

    def _ends(self, command: Command) -> None:
        end = time.monotonic() + self.seconds
        while True:
            done = subprocess.run(
                [*_SHELL, self._script(command)],
                cwd=self.folder,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=self.seconds,
                check=False,
            )
            lacks = missing(command.says, done.stdout)
            if not lacks and (done.returncode == 0 or command.how == AGAIN):
                return
            shown = f"{command.text}\nended with {done.returncode} and said\n{done.stdout}\nwithout {lacks}"
            assert command.how == AGAIN, shown
            assert time.monotonic() < end, shown
            time.sleep(_TICK_SECONDS)

    def _stays(self, command: Command) -> None:
        log = self.folder / f"terminal-{len(self.terminals)}.log"
        with log.open("wb") as opened:
            process = subprocess.Popen(
                [*_SHELL, self._script(command)],
                cwd=self.folder,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=opened,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.terminals.append((process, log))
        end = time.monotonic() + self.seconds
        while missing(command.says, log.read_text()):
            assert process.poll() is None, f"{command.text}\nended and said\n{log.read_text()}"
            assert time.monotonic() < end, f"{command.text}\nsaid only\n{log.read_text()}"
            time.sleep(_TICK_SECONDS)

    def _script(self, command: Command) -> str:
        return "\n".join([*self.exports, command.text])

    def press_ctrl_c(self) -> None:
        """In each terminal, the newest first, and wait until it has ended."""
        for process, _ in reversed(self.terminals):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            process.wait(self.seconds)
        self.terminals.clear()


@contextmanager
def reader(folder: Path, environment: Mapping[str, str], *, seconds: float = 600.0) -> Iterator[Reader]:
    """seconds: how long any command may take."""
    person = Reader(folder, environment, seconds)
    try:
        yield person
    finally:
        person.press_ctrl_c()


def missing(says: tuple[str, ...], printed: str) -> list[str]:
    """Lines that weren't printed. Runs of spaces count as one: a table's width changes with its cells."""
    plain = " ".join(printed.split())
    return [line for line in says if " ".join(line.split()) not in plain]
