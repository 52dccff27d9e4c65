"""The display of the running demo: source, bronze and silver side by side, and the lag between them.

In:  the workload's counters, the lake.
Out: a live table on a terminal, else a line every few seconds; samples of the lag.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tidegate.commit_ts import physical_ms
from tidegate.config import Pipeline
from tidegate.demo.workload import Counters
from tidegate.lake.figures import status
from tidegate.lake.files import LakeFiles
from tidegate.snapshot.progress.automatic import seen, waiting
from tidegate.snapshot.progress.events import TableProgress
from tidegate.snapshot.progress.requests import told
from tidegate.tables import State

_LINE_SECONDS: Final = 5.0


@dataclass(slots=True)
class DemoMoment:
    """The state of source, bronze and silver at one moment. Lags in seconds; None while there is nothing to measure.

    waits: tables whose rows from before capture apply hasn't taken yet.
    """

    seconds: float
    counters: Counters
    source: status.SourceStatus | None
    cut_ts: int
    tables: tuple[status.TableStatus, ...]
    snapshots: list[TableProgress]
    captured_lag: float | None
    applied_lag: float | None
    waits: frozenset[str] = frozenset()

    @property
    def lacking(self) -> list[str]:
        """Tables whose rows from before capture are being read, or will be."""
        # On a busy machine the reader may be silent for so long that its tables show as held; they still get their
        # rows.
        return [
            table.table
            for table in self.tables
            if table.state is State.SNAPSHOT or (table.state is State.HELD and table.table in self.waits)
        ]


@dataclass(slots=True)
class Progress:
    """look() again and again; `with shown():` puts what it sees on the console."""

    console: Console
    pipeline: Pipeline
    lake: LakeFiles
    counters: Counters
    phase: str = "starting"
    lags: list[float] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)
    _line_at: float = 0.0
    _live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """A live table while the block runs, if this is a terminal."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=4) as self._live:
            yield
        self._live = None

    def look(self, *, sample: bool = False) -> DemoMoment:
        """Read the lake and show it. sample: count this lag among those that the demo reports."""
        sources = status.sources(self.lake)
        cut = status.cut_ts(self.lake)
        now = time.time()
        snapshot = DemoMoment(
            seconds=time.monotonic() - self._started,
            counters=self.counters,
            source=sources[0] if sources else None,
            cut_ts=cut,
            tables=seen(self.pipeline, self.lake, status.table_statuses(self.lake, self.pipeline.lacks_snapshots)),
            snapshots=told(self.lake, self.pipeline.pipeline),
            captured_lag=now - physical_ms(sources[0].resolved_ts) / 1000 if sources else None,
            applied_lag=now - physical_ms(cut) / 1000 if cut else None,
            waits=frozenset(waiting(self.pipeline, self.lake)),
        )
        if sample and snapshot.applied_lag is not None:
            self.lags.append(snapshot.applied_lag)
        self._show(snapshot)
        return snapshot

    @property
    def lag_summary(self) -> str:
        """Median and maximum of how far silver was behind the source, while both were busy."""
        if not self.lags:
            return "not seen: nothing was published while the shop was open"
        return f"p50 {median(self.lags):.1f} s, max {max(self.lags):.1f} s"

    def _show(self, snapshot: DemoMoment) -> None:
        if self._live is not None:
            self._live.update(_table(self.phase, snapshot))
        elif time.monotonic() - self._line_at > _LINE_SECONDS:
            self._line_at = time.monotonic()
            self.console.print(f"{snapshot.seconds:5.0f} s  {self.phase}{facts_line(snapshot)}", soft_wrap=True)


def facts_line(moment: DemoMoment) -> str:
    """The figures in one line of a terminal, those that there are; "" before capture has begun."""
    if moment.source is None:
        return ""
    parts = [f"{moment.counters.committed:,} transactions", f"bronze {_seconds(moment.captured_lag)} behind"]
    over = sum(table.state.is_over for table in moment.snapshots)
    if moment.snapshots and over < len(moment.snapshots):
        rows = sum(table.rows for table in moment.snapshots)
        parts.append(f"{rows:,} older rows read, {over} of {len(moment.snapshots)} tables whole")
    held = [table.table for table in moment.tables if table.state is State.HELD]
    if moment.tables:
        lag = f", {_seconds(moment.applied_lag)} behind" if moment.applied_lag is not None else ""
        parts.append(f"silver {len(moment.tables)} tables{lag}" + (f", held: {', '.join(held)}" if held else ""))
    return f": {'; '.join(parts)}"


def _facts(snapshot: DemoMoment) -> dict[str, str]:
    counters, source = snapshot.counters, snapshot.source
    held = [table.table for table in snapshot.tables if table.state is State.HELD]
    bronze = f"{source.segments} segments, {source.bytes / 1e6:.1f} MB" if source else "nothing yet"
    silver = f"{len(snapshot.tables)} tables" + (f", held: {', '.join(held)}" if held else "")
    rows, over = (
        sum(table.rows for table in snapshot.snapshots),
        sum(table.state.is_over for table in snapshot.snapshots),
    )
    return {
        "source": f"{counters.committed} transactions, {counters.rolled_back} rolled back, {counters.ddl} DDL",
        "bronze": f"{bronze}, {_seconds(snapshot.captured_lag)} behind",
        "snapshot": f"{rows:,} rows from before, {over} of {len(snapshot.snapshots)} tables have all of theirs",
        "silver": f"{silver}, {_seconds(snapshot.applied_lag)} behind",
    }


def _table(phase: str, snapshot: DemoMoment) -> Table:
    table = Table(title=f"{phase}  ({snapshot.seconds:.0f} s)", title_justify="left", show_header=False)
    for name, text in _facts(snapshot).items():
        table.add_row(f"[bold]{name}", text)
    table.add_row("[bold]cut", str(snapshot.cut_ts or "-"))
    return table


def _seconds(lag: float | None) -> str:
    return "-" if lag is None else f"{max(lag, 0.0):.1f} s"
