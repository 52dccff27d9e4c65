"""Upkeep of bronze and of control tables beside the others, as days later, by maintain's steps and without Spark.

In:  a pipeline file, up to which seq segments may leave bronze; TIDEGATE_FAILPOINT, perhaps.
Out: cuts forgotten, segments removed and packed, VACUUM; what each step said on stdout.

Two days' retention is longer than a soak: VACUUM runs and finds no file that is old enough.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import spark_jobs.maintain_steps.remove_old_segments as removal
from spark_jobs.maintain_steps.compact_bronze import compact_bronze
from spark_jobs.maintain_steps.compact_control import compact_control
from spark_jobs.maintain_steps.forget_cuts import forget_cuts
from spark_jobs.maintain_steps.vacuum_bronze import vacuum_bronze
from spark_jobs.maintenance import Maintenance
from tidegate import config
from tidegate.lake.bronze.log import BronzeFile
from tidegate.lake.files import LakeFiles

LATER: Final = timedelta(days=3)
_NO_SPARK: Any = None
_STEPS: Final[tuple[Callable[[Maintenance], None], ...]] = (
    forget_cuts,
    removal.remove_old_segments,
    compact_bronze,
    vacuum_bronze,
    compact_control,
)


def upkeep(file: Path, seen: int) -> None:
    """seen: the last seq that the soak's witness has read; what leaves before could never be looked at.

    Raises TidegateError.
    """
    real = removal.choose_gone

    def choose_gone(*arguments: Any) -> list[list[BronzeFile]]:
        found = [[one for one in files if one.max_seq <= seen] for files in real(*arguments)]
        return [files for files in found if files]

    vars(removal)["choose_gone"] = choose_gone
    pipeline = config.load(file)

    def report(line: str) -> None:
        print(f"upkeep: {line}", flush=True)

    job = Maintenance(_NO_SPARK, pipeline, LakeFiles(pipeline.lake.path), report, datetime.now(UTC) + LATER)
    for step in _STEPS:
        step(job)
