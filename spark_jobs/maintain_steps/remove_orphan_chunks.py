"""After the tables: chunks of snapshots that apply never took leave bronze.

In:  bronze/chunks, control/snapshots.
Out: a commit without their files, which go from the disk some days later.
"""

from __future__ import annotations

import time

from spark_jobs.maintenance import DONE, GAVE_WAY, LEFT, Maintenance
from tidegate.errors import CommitConflict
from tidegate.snapshot.progress.orphans import keep_rows, orphan_files, remove, vacuum_chunks
from tidegate.tables import CHUNKS


def remove_orphan_chunks(job: Maintenance) -> None:
    """What a rebuild reads stays."""
    started, gone = time.monotonic(), orphan_files(job.lake, job.now)
    if job.dry_run:
        if gone:
            job.note(CHUNKS.path, "remove", LEFT, 0.0, f"dry run: would remove {len(gone)} files")
        return
    if gone:
        try:
            remove(job.lake, gone)
        except CommitConflict as error:
            job.note(CHUNKS.path, "remove", GAVE_WAY, time.monotonic() - started, error.what)
            return
        sizes = (len(gone), 0, sum(file.size for file in gone), 0)
        job.add(CHUNKS.path, "remove", DONE, time.monotonic() - started, "of waves that apply didn't take", sizes)
    keep_rows(job.lake)
    vacuum_chunks(job.lake)
