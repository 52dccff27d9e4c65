"""After the tables: chunks of snapshots leave bronze if apply never took them, or no rebuild reaches them any more.

In:  bronze/chunks, control/snapshots, where bronze/segments begins; maintain.keep_bronze_days.
Out: a commit without their files, which go from the disk some days later.
"""

from __future__ import annotations

import time

from spark_jobs.maintenance import DONE, GAVE_WAY, LEFT, Maintenance
from tidegate.errors import CommitConflict
from tidegate.lake.bronze.beginning import begins
from tidegate.lake.bronze.log import BronzeLog
from tidegate.snapshot.progress.orphans import keep_rows, orphan_files, remove, vacuum_chunks
from tidegate.tables import CHUNKS


def remove_orphan_chunks(job: Maintenance) -> None:
    """The chunks that a rebuild reads stay. It comes after the removal of segments."""
    started, days = time.monotonic(), job.settings.keep_bronze_days
    gone = orphan_files(job.lake, job.now, {} if days is None else _begins(job), days or 0)
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
        job.add(CHUNKS.path, "remove", DONE, time.monotonic() - started, "of waves that nothing reads any more", sizes)
    keep_rows(job.lake)
    vacuum_chunks(job.lake)


def _begins(job: Maintenance) -> dict[str, int]:
    """Per source of chunks: the commit_ts up to which its segments are gone; for several Pumps the lowest one."""
    log = BronzeLog.load(job.lake)
    if log is None:
        return {}
    files = log.files()
    gone = begins(job.lake, [file for source in sorted(files) for file in files[source]])
    owners = {owner: job.pipeline.pumps(owner) for owner in job.pipeline.owners}
    return gone | {owner: min(gone.get(pump, 0) for pump in pumps) for owner, pumps in owners.items() if pumps}
