"""One warm Spark application for every road that needs one: tidegate's own settings on two cores.

In:  the project's root.
Out: Warm: the session, what its start cost, and apply of a lake in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from benchmarks.context import Context
from benchmarks.lakes import BenchLake
from spark_jobs.application import Application
from spark_jobs.apply import run as run_apply
from spark_jobs.session import application_session
from tidegate import config, spark_settings
from tidegate.demo import jars
from tidegate.lake.bronze_index import BronzeIndex

_MASTER = "local[2]"
_DRIVER_MEMORY = "4g"


@dataclass(slots=True)
class Warm:
    """start_cpu_seconds: from nothing to a session."""

    spark: SparkSession
    start_cpu_seconds: float

    def apply(self, lake: BenchLake) -> list[str]:
        """Apply all that bronze has, as a fresh application in this session; the windows' report lines."""
        lines: list[str] = []
        app = Application(self.spark, lake.pipeline, lake.files, BronzeIndex(lake.files))
        run_apply(app, report=lines.append)
        held = [line for line in lines if "held:" in line]
        assert lines, "nothing was applied"
        assert not held, held[0]
        return lines


@contextmanager
def warm(ctx: Context) -> Iterator[Warm]:
    """Start Spark; it ends with the context."""
    jars.ensure(ctx.root)
    os.environ.update(spark_settings.driver_environment(ctx.root))
    pipeline = config.parse(
        "pipeline: bench\nlake: {path: unused}\nsources: {s: {conn_id: none, flavour: mysql}}\n"
        f"tables: {{include: ['*.*']}}\napply: {{driver_memory: {_DRIVER_MEMORY}}}\n",
        where="bench.yaml",
    )
    conf = {"spark.master": _MASTER, "spark.local.dir": str(ctx.folder / "spark")}
    started: list[SparkSession] = []
    run = ctx.meter.run(
        lambda: started.append(
            application_session("tidegate bench", conf | spark_settings.submit_conf(pipeline, ctx.root))
        )
    )
    try:
        yield Warm(started[0], run.cpu_seconds)
    finally:
        started[0].stop()
