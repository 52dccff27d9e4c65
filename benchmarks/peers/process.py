"""A peer in a process of its own, which stays up between runs and so is as warm as we are.

In:  a command. It reads one line of JSON from its standard input per run and answers with one line of JSON.
Out: Peer.go(request, rows) -> row changes; Peer.pid, whose process tree is the peer's cost.
"""

from __future__ import annotations

import json
import select
import subprocess
import tempfile
from typing import Any, Self

from benchmarks.figures import Missing


class Peer:
    """A context manager; its process ends with it."""

    def __init__(self, name: str, command: list[str], *, seconds: float = 600.0) -> None:
        self.name = name
        self._command = command
        self._seconds = seconds

    def __enter__(self) -> Self:
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def go(self, request: dict[str, Any], rows: int) -> int:
        """One run: how many row changes it went through. Raises Missing when that is less than `rows`, or when it
        fails: it is then left out, with its own last words.
        """
        answer = self.ask(request)
        if answer["rows"] < rows or not answer["values"]:
            raise Missing(f"{self.name}: went through {answer} where {rows} row changes are")
        return int(answer["rows"])

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Its answer to one request. Raises Missing when it fails, with its own last words."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        except BrokenPipeError:
            raise Missing(f"{self.name}: {self._last_words()}") from None
        if not select.select([stdout], [], [], self._seconds)[0]:
            raise Missing(f"{self.name}: no answer within {self._seconds:.0f} s")
        line = stdout.readline()
        if not line.startswith("{"):
            raise Missing(f"{self.name}: {self._last_words()}")
        return dict(json.loads(line))

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors if line.strip()]
        told = [line for line in lines if "Exception" in line or "rror" in line]
        return (told or lines or ["it ended without a word"])[0][:300]
