"""The sections in their order: a workload is played, and every road that takes it runs before the next is played.

In:  sizes, which sections are wanted.
Out: Report. A section that fails is named, and the others go on.

One MariaDB serves all but snapshot, latency, quiet, large, flink, commit, columns and cluster, which start their own or
need none. A workload is played just before it is used, so that capture can run to the end of the server's binlog and
has that workload alone; what every road of it reads is the same file.
"""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import (
    apply,
    capture,
    cluster,
    columns,
    commit,
    decode,
    flink,
    history,
    lakes,
    large_table,
    latency,
    new_tables,
    pairing,
    quiet,
    road,
    snapshot,
    snapshot_road,
    sources,
    spark,
    store_requests,
    tidb,
    tidb_pump,
    upserted,
)
from benchmarks.context import Context
from benchmarks.cpu import Meter
from benchmarks.figures import Missing, Row
from benchmarks.report import Report
from benchmarks.sizes import Sizes
from benchmarks.workloads import Workload, create, play_batches, play_single, prepare
from tidegate.local import mariadb

ALL = (
    *("capture", "decode", "road", "apply", "history", "sources", "snapshot"),
    *("latency", "quiet", "large", "flink", "commit", "columns", "tidb", "cluster"),
)
_OWN_SERVER = {"snapshot", "latency", "quiet", "large", "readers", "flink", "commit", "columns", "cluster"}


class Progress:
    """Lines with the time since the start, for who waits; and what each section found or failed by."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.started = time.monotonic()

    def say(self, line: str) -> None:
        print(f"[{time.monotonic() - self.started:6.1f} s] {line}", flush=True)

    def section(self, name: str, work: Callable[[], list[Row]]) -> None:
        """Run one section; its failure is the report's, not the program's."""
        self.say(f"{name} ...")
        try:
            rows = work()
        except Missing as missing:
            self.report.left_out[name] = str(missing)
            self.say(f"{name} left out: {missing}")
            return
        except Exception as error:  # noqa: BLE001  (whatever it was: it is reported by name, and the exit code is 1)
            traceback.print_exc()
            line = (str(error).strip().splitlines() or [""])[0][:300]
            self.report.failures[name] = f"{type(error).__name__}: {line}"
            self.say(f"{name} FAILED: {self.report.failures[name]}")
            return
        self.report.rows += rows
        for row in rows:
            told = row.as_json()
            beside = f", {told['theirs']} of {row.peer}: {told['ratio']}x" if row.theirs else ""
            left_out = f" (left out: {row.why_missing})" if row.why_missing else ""
            self.say(f"  {row.title}: {told['ours']} {row.unit}{beside}{left_out}")


@contextmanager
def server(root: Path, folder: Path) -> Iterator[mariadb.MariaDB]:
    """The demo's MariaDB on data of its own, which nobody needs afterwards: it is not asked to write it all out."""
    running = mariadb.MariaDB(folder / "mariadb", mariadb.install(root)).start()
    try:
        prepare(running)
        yield running
    finally:
        running.kill()
        running.stop()


def run(root: Path, cache: Path, folder: Path, sizes: Sizes, wanted: tuple[str, ...]) -> Report:
    """All wanted sections."""
    from tidegate.binlog.warm import warm as warm_kernels

    warm_kernels()
    report = Report(sizes)
    progress = Progress(report)
    meter = Meter()
    progress.say(f"{sizes.name} sizes; sections: {' '.join(wanted)}")
    if set(wanted) - _OWN_SERVER:
        with server(root, folder) as running:
            meter.without.add(running.pid)
            ctx = Context(sizes, folder, cache, root, running, meter)
            with spark.Warm(ctx) as warm:
                if {"capture", "decode", "road", "tidb"} & set(wanted):
                    _logs(ctx, progress, wanted, warm)
                if "apply" in wanted:
                    progress.section("apply", lambda: apply.measure(ctx, warm))
                if "history" in wanted:
                    progress.section("history", lambda: history.measure(ctx, warm))
                if "sources" in wanted:
                    progress.section("sources", lambda: sources.measure(ctx, warm))
    if "snapshot" in wanted:
        with server(root, folder / "snapshot") as running:
            meter.without.add(running.pid)
            shot = Context(sizes, folder, cache, root, running, meter)
            progress.section("snapshot", lambda: snapshot.measure(shot))
            with spark.Warm(shot) as warm:
                progress.section("snapshot, whole road", lambda: snapshot_road.measure(shot, warm))
    if "latency" in wanted:
        progress.section("latency", lambda: latency.measure(sizes))
    if "quiet" in wanted:
        progress.section("quiet", lambda: quiet.measure(sizes))
    if "large" in wanted:
        progress.section("large", lambda: large_table.measure(sizes))
    if "readers" in wanted:
        progress.section("readers", lambda: upserted.measure(sizes, meter))
    if "flink" in wanted:
        progress.section("flink", lambda: flink.measure(root, cache, sizes))
    if "commit" in wanted:
        progress.section("commit", lambda: commit.measure(sizes, meter))
        progress.section("commit, new tables", lambda: new_tables.measure(sizes))
    if "columns" in wanted:
        progress.section("columns", lambda: columns.measure(folder / "columns", meter, sizes.columns_rows))
    if "tidb" in wanted:
        progress.section("a Pump", lambda: tidb_pump.measure(folder / "pump", sizes))
        progress.section("TiDB's pairing", lambda: pairing.measure(folder / "pairing", sizes))
    if "cluster" in wanted:
        progress.section(
            "requests to a store", lambda: store_requests.measure(folder / "requests", sizes.quiet_seconds)
        )
        with server(root, folder / "cluster") as running:
            meter.without.add(running.pid)
            spread = Context(sizes, folder / "cluster", cache, root, running, meter)
            progress.section("cluster", lambda: cluster.measure(spread))
    report.noise = meter.noise()
    return report


def _logs(ctx: Context, progress: Progress, wanted: tuple[str, ...], warm: spark.Warm) -> None:
    """Workloads A, B and C with the roads that take them."""
    plays: dict[str, Callable[[], Workload]] = {
        "a": lambda: play_batches(ctx.server, "a", ctx.sizes.rows_a),
        "c": lambda: play_single(ctx.server, ctx.sizes.changes_c),
        "b": lambda: play_batches(ctx.server, "b", ctx.sizes.rows_b),
    }
    for name, play in plays.items():
        if not {"decode", "tidb", *(() if name == "b" else ("capture", "road"))} & set(wanted):
            continue
        played: list[tuple[Workload, lakes.BenchLake]] = []

        def begin(name: str = name, play: Callable[[], Workload] = play, played: list[Any] = played) -> list[Row]:
            create(ctx.server, name)
            origin = lakes.begun(ctx.server, ctx.folder / f"origin-{name}", name)
            played.append((play(), origin))
            return []

        progress.section(f"workload {name.upper()}", begin)
        if not played:
            continue
        workload, origin = played[0]
        progress.say(f"  {workload.changes} row changes, {workload.bytes / 1e6:.0f} MB of binlog")
        if "capture" in wanted and name != "b":
            progress.section(f"capture {name.upper()}", partial(capture.measure, ctx, workload, origin))
        if "decode" in wanted:
            progress.section(f"decode {name.upper()}", partial(decode.measure, ctx, workload))
        if "tidb" in wanted:
            progress.section(f"TiDB's binlog, {name.upper()}", partial(tidb.measure, ctx, workload))
        if "road" in wanted and name == "a":
            progress.section("road A", partial(road.measure, ctx, workload, origin, warm))
        shutil.rmtree(origin.folder, ignore_errors=True)
