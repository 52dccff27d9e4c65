"""Apply: changes that lie in bronze go into a silver table of millions of rows, beside programs that merge them.

In:  a warm Spark application; changes D and E, captured once; the seed table, the same for every run.
Out: row changes per CPU second of apply's whole loop (decode, staging, resolve, probe, commit; ledger and cut too),
     everything warm, driver, JVM and Python workers together.

Peers (mergers.py) have less to do: the last row of each key is a Parquet file for them; nothing is decoded or
resolved, and there is no ledger. The last row is our own road with `apply.writer: merge`, which does all that we do.

Before a figure counts, both tables are read by DuckDB: as many rows, and the same order-independent sums over all
columns of all rows. Each plays until two turns agree, then all take turns.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks import mergers, seed
from benchmarks.context import Context
from benchmarks.figures import Missing, Row, in_turns, warmed
from benchmarks.lakes import BenchLake, begun
from benchmarks.mergers import Changes, Merger
from benchmarks.readers import Content, content
from benchmarks.spark import Warm
from benchmarks.workloads import Workload, create, play_changes

_UNIT = "row changes per CPU second"
_OWN = "tidegate's own road with writer: merge"
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
        seed.link(table, origin.silver)
        seed.own(origin.silver, name)
        cases.append(_Case(ctx, warm, origin, workload))
    small, large = cases
    assert table is not None, "there were changes"
    with ExitStack() as closing:
        peers = mergers.all_of(ctx)
        rows = large.rows("apply_1m_into_10m", table, peers, closing)
        rows += small.rows("apply_100k_into_10m", table, peers, closing)
    shutil.rmtree(ctx.folder / "seed")
    return rows


class _Case:
    """One set of changes, and the seed table that they go into."""

    def __init__(self, ctx: Context, warm: Warm, origin: BenchLake, workload: Workload) -> None:
        self.ctx = ctx
        self.warm = warm
        self.origin = origin
        self.workload = workload
        self.parts: dict[str, str] = {}

    def rows(self, key: str, table: Path, peers: list[Merger], closing: ExitStack) -> list[Row]:
        """One for each peer, then one for our own other writer. One run of ours is beside all of them."""
        changes = self._changes(table)
        ours, own = partial(self._once, "positional"), partial(self._once, "merge")
        warmed(ours)
        rows, beside, roads = [], [], [ours]
        for peer in peers:
            row = self._row(f"{key}_vs_{peer.key}", peer.name)
            rows.append(row)
            try:
                peer.start(self.ctx, closing)
                peer.once(self.ctx, changes, check=True)
                road = partial(peer.once, self.ctx, changes)
                row.note += f"; it had {warmed(road)} turns to warm up; {peer.note}"
            except Missing as missing:
                row.why_missing = str(missing)
            else:
                beside.append(row)
                roads.append(road)
        row = self._row(f"{key}_vs_own_merge", _OWN)
        rows.append(row)
        after: list[Content] = []
        self._once("merge", lambda silver: after.append(content(silver)))
        if after == [changes.after]:
            warmed(own)
            beside.append(row)
            roads.append(own)
        else:
            row.why_missing = f"the two writers' tables differ: {changes.after} and {after}"
        figures, *theirs = in_turns(self.ctx.sizes.runs_apply, *roads)
        for row in rows:
            row.ours = figures
        for row, found in zip(beside, theirs, strict=True):
            row.theirs = found
        rows[0].note += f"; our CPU-s by step: {self.parts['positional']}"
        rows[-1].note += f"; its CPU-s by step: {self.parts.get('merge', '')}"
        return rows

    def _row(self, key: str, peer: str) -> Row:
        changes, rows = self.workload.changes, self.ctx.sizes.target_rows
        row = Row(key, f"apply {changes:,} changes into {rows:,} rows", _UNIT, peer=peer)
        row.sizes = {"changes": changes, "target_rows": rows}
        row.note = "60% inserts, 30% updates, 10% deletes, keys all over the table; bronze to committed silver, warm"
        return row

    def _changes(self, table: Path) -> Changes:
        """What our road makes of the table, for the peers to do again."""
        made: list[Changes] = []
        work, file = self.workload, self.ctx.folder / f"changes-{self.workload.name}.parquet"

        def see(silver: Path) -> None:
            made.append(mergers.changes_between(table, silver, file, work.changes, work.rows))

        self._once("positional", see)
        return made[0]

    def _once(self, writer: str, see: Callable[[Path], None] | None = None) -> float:
        """Changes per CPU second of one run on a fresh copy; `see` is shown its silver table."""
        lake = self.origin.fork(self.ctx.folder / "apply-run", _settings(writer))
        lines: list[str] = []
        run = self.ctx.meter.run(lambda: lines.extend(self.warm.apply(lake)))
        self.parts[writer] = self.warm.told()
        assert len(lines) == 1, f"one window was wanted: {lines}"
        assert _TOLD[writer] in lines[0], f"{writer} was wanted: {lines[0]}"
        if see is not None:
            see(lake.silver)
        lake.remove()
        return self.workload.changes / run.cpu_seconds


def _settings(writer: str) -> str:
    return f"mode: batch, writer: {writer}, window_bytes: {_WINDOW_BYTES}"
