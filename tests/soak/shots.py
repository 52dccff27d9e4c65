"""Snapshots of a table that changes all the time, as people ask for them; their readers are killed.

In:  the pipeline file, an environment that reaches the source, a log file.
Out: at most one reader at a time, a process of its own. Whether its waves did harm is seen when silver is compared.

The table is whole, so it is read again in place: a snapshot that ends nowhere leaves it as it was, and the next reader
goes on with what the last one left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from tests.soak.source import DATABASE

TABLE = f"{DATABASE}.txns"  # no fault changes its definition, or leaves it out
_END_SECONDS = 30


class Shots:
    """A context manager: ends what runs."""

    def __init__(self, file: Path, environment: dict[str, str], log: Path, table: str = TABLE) -> None:
        self._file, self._environment, self._log, self._table = file, os.environ | environment, log, table
        self._said = 0  # bytes of the log before the reader that was begun last
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def reads(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def begin(self, *tables: str, asks: bool = True) -> None:
        """Ask for a snapshot, of these or of the usual table, and read; where a reader is at work already, that one
        goes on.

        asks: else nothing is asked for but what waits by itself.
        """
        if self.reads:
            return
        words = ["start", str(self._file), *(tables or (self._table,))] if asks else ["run", str(self._file)]
        command = [str(Path(sys.executable).parent / "tidegate"), "snapshot", *words]
        with self._log.open("ab") as log:
            self._said = log.tell()
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=self._environment)

    def wait(self) -> None:
        """Until the reader that was begun has said a word: it starts for some seconds."""
        end = time.monotonic() + _END_SECONDS
        while self.reads and time.monotonic() < end:
            if self._log.stat().st_size > self._said:
                return
            time.sleep(0.1)

    def kill(self) -> None:
        """End the reader where it is."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(_END_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
