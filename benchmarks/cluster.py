"""The same changes applied by a driver on this machine's disk, by one on S3, and by a standalone Spark cluster on S3.

In:  a played workload A, captured once into a lake on disk; VersityGW, and `make jars-s3`.
Out: rows: row changes per CPU second of all that did the work (driver, its JVM, executors, their Python), the database
     and the store left out; for both writers. The results are equal: DuckDB reads them from the files themselves.

The master and two workers with a core each are processes of their own, as in `make topology`.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.context import Context
from benchmarks.cpu import tree_cpu
from benchmarks.figures import Missing, Row, in_turns
from benchmarks.gateway import Gateway, by_kind, dollars, told
from benchmarks.lakes import BenchLake, begun
from benchmarks.peers.process import Peer
from benchmarks.readers import Content, content
from benchmarks.workloads import DATABASE, Workload, create, play_batches
from tests.kit import services
from tests.kit.part import Part
from tidegate.lake.files import LakeFiles
from tidegate.local.jars import S3 as JARS

_UNIT: Final = "row changes per CPU second"
_SECONDS_MAX: Final = 1200.0
_TABLE: Final = "a"
_WRITERS: Final = {"auto": "by position", "merge": "by MERGE"}


@dataclass
class Place:
    """Where a road runs. pids: whose CPU counts, with all below them."""

    name: str
    driver: Peer
    pids: Callable[[], list[int]]
    on_store: bool
    rates: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    store_cpu: list[float] = field(default_factory=list)
    asked: str = ""

    def cpu(self) -> float:
        return sum(map(tree_cpu, self.pids()))


class Roads:
    """The origin, forked for each run."""

    def __init__(self, ctx: Context, workload: Workload, origin: BenchLake, gateway: Gateway) -> None:
        self._ctx, self._workload, self._origin, self._gateway = ctx, workload, origin, gateway
        self._number = 0
        self.contents: dict[str, set[Content]] = {}

    def go(self, place: Place, writer: str) -> float:
        """Row changes per CPU second of one run."""
        self._number += 1
        name = f"run{self._number}"
        folder = self._ctx.folder / name
        fork = self._origin.fork(folder)
        path, options = str(folder / "lake"), dict[str, str]()
        if place.on_store:
            path, options = f"s3://{services.BUCKET}/{name}", self._gateway.options(name)
            _uploaded(folder / "lake", LakeFiles(path, options))
        text = (
            f"pipeline: bench\nlake: {{path: '{path}', conn_id: {'the_lake' if options else 'null'}}}\n"
            f"sources: {{one: {{conn_id: bench_one, flavour: {fork.server.flavour}, start: now}}}}\n"
            f"tables: {{include: ['{DATABASE}.{_TABLE}']}}\n"
            f"apply: {{mode: batch, writer: {writer}, driver_memory: 2g}}\n"
        )
        asked = {"pipeline": text, "lake": path, "options": options, "spark_options": self._spark_options()}
        self._gateway.taken()
        before, store = place.cpu(), tree_cpu(self._gateway.pid)
        answer = place.driver.ask(asked)
        spent = place.cpu() - before
        place.store_cpu.append(tree_cpu(self._gateway.pid) - store)
        kinds = by_kind(self._gateway.taken())
        place.asked = f"{told(kinds)} ({dollars(kinds) * 1e6:.0f} millionths of a dollar)" if kinds else ""
        place.seconds.setdefault(writer, []).append(float(answer["seconds"]))
        silver = Path("silver") / DATABASE / _TABLE
        objects = self._gateway.objects / name if place.on_store else folder / "lake"
        self.contents.setdefault(writer, set()).add(content(objects / silver))
        shutil.rmtree(folder)
        shutil.rmtree(self._gateway.objects / name, ignore_errors=True)
        return self._workload.changes / spent

    def _spark_options(self) -> dict[str, str]:
        return LakeFiles(f"s3://{services.BUCKET}/x", self._gateway.options("spark")).spark_options


def _uploaded(folder: Path, lake: LakeFiles) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            lake.write(str(path.relative_to(folder)), [path.read_bytes()])


def measure(ctx: Context) -> list[Row]:
    """A row for each place and writer. Raises Missing without the store's server or its jars."""
    missing = [jar.file_name for jar in JARS if not (ctx.root / ".tidegate" / "jars" / jar.file_name).exists()]
    if missing:
        raise Missing(f"no {', '.join(missing)}: make jars-s3")
    create(ctx.server, _TABLE)
    origin = begun(ctx.server, ctx.folder / "origin-cluster", _TABLE)
    workload = play_batches(ctx.server, _TABLE, ctx.sizes.rows_a)
    origin.capture()
    with ExitStack() as stack:
        gateway = stack.enter_context(Gateway(ctx.folder / "store"))
        cluster = services.spark(Path(sys.executable).parent, ctx.root, gateway.folder, memory="2g")
        for part in cluster.parts:
            part.start()
            stack.callback(part.stop)
        near = stack.enter_context(_driver("local[2]"))
        far = stack.enter_context(_driver(f"spark://{cluster.host}:{cluster.port}"))
        places = [
            Place("a driver alone, lake on its disk", near, lambda: [near.pid], on_store=False),
            Place("a driver alone, lake on S3", near, lambda: [near.pid], on_store=True),
            Place("a cluster of two workers, lake on S3", far, lambda: _all(far, cluster.parts), on_store=True),
        ]
        roads = Roads(ctx, workload, origin, gateway)
        rows = [row for writer in _WRITERS for row in _measured(ctx, roads, places, writer, workload)]
        tasks = sum(
            log.read_text(errors="replace").count("Finished task") for log in gateway.folder.glob("work-*/*/*/stderr")
        )
    for writer, contents in roads.contents.items():
        assert len(contents) == 1, f"{writer}: {contents}"
        assert next(iter(contents)).rows == workload.rows, contents
    assert tasks, "no executor finished a task"
    rows[-1].note += f"; {tasks} tasks ran in executors"
    return rows


def _driver(master: str) -> Peer:
    return Peer(
        f"apply on {master}", [sys.executable, "-m", "benchmarks.applier", "--master", master], seconds=_SECONDS_MAX
    )


def _all(driver: Peer, parts: list[Part]) -> list[int]:
    return [driver.pid, *(part.pid for part in parts)]


def _measured(ctx: Context, roads: Roads, places: list[Place], writer: str, workload: Workload) -> list[Row]:
    """The first run of each is its warm-up."""
    for place in places:
        roads.go(place, writer)
        place.seconds[writer].clear()
        place.store_cpu.clear()
    ways = [lambda place=place: roads.go(place, writer) for place in places]
    figures = in_turns(ctx.sizes.runs_road, *ways)
    what = f"{workload.changes} row changes, {workload.bytes / 1e6:.0f} MB of binlog, into an empty table; warm"
    rows = []
    for number, (place, rates) in enumerate(zip(places, figures, strict=True)):
        row = Row(f"cluster_{writer}_{number}", f"apply {_WRITERS[writer]}: {place.name}", _UNIT, rates)
        if number:
            row.theirs, row.peer = figures[0], places[0].name
        seconds, store = statistics.median(place.seconds[writer]), statistics.median(place.store_cpu)
        row.note = f"{what}; {seconds:.1f} s of wall time"
        if place.on_store:
            row.note += f"; beside it the store took {store:.1f} CPU-s; {place.asked}"
        rows.append(row)
    return rows
