"""After the tables: pack bronze's small files. A segment a second makes 86,400 files a day, and a reader opens each
one.

In:  bronze/segments, but for the files of the last minutes.
Out: one commit per packed file, beside capture's, without a change of data.
"""

from __future__ import annotations

import time

from spark_jobs.maintenance import DONE, GAVE_WAY, LEFT, Maintenance
from tidegate.errors import CommitConflict
from tidegate.lake.bronze.log import BronzeLog, properties
from tidegate.lake.bronze.upkeep import Limits, choose_runs, compact_run
from tidegate.limits import BRONZE_YOUNG_SECONDS
from tidegate.tables import SEGMENTS


def compact_bronze(job: Maintenance) -> None:
    """Pack runs of small files, the oldest first, up to maintain.bronze_bytes."""
    log = BronzeLog.load(job.lake)
    if log is None or job.settings.bronze_bytes == 0:
        return
    young_ms = int((job.now.timestamp() - BRONZE_YOUNG_SECONDS) * 1000)
    limits = Limits(job.settings.file_bytes, job.settings.bronze_bytes, young_ms)
    runs = choose_runs(log.files(), limits)
    if job.dry_run:
        if runs:
            detail = f"dry run: would make {len(runs)} files of {sum(map(len, runs))}"
            job.note(SEGMENTS.path, "compact", LEFT, 0.0, detail)
        return
    log.set_properties(properties(job.pipeline.apply.run_for_seconds))
    for run in runs:
        started = time.monotonic()
        before = sum(file.bytes for file in run)
        what = f"{run[0].source} {run[0].day}, seq {run[0].min_seq} to {run[-1].max_seq}"
        try:
            packed = compact_run(log, run, job.pipeline.capture.compression)
        except CommitConflict as error:
            job.note(SEGMENTS.path, "compact", GAVE_WAY, time.monotonic() - started, f"{what}: {error.what}")
            return
        sizes = (len(run), 1, before, packed["size"])
        job.add(SEGMENTS.path, "compact", DONE, time.monotonic() - started, what, sizes)
