"""The whole road: capture -> bronze -> Spark -> silver, beside Debezium's embedded engine, which delivers to nobody.

In:  workload A, its origin (a lake whose capture began before it was played), a warm Spark application.
Out: rows: row changes per CPU second of everything (driver, JVM, Python workers, capture), warm; the same with the
     application's start in it; the parts.

Debezium's start is measured apart and taken off, as ours is: what is compared is work on rows.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.context import Context
from benchmarks.figures import Missing, Row, in_turns, warmed
from benchmarks.lakes import BenchLake
from benchmarks.peers import maven
from benchmarks.peers.process import Peer
from benchmarks.readers import count
from benchmarks.spark import Warm
from benchmarks.workloads import DATABASE, Workload

_UNIT = "row changes per CPU second"


class Ours:
    """capture_cpu, apply_cpu: seconds per run."""

    def __init__(self, ctx: Context, workload: Workload, origin: BenchLake, warm: Warm) -> None:
        self.ctx = ctx
        self.workload = workload
        self.origin = origin
        self.warm = warm
        self.capture_cpu: list[float] = []
        self.apply_cpu: list[float] = []

    def once(self) -> float:
        """Rows per CPU second of one whole road."""
        lake = self.origin.fork(self.ctx.folder / "road")
        self.capture_cpu.append(self.ctx.meter.run(lake.capture).cpu_seconds)
        self.apply_cpu.append(self.ctx.meter.run(lambda: self.warm.apply(lake)).cpu_seconds)
        found = count(lake.silver)
        assert found == self.workload.rows, f"silver has {found} rows, the source {self.workload.rows}"
        lake.remove()
        return self.workload.changes / (self.capture_cpu[-1] + self.apply_cpu[-1])


def measure(ctx: Context, workload: Workload, origin: BenchLake, warm: Warm) -> list[Row]:
    """Both keys of the report, and the parts."""
    ours = Ours(ctx, workload, origin, warm)
    assert warm.spark is not None  # its start is not the first road's
    ours.once()
    cold = ours.capture_cpu.pop() + ours.apply_cpu.pop() + warm.start_cpu_seconds
    warmed(ours.once)
    ours.capture_cpu.clear()
    ours.apply_cpu.clear()
    what = f"{workload.changes} row changes, {workload.bytes / 1e6:.0f} MB of binlog"
    alone = Row("road_A_rows_per_cpu_s", "whole road, workload A: server to silver", _UNIT, note=f"{what}; warm")
    versus = Row("road_A_vs_debezium", "whole road against Debezium's delivery", _UNIT, peer=maven.DEBEZIUM[0])
    versus.note = f"{what}; Debezium has no sink; both without their start"
    try:
        alone.ours, versus.theirs, told = _beside_debezium(ctx, workload, ours)
        versus.note += f"; {told}"
    except Missing as missing:
        versus.why_missing = str(missing)
        (alone.ours,) = in_turns(ctx.sizes.runs_road, ours.once)
    versus.ours = alone.ours
    first = Row(
        "road_A_with_start",
        "whole road, first window of a new application",
        _UNIT,
        [workload.changes / cold],
        note=f"Spark's start ({warm.start_cpu_seconds:.1f} CPU-s) and everything's first use included",
    )
    shares = Row(
        "road_A_apply_share",
        "share of apply (Spark) in the whole road",
        "of its CPU seconds",
        [a / (a + c) for a, c in zip(ours.apply_cpu, ours.capture_cpu, strict=True)],
        note=f"capture {statistics.median(ours.capture_cpu):.2f}, apply {statistics.median(ours.apply_cpu):.2f} CPU-s"
        f"; apply's steps in the last run: {warm.told()}",
    )
    return [alone, versus, first, shares]


def _beside_debezium(ctx: Context, workload: Workload, ours: Ours) -> tuple[list[float], list[float], str]:
    """Ours and theirs in turns, both warm; Debezium under that collector which is better for it, and what it was chosen
    from. Raises Missing.
    """
    named = {"gtid": workload.gtid, "table": f"{DATABASE}.{workload.table}", "folder": str(ctx.folder)}
    asked = ctx.log_of(workload) | named
    jars = maven.jars(maven.DEBEZIUM, ctx.cache)
    with ExitStack() as closing:

        def road(collector: str) -> Callable[[], float]:
            peer = closing.enter_context(Peer(maven.DEBEZIUM[0], maven.program("Debezium.java", jars, collector)))
            ctx.meter.without.add(peer.pid)

            def spent(rows: int) -> float:
                return ctx.meter.run(lambda: peer.go({**asked, "rows": rows}, rows), root=peer.pid).cpu_seconds

            warmed(lambda: workload.changes / spent(workload.changes))
            start = statistics.median([spent(1), spent(1), spent(1)])
            return lambda: workload.changes / (spent(workload.changes) - start)

        figures, *theirs = in_turns(ctx.sizes.runs_road, ours.once, *(road(name) for name in maven.COLLECTORS))
    medians = dict(zip(maven.COLLECTORS, map(statistics.median, theirs), strict=True))
    told = ", ".join(f"{name.removeprefix('-XX:+Use')} {rate / 1000:.1f} k" for name, rate in medians.items())
    return figures, max(theirs, key=statistics.median), f"the better of its collectors: {told}"
