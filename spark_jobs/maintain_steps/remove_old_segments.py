"""After the tables: remove segments from bronze that nothing needs any more, as whole files.

In:  bronze/segments, control/cuts, control/table_states, control/followed; maintain.keep_bronze_days.
Out: one commit that removes files; the files themselves stay until VACUUM.
"""

from __future__ import annotations

import time
from datetime import UTC, timedelta

from spark_jobs.maintenance import DONE, GAVE_WAY, LEFT, Maintenance
from tidegate.errors import CommitConflict
from tidegate.lake.bronze.log import BronzeFile, BronzeLog
from tidegate.lake.bronze.retention import choose_gone, floors, remove, whole_transactions
from tidegate.tables import SEGMENTS


def remove_old_segments(job: Maintenance) -> None:
    """Remove the oldest segments of each source. Nothing if keep_bronze_days is null."""
    days = job.settings.keep_bronze_days
    log = BronzeLog.load(job.lake) if days is not None else None
    if log is None or days is None:
        return
    started = time.monotonic()
    first_day = job.now.astimezone(UTC).date() - timedelta(days=days)
    files = log.files()
    lowest = floors(job.lake, files)
    chosen = choose_gone(files, {source: of.commit_ts for source, of in lowest.items()}, first_day)
    gone: list[BronzeFile] = []
    for chosen_files in chosen:
        source = chosen_files[0].source
        gone += whole_transactions(job.lake, chosen_files, files[source], lowest[source].commit_ts)
    waiting = sum(file.day < first_day for of_source in files.values() for file in of_source[:-1]) - len(gone)
    least = min(lowest.values(), key=lambda floor: floor.commit_ts, default=None)
    kept = f"; {waiting} older files stay: {least.who}, at {least.commit_ts}" if waiting and least else ""
    if not gone:
        if kept:
            job.note(SEGMENTS.path, "forget", LEFT, time.monotonic() - started, kept.lstrip("; "))
        return
    detail = f"removed {sum(file.rows for file in gone)} segments of before {first_day}{kept}"
    if job.dry_run:
        job.note(SEGMENTS.path, "forget", LEFT, 0.0, f"dry run: would have {detail}")
        return
    live = [file for of_source in files.values() for file in of_source]
    try:
        remove(log, gone)
    except CommitConflict as error:
        job.note(SEGMENTS.path, "forget", GAVE_WAY, time.monotonic() - started, error.what)
        return
    total = sum(file.bytes for file in live)
    sizes = (len(live), len(live) - len(gone), total, total - sum(file.bytes for file in gone))
    job.add(SEGMENTS.path, "forget", DONE, time.monotonic() - started, detail, sizes)
