"""Upkeep of bronze beside capture and apply, as it would be days later, by maintain's own steps and without Spark.

In:  a pipeline file; TIDEGATE_FAILPOINT, perhaps.
Out: cuts forgotten, segments removed and packed, VACUUM; what each step said on stdout.

Two days' retention is longer than a soak: VACUUM runs and finds no file that is old enough.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from spark_jobs.maintenance import Maintenance
from spark_jobs.steps.compact_bronze import compact_bronze
from spark_jobs.steps.forget_cuts import forget_cuts
from spark_jobs.steps.remove_old_segments import remove_old_segments
from spark_jobs.steps.vacuum_bronze import vacuum_bronze
from tidegate import config
from tidegate.lake.files import LakeFiles

LATER: Final = timedelta(days=3)
_NO_SPARK: Any = None
_STEPS: Final[tuple[Callable[[Maintenance], None], ...]] = (
    forget_cuts,
    remove_old_segments,
    compact_bronze,
    vacuum_bronze,
)


def upkeep(file: Path) -> None:
    """Raises TidegateError."""
    pipeline = config.load(file)

    def report(line: str) -> None:
        print(f"upkeep: {line}", flush=True)

    job = Maintenance(_NO_SPARK, pipeline, LakeFiles(pipeline.lake.path), report, datetime.now(UTC) + LATER)
    for step in _STEPS:
        step(job)
