"""Where the CPU goes between bronze and decoded rows in Spark, and what it would cost to send bytes through the JVM.

In:  --rows of workload A (wide), captured from the demo's MariaDB into a bronze of its own; Spark on two cores.
Out: CPU-seconds per million changes of three roads in one run, whole process tree (driver, JVM, Python workers):
     staged     places of segments travel, workers read bronze, decode and write Parquet themselves: what apply does
     rows       the same, but decoded rows go back into the JVM
     payload    the JVM reads bronze and hands the payloads to Python; decoded rows go back into the JVM
     and for each the share of reading, decoding, netting and writing; the rest is the JVM and what passes through it.

`python benchmarks/bench_spark.py [--rows N]`
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "include")]

import pyarrow as pa  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402

from benchmarks.cpu import tree_cpu  # noqa: E402
from benchmarks.workloads import create, play_batches  # noqa: E402
from spark_jobs.apply_steps.plan_window import next_window, plan_window  # noqa: E402
from spark_jobs.apply_steps.replay_schema_history import replay_schema_history  # noqa: E402
from spark_jobs.session.background import BackgroundSession  # noqa: E402
from spark_jobs.session.spark import application_session  # noqa: E402
from spark_jobs.window.application import Application  # noqa: E402
from spark_jobs.window.plan import NOTHING_PLANNED  # noqa: E402
from spark_jobs.window.shape.decode_plan import plan_decode  # noqa: E402
from spark_jobs.window.window import Window  # noqa: E402
from tests.kit.road import Road  # noqa: E402
from tidegate import spark_settings, tables  # noqa: E402
from tidegate.errors import StreamCorrupt  # noqa: E402
from tidegate.lake.bronze.index import BronzeIndex, segments_or_damage  # noqa: E402
from tidegate.local import jars, mariadb  # noqa: E402
from tidegate.merge.net_change import net_last_per_key  # noqa: E402
from tidegate.segment_kinds import changes_of  # noqa: E402
from tidegate.segments.result import NOTHING_KNOWN  # noqa: E402
from tidegate.segments.segment import Segment  # noqa: E402
from tidegate.segments.window import SegmentRef  # noqa: E402

RUNS = 3
Parts = dict[str, float]


class Clock:
    """CPU-seconds of this process by part of the work."""

    def __init__(self) -> None:
        self.parts: Parts = {}

    def timed(self, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed_call(*arguments: Any, **named: Any) -> Any:
            started = time.process_time()
            try:
                return call(*arguments, **named)
            finally:
                self.parts[part] = self.parts.get(part, 0.0) + time.process_time() - started

        return timed_call

    def drawn(self, part: str, items: Iterator[Any]) -> Iterator[Any]:
        draw = self.timed(part, lambda: next(items, None))
        while (item := draw()) is not None:
            yield item


def staged(plan: bytes, bulk: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A worker's whole work on its segments, timed; bulk: rows are given back instead of written."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle

        from spark_jobs.apply_steps import decode_changes as work
        from spark_jobs.positional import changes_stage as staging

        clock = Clock()
        mine = [pickle.loads(cell) for batch in batches for cell in batch.column(0).to_pylist()]
        given = pickle.loads(plan)
        if bulk:
            for segment in whole(segments_or_damage(given.lake, mine)):
                yield from decoded(segment, given)
            return
        timed: dict[str, Any] = {
            "segments_or_damage": lambda *a: clock.drawn("read bronze", segments_or_damage(*a)),
            "changes_of": lambda *a: clock.drawn("decode", changes_of(*a)),
        }
        with mock.patch.multiple(work, **timed):
            write = clock.timed("write Parquet", staging.ChangesStage._write)
            net = clock.timed("net per key", net_last_per_key)
            with (
                mock.patch.object(staging, "net_last_per_key", net),
                mock.patch.object(staging.ChangesStage, "_write", write),
            ):
                for _ in work.decode_refs(mine, given):
                    pass
        yield pa.RecordBatch.from_pydict({"part": list(clock.parts), "seconds": list(clock.parts.values())})

    return run


def whole(found: Iterable[tuple[SegmentRef, Segment | StreamCorrupt]]) -> Iterator[Segment]:
    for _, segment in found:
        assert isinstance(segment, Segment), segment
        yield segment


def decoded(segment: Segment, plan: Any) -> Iterator[pa.RecordBatch]:
    for piece in changes_of(segment, plan.versions["one"], plan.windows["one"], NOTHING_KNOWN):
        for change in piece.changes:
            yield change.batch


def from_payload(plan: bytes) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle

        given = pickle.loads(plan)
        for batch in batches:
            for row in batch.to_pylist():
                if row["kind"] == "binlog":
                    yield from decoded(Segment.from_row(row), given)

    return run


def measure(spark: SparkSession, app: Application, window: Window) -> None:
    import pickle

    plan = plan_decode(app, window, (), dict.fromkeys(window.tables, NOTHING_PLANNED))
    packed = pickle.dumps(plan)
    cells = [(pickle.dumps(ref),) for ref in window.refs]
    tasks = 3 * spark.sparkContext.defaultParallelism
    segments = list(whole(segments_or_damage(app.lake, window.refs)))
    rows = sum(int(batch.num_rows) for segment in segments for batch in decoded(segment, plan))
    name, versions = next(iter(plan.versions["one"].items()))
    schema = next(iter(decoded(segments[-1], plan))).schema
    print(f"{'.'.join(name)}: {rows} changes in {len(window.refs)} segments, {len(versions)} version")

    def places() -> DataFrame:
        return spark.createDataFrame(cells, "ref binary").repartition(tasks)

    def to_jvm(frame: DataFrame, work: Any) -> Parts:
        from pyspark.sql.pandas.types import from_arrow_schema

        frame.mapInArrow(work, from_arrow_schema(schema)).write.format("noop").mode("overwrite").save()
        return {}

    def road_staged() -> Parts:
        app.lake.delete_folder("staging")
        parts: Parts = {}
        for row in places().mapInArrow(staged(packed, bulk=False), "part string, seconds double").collect():
            parts[row.part] = parts.get(row.part, 0.0) + row.seconds
        return parts

    def road_payload() -> Parts:
        bronze = spark.read.parquet(app.lake.uri(tables.SEGMENTS.path)).where("kind = 'binlog'")
        return to_jvm(bronze, from_payload(packed))

    roads: dict[str, Callable[[], Parts]] = {
        "staged": road_staged,
        "rows": lambda: to_jvm(places(), staged(packed, bulk=True)),
        "payload": road_payload,
    }
    best: dict[str, tuple[float, Parts]] = {}
    for _ in range(RUNS):
        for road, go in roads.items():
            started = tree_cpu(os.getpid())
            parts = go()
            spent = tree_cpu(os.getpid()) - started
            if road not in best or spent < best[road][0]:
                best[road] = (spent, parts)
    base = best["staged"][0]
    for road, (spent, parts) in best.items():
        shares = [f"{part} {seconds / spent:.0%}" for part, seconds in parts.items()]
        shares += [f"JVM and transfer {1 - sum(parts.values()) / spent:.0%}"] if parts else []
        print(f"{road}: {spent / rows * 1e6:.2f} CPU-s per million changes ({spent / base:.1f}x) {', '.join(shares)}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=200_000, help="inserted rows")
    count = options.parse_args().rows
    jars.ensure(ROOT)
    os.environ.update(spark_settings.driver_environment(ROOT))
    base = mariadb.install(ROOT)
    with tempfile.TemporaryDirectory() as folder, mariadb.MariaDB(Path(folder) / "mariadb", base) as server:
        server.query("CREATE DATABASE bench CHARACTER SET utf8mb4")
        road = Road(server, Path(folder), include="bench.*")
        create(server, "a")
        road.capture()
        play_batches(server, "a", count)
        road.capture(seconds=600)
        conf = {"spark.master": "local[2]"} | spark_settings.submit_conf(road.pipeline, ROOT)
        conf["spark.sql.parquet.columnarReaderBatchSize"] = "16"
        conf["spark.sql.execution.arrow.maxRecordsPerBatch"] = "16"
        spark = application_session("tidegate benchmark", conf)
        app = Application(BackgroundSession(lambda: spark), road.pipeline, road.lake, BronzeIndex(road.lake))
        app.load()
        app.index.refresh(0)
        window = next_window(app)
        assert window is not None
        replayed = replay_schema_history(app, plan_window(app, window), ())
        measure(spark, app, replayed.window)
        spark.stop()


if __name__ == "__main__":
    main()
