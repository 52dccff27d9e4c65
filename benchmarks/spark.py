"""One warm Spark application for every road that needs one: tidegate's own settings on two cores.

In:  the project's root.
Out: Warm: the session, what its start cost, and apply of a lake in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from pyspark.sql import SparkSession

from benchmarks.context import Context
from benchmarks.cpu import tree_cpu
from benchmarks.lakes import BenchLake
from spark_jobs import apply as apply_job
from spark_jobs.session.background import BackgroundSession
from spark_jobs.session.spark import application_session
from spark_jobs.window.application import Application
from tidegate import config, spark_settings
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.local import jars
from tidegate.tables import State

Step = Callable[..., object]

_MASTER = "local[2]"
_SHOWN_SECONDS = 0.02
_DRIVER_MEMORY = "4g"


class Warm:
    """A context manager; Spark starts when it is first needed, and ends with the context."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._spark: SparkSession | None = None
        self.start_cpu_seconds = 0.0  # from nothing to a session
        self.parts: dict[str, float] = {}  # step -> CPU seconds of the last apply

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spark is not None:
            self._spark.stop()

    @property
    def spark(self) -> SparkSession:
        if self._spark is None:
            run = self._ctx.meter.run(self._start)
            self.start_cpu_seconds = run.cpu_seconds
        assert self._spark is not None
        return self._spark

    def _start(self) -> None:
        root = self._ctx.root
        jars.ensure(root)
        os.environ.update(spark_settings.driver_environment(root))
        pipeline = config.parse(
            "pipeline: bench\nlake: {path: unused}\nsources: {s: {conn_id: none, flavour: mysql}}\n"
            f"tables: {{include: ['*.*']}}\napply: {{driver_memory: {_DRIVER_MEMORY}}}\n",
            where="bench.yaml",
        )
        conf = {"spark.master": _MASTER, "spark.local.dir": str(self._ctx.folder / "spark")}
        self._spark = application_session("tidegate bench", conf | spark_settings.submit_conf(pipeline, root))

    def told(self) -> str:
        """The steps of the last apply, dearest first."""
        dearest = sorted(self.parts.items(), key=lambda item: -item[1])
        return ", ".join(f"{name} {seconds:.2f}" for name, seconds in dearest if seconds >= _SHOWN_SECONDS)

    def apply(self, lake: BenchLake) -> list[str]:
        """Apply all that bronze has, as a fresh application in this session; the windows' report lines."""
        lines: list[str] = []
        app = Application(BackgroundSession(lambda: self.spark), lake.pipeline, lake.files, BronzeIndex(lake.files))
        self.parts = {}
        with timed_steps(self.parts, lambda: tree_cpu(os.getpid(), self._ctx.meter.without)):
            apply_job.run(app, report=lines.append)
        held = [f"{name}: {standing.reason}" for name, standing in app.states.of(State.HELD)]
        assert lines, "nothing was applied"
        assert not held, held[0]
        return lines


@contextmanager
def timed_steps(parts: dict[str, float], clock: Callable[[], float]) -> Iterator[None]:
    """Add to `parts` the CPU seconds of each step of apply meanwhile, by its name. clock: CPU seconds up to now."""
    names = vars(apply_job)
    steps = {name: step for name, step in names.items() if _is_step(name, step)}
    names.update({name: _timed(step, parts, clock) for name, step in steps.items()})
    try:
        yield
    finally:
        names.update(steps)


def _timed(step: Step, parts: dict[str, float], clock: Callable[[], float]) -> Step:
    def timed(*given: object) -> object:
        before = clock()
        made = step(*given)
        parts[step.__name__] = parts.get(step.__name__, 0.0) + clock() - before
        return made

    return timed


def _is_step(name: str, value: object) -> bool:
    return getattr(value, "__module__", "") == f"spark_jobs.apply_steps.{name}"
