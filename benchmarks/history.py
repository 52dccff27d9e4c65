"""What history costs: the same changes go into the same table with tables.history, and without it.

In:  a warm Spark application; changes E, captured once, into a seed table; a quiet source of four tables.
Out: row changes per CPU second of apply's whole loop, and CPU seconds of a window of a hundred changes; both roads take
     turns, and the ratio of a row is history's cost: 1.3 means that history costs three tenths more. Beside it, a large
     window of rows that change twenty times each, with the last state of each row alone, and with all.

Before a figure counts, the current rows of both tables are read by DuckDB: as many rows, and equal sums.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from benchmarks import seed
from benchmarks.context import Context
from benchmarks.cpu import tree_cpu
from benchmarks.figures import Row, in_turns, warmed
from benchmarks.lakes import BenchLake, begun
from benchmarks.micro_batch import Workload as Quiet
from benchmarks.micro_batch import change
from benchmarks.readers import Content, content
from benchmarks.spark import Warm, timed_steps
from benchmarks.workloads import DATABASE, create, play_changes, play_hot
from spark_jobs import apply as apply_job
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tidegate import tables
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.merge.past import HISTORY, NO_PAST

_TABLE: Final = "h"
_HOT: Final = "hot"
_CHANGES_OF_A_ROW: Final = 20
_APPLY: Final = f"mode: batch, writer: positional, window_bytes: {8 << 30}"
_HISTORY: Final = f"history: ['{DATABASE}.*']"
_QUIET_TABLES: Final = ("quiet_0", "quiet_1", "quiet_2", "quiet_3")
_QUIET_CHANGES: Final = 100
_QUIET_ROWS: Final = 2_000
_WARM_WINDOWS: Final = 10


def measure(ctx: Context, warm: Warm) -> list[Row]:
    """Large windows, and small ones."""
    return [_large(ctx, warm), _by_window(ctx, warm), *_small(ctx, warm)]


def _by_window(ctx: Context, warm: Warm) -> Row:
    """A large window of few rows that change again and again: their last states alone, beside all their versions."""
    sizes = ctx.sizes
    create(ctx.server, _HOT)
    origin = begun(ctx.server, ctx.folder / "hot-origin", _HOT)
    workload = play_hot(ctx.server, _HOT, sizes.history_changes, sizes.history_changes // _CHANGES_OF_A_ROW)
    origin.capture()
    more = {"last": f"{_HISTORY}, history_by_window: ['{DATABASE}.*']", "every": _HISTORY}
    contents, told = dict[str, Content](), dict[str, str]()

    def once(name: str) -> float:
        lake = origin.fork(ctx.folder / "hot-run", _APPLY, tables=more[name])
        run = ctx.meter.run(lambda: warm.apply(lake))
        if name not in contents:
            contents[name] = content(lake.silver, tables.IS_CURRENT)
            size = sum(file.stat().st_size for file in lake.silver.rglob("*.parquet"))
            told[name] = f"{content(lake.silver, 'true').rows:,} versions in {size:,} bytes, {warm.told()}"
        lake.remove()
        return run.cpu_seconds

    for name in more:
        warmed(partial(once, name))
    assert contents["last"] == contents["every"], f"the current rows differ: {contents}"
    title = f"{workload.changes:,} changes of {workload.rows:,} rows, one version per window"
    row = Row("history_by_window", title, "CPU seconds")
    row.peer = "the same history with every version"
    row.ours, row.theirs = in_turns(sizes.runs_history, partial(once, "last"), partial(once, "every"))
    row.note = f"smaller is better; by window: {told['last']}; every version: {told['every']}"
    return row


def _large(ctx: Context, warm: Warm) -> Row:
    sizes = ctx.sizes
    create(ctx.server, _TABLE)
    origin = begun(ctx.server, ctx.folder / "history-origin", _TABLE)
    workload = play_changes(ctx.server, _TABLE, sizes.history_changes, sizes.history_rows)
    origin.capture()
    lakes = {}
    for name, past, more in (("plain", NO_PAST, ""), ("history", HISTORY, _HISTORY)):
        lakes[name] = origin.fork(ctx.folder / f"history-{name}", _APPLY, tables=more)
        table = seed.make(warm.spark, ctx.server, _TABLE, sizes.history_rows, ctx.folder / f"seed-{name}", past)
        seed.link(table, lakes[name].silver)
        seed.own(lakes[name].silver, _TABLE)
    parts, contents = dict[str, str](), dict[str, Content]()

    def once(name: str) -> float:
        lake = lakes[name].fork(ctx.folder / "history-run", _APPLY, tables=_HISTORY if name == "history" else "")
        run = ctx.meter.run(lambda: warm.apply(lake))
        parts[name] = warm.told()
        if name not in contents:
            contents[name] = content(lake.silver, tables.IS_CURRENT if name == "history" else "true")
        lake.remove()
        return run.cpu_seconds

    for name in lakes:
        warmed(partial(once, name))
    assert contents["plain"] == contents["history"], f"the current rows differ: {contents}"
    rows, changes = sizes.history_rows, workload.changes
    row = Row("history_large", f"{changes:,} changes into {rows:,} rows with history", "CPU seconds")
    row.peer = "the same table without history"
    row.ours, row.theirs = in_turns(sizes.runs_history, partial(once, "history"), partial(once, "plain"))
    row.note = f"smaller is better; by step: {parts['history']}; without history: {parts['plain']}"
    for name, lake in lakes.items():
        lake.remove()
        shutil.rmtree(ctx.folder / f"seed-{name}")
    return row


@dataclass(slots=True)
class _Road:
    """One lake of the quiet source, and its application. spent: CPU seconds per window; steps: by step of apply."""

    lake: BenchLake
    app: Application
    spent: list[float] = field(default_factory=list)
    steps: dict[str, float] = field(default_factory=dict)

    def window(self) -> None:
        self.lake.capture()
        lines: list[str] = []
        before, below = time.process_time(), _children()
        with timed_steps(self.steps, time.process_time):
            apply_job.run(self.app, report=lines.append)
        self.spent.append(time.process_time() - before + _children() - below)
        assert not any("is held" in line for line in lines), lines

    def told(self) -> str:
        """The dearest steps, milliseconds a window."""
        dearest = sorted(self.steps.items(), key=lambda item: -item[1])
        return ", ".join(f"{name} {seconds / len(self.spent) * 1000:.1f} ms" for name, seconds in dearest[:6])


def _children() -> float:
    """CPU seconds of the processes below this one."""
    return tree_cpu(os.getpid()) - sum(os.times()[:2])


def _small(ctx: Context, warm: Warm) -> list[Row]:
    """Windows of a hundred changes over four tables, each captured by two lakes, and applied by turns."""
    Quiet.create(ctx.server, DATABASE, list(_QUIET_TABLES))
    roads = {}
    for name, more in (("history", _HISTORY), ("plain", "")):
        lake = BenchLake(ctx.server, ctx.folder / f"quiet-{name}", "quiet_.*", "mode: batch", tables=more)
        lake.begin()
        app = Application(BackgroundSession(lambda: warm.spark), lake.pipeline, lake.files, BronzeIndex(lake.files))
        roads[name] = _Road(lake, app)
    first = 1
    for number in range(-_WARM_WINDOWS, ctx.sizes.history_windows):
        count = _QUIET_ROWS if number == -_WARM_WINDOWS else _QUIET_CHANGES // len(_QUIET_TABLES)
        first = _change(ctx, first, count)
        turns = list(roads.values())
        for road in turns if number % 2 else reversed(turns):
            road.window()
        if number == -1:
            for road in turns:
                road.spent.clear()
                road.steps.clear()
    contents = {name: [_current(road.lake, name, table) for table in _QUIET_TABLES] for name, road in roads.items()}
    assert contents["plain"] == contents["history"], f"the current rows differ: {contents}"
    row = Row(
        "history_small",
        f"a window of {_QUIET_CHANGES} changes over {len(_QUIET_TABLES)} tables with history",
        "CPU seconds",
    )
    row.peer = "the same tables without history"
    # A window with a compaction costs more: sums over a few windows are what a pipeline pays.
    row.ours, row.theirs = (_means(roads[name].spent) for name in ("history", "plain"))
    row.note = f"smaller is better; by step: {roads['history'].told()}; without history: {roads['plain'].told()}"
    return [row]


def _means(spent: list[float], runs: int = 5) -> list[float]:
    step = max(1, len(spent) // runs)
    return [sum(spent[at : at + step]) / step for at in range(0, step * runs, step)]


def _change(ctx: Context, first: int, count: int) -> int:
    with ctx.server.connect(DATABASE, autocommit=False) as connection, connection.cursor() as cursor:
        for table in _QUIET_TABLES:
            after = change(cursor, table, first, count)
        connection.commit()
    return after


def _current(lake: BenchLake, name: str, table: str) -> Content:
    return content(lake.silver.parent / table, tables.IS_CURRENT if name == "history" else "true")
