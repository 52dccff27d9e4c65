"""After the tables: files that left bronze two days ago or earlier are removed, and its log is checkpointed.

In:  bronze/segments and its properties.
Out: fewer files on disk. delta.deletedFileRetentionDuration is longer than an apply may work with the files that it
     planned; nothing reads an older version of bronze, and cuts name versions of silver alone.
"""

from __future__ import annotations

import time

from spark_jobs.maintenance import DONE, LEFT, Maintenance
from tidegate.lake.bronze.log import BronzeLog, properties
from tidegate.tables import SEGMENTS


def vacuum_bronze(job: Maintenance) -> None:
    """Delete what no reader needs, in the whole folder: files of a capture or an upkeep that was killed go too."""
    log = BronzeLog.load(job.lake)
    if log is None:
        return
    started = time.monotonic()
    if job.dry_run:
        if gone := log.vacuum(dry_run=True):
            job.note(SEGMENTS.path, "vacuum", LEFT, 0.0, f"dry run: would remove {len(gone)} files")
        return
    log.set_properties(properties(job.pipeline.apply.run_for_seconds))
    if gone := log.vacuum(dry_run=False):
        job.note(SEGMENTS.path, "vacuum", DONE, time.monotonic() - started, f"removed {len(gone)} files")
    log.checkpoint()
