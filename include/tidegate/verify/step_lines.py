"""The present step of a verification, said every half minute: a large table takes minutes.

In:  the steps of SilverSide; the rows of a table in silver, asked when a line is due.
Out: lines for people, from a thread of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import StrEnum
from types import TracebackType
from typing import Self

from tidegate.limits import VERIFY_REPORT_SECONDS
from tidegate.text_layout import age_text, counted


class VerifyStep(StrEnum):
    """A long step of a table."""

    READS = "read at the source"
    COMPARES = "compared with silver"


class StepLines:
    """report: told of a line. rows_of: a table's rows in silver; None if they aren't known."""

    def __init__(
        self,
        report: Callable[[str], None] = lambda _: None,
        rows_of: Callable[[str], int | None] = lambda _: None,
        seconds: float = VERIFY_REPORT_SECONDS,
    ) -> None:
        self.tables = self.done = 0
        self._report = report
        self._rows_of = rows_of
        self._seconds = seconds
        self._table, self._step, self._rows, self._began = "", VerifyStep.READS, 0, 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="tidegate-verify-progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def begin(self, table: str, step: VerifyStep, rows: int = 0) -> None:
        """rows: of the source, where they are known."""
        self._table, self._step, self._rows, self._began = table, step, rows, time.monotonic()

    def add(self, rows: int) -> None:
        """More rows were read."""
        self._rows += rows

    @property
    def line(self) -> str:
        done = f"{self.done:,} of {counted(self.tables, 'table', 'tables')} done"
        if not self._table:
            return done
        seconds = max(time.monotonic() - self._began, 0.001)
        if self._step is VerifyStep.COMPARES:
            return f"{self._table}: {self._rows:,} rows are {self._step} since {age_text(seconds)}; {done}"
        size = self._rows_of(self._table)
        of = f" of about {size:,}" if size is not None and size >= self._rows else ""
        return f"{self._table}: {self._rows:,}{of} rows {self._step}, {self._rows / seconds:,.0f} rows/s; {done}"

    def _tell(self) -> None:
        while not self._ended.wait(self._seconds):
            self._report(self.line)
