"""The windows of an apply as lines of its log. A busy pipeline has two windows a second: a line for each would be too
many.

In:  each window as it is done.
Out: a line at once for the first window, and for one with something to say of a table; the others
     together, in a line every REPORT_SECONDS.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.commit_ts import physical_ms, time_text
from tidegate.limits import REPORT_SECONDS
from tidegate.text_layout import counted


@dataclass(frozen=True, slots=True)
class WindowDone:
    """seconds: of work. notes: text about tables or writers, shown with a window of its own line."""

    cut_ts: int
    segments: int
    changes: int
    tables: int
    seconds: float
    notes: str = ""
    is_news: bool = False


class WindowLines:
    """report: takes a line. flush() at the end."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._kept: list[WindowDone] = []
        self._told_at = float("-inf")

    def add(self, done: WindowDone) -> None:
        if done.is_news:
            self.flush()
        self._kept.append(done)
        if done.is_news or time.monotonic() - self._told_at >= REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        if not self._kept:
            return
        kept, self._kept, self._told_at = self._kept, [], time.monotonic()
        last = kept[-1]
        work = [counted(sum(done.changes for done in kept), "change", "changes")]
        if len(kept) == 1:
            work += [counted(last.tables, "table", "tables"), counted(last.segments, "segment", "segments")]
        else:
            work.append(counted(len(kept), "window", "windows"))
        behind = max(time.time() - physical_ms(last.cut_ts) / 1000, 0.0)
        seconds = sum(done.seconds for done in kept)
        notes = last.notes if len(kept) == 1 else ""
        self._report(
            f"silver is complete up to {time_text(last.cut_ts)} (cut {last.cut_ts}), {behind:.1f} s behind:"
            f" {', '.join(work)} in {seconds:.2f} s{notes}"
        )
