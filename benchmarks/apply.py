"""Apply: changes that lie in bronze go into a silver table of millions of rows, by position and by Delta's MERGE.

In:  a warm Spark application; changes D and E, captured once; the seed table, the same for every run.
Out: row changes per CPU second of apply's whole loop (decode, staging, resolve, probe, commit; ledger and cut too),
     everything warm, driver, JVM and Python workers together.

Before a figure counts, both tables are read by DuckDB: as many rows, and the same order-independent sums over all
columns of all rows.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from benchmarks import seed
from benchmarks.context import Context
from benchmarks.figures import Missing, Row, in_turns
from benchmarks.lakes import BenchLake, begun
from benchmarks.readers import Content, content
from benchmarks.spark import Warm
from benchmarks.workloads import create, play_changes
from tidegate import config

_UNIT = "row changes per CPU second"
_PEER = "Delta MERGE (writer: merge), deletion vectors on"
_TOLD = {"positional": "1 by position", "merge": "by MERGE"}  # in the window's line
_WINDOW_BYTES = 8 << 30  # all changes in one window, whatever their number


def measure(ctx: Context, warm: Warm) -> list[Row]:
    """The large and the small set of changes."""
    sizes = ctx.sizes
    cases = []
    table: Path | None = None
    for name, changes in (("e", sizes.changes_small), ("d", sizes.changes_large)):
        create(ctx.server, name)
        origin = begun(ctx.server, ctx.folder / f"apply-{name}", name)
        workload = play_changes(ctx.server, name, changes, sizes.target_rows)
        origin.capture()
        table = table or seed.make(warm.spark, ctx.server, name, sizes.target_rows, ctx.folder / "seed")
        _link(table, origin.silver)
        cases.append(_Case(ctx, warm, origin, workload.changes))
    small, large = cases
    found = [large.row("apply_1m_into_10m_vs_merge"), small.row("apply_100k_into_10m_vs_merge")]
    shutil.rmtree(ctx.folder / "seed")
    return found


class _Case:
    """One set of changes, and the seed table that they go into."""

    def __init__(self, ctx: Context, warm: Warm, origin: BenchLake, changes: int) -> None:
        self.ctx = ctx
        self.warm = warm
        self.origin = origin
        self.changes = changes
        self.contents: dict[str, Content] = {}
        self.parts: dict[str, str] = {}

    def once(self, writer: str) -> float:
        """Changes per CPU second of one run on a fresh copy. The first run of each writer is read back."""
        lake = self.origin.fork(self.ctx.folder / "apply-run", _settings(writer))
        lines: list[str] = []
        run = self.ctx.meter.run(lambda: lines.extend(self.warm.apply(lake)))
        self.parts[writer] = self.warm.told()
        assert len(lines) == 1, f"one window was wanted: {lines}"
        assert _TOLD[writer] in lines[0], f"{writer} was wanted: {lines[0]}"
        if writer not in self.contents:
            self.contents[writer] = content(lake.silver)
        lake.remove()
        return self.changes / run.cpu_seconds

    def row(self, key: str) -> Row:
        rows = self.ctx.sizes.target_rows
        row = Row(key, f"apply {self.changes:,} changes into {rows:,} rows", _UNIT, peer=_PEER)
        row.sizes = {"changes": self.changes, "target_rows": rows}
        row.note = "60% inserts, 30% updates, 10% deletes, keys all over the table; bronze to committed silver, warm"
        self.once("positional")
        self.once("merge")
        ours, theirs = self.contents["positional"], self.contents["merge"]
        if ours != theirs:
            row.why_missing = f"the two writers' tables differ: {ours} and {theirs}"
            return row
        roads = (lambda: self.once("positional"), lambda: self.once("merge"))
        row.ours, row.theirs = in_turns(self.ctx.sizes.runs_apply, *roads)
        row.note += f"; CPU-s by step: {self.parts['positional']}; with MERGE: {self.parts['merge']}"
        return row


def _settings(writer: str) -> str:
    if "writer" not in config.Apply.model_fields:
        raise Missing("this version has no choice of writers")
    return f"mode: batch, writer: {writer}, window_bytes: {_WINDOW_BYTES}"


def _link(table: Path, target: Path) -> None:
    """The seed table as a lake's silver: data files linked, the log copied."""
    shutil.copytree(table / "_delta_log", target / "_delta_log")
    for path in table.rglob("*.parquet"):
        if "_delta_log" not in path.parts:
            (target / path.relative_to(table)).parent.mkdir(parents=True, exist_ok=True)
            os.link(path, target / path.relative_to(table))
