"""Step 3 of maintain: rows that deletion vectors hide leave the files, by Delta's own REORG.

In:  a silver table of whose rows more than a share is deleted.
Out: one commit without data changes; or none, when another writer was quicker every time.
"""

from __future__ import annotations

import time

from spark_jobs.maintenance import DONE, GAVE_WAY, LEFT, Maintenance, SilverTable


def purge_deleted_rows(job: Maintenance, table: SilverTable) -> None:
    """REORG ... APPLY (PURGE), when it is worth the rewrite."""
    started = time.monotonic()
    before = job.size(table)
    if not before.dead or before.dead <= job.settings.purge_share * before.rows:
        return
    why = f"{before.dead} of {before.rows} rows deleted"
    if job.dry_run:
        job.note(table.name, "purge", LEFT, 0.0, f"dry run: would purge, {why}", before)
        return
    won = job.rewrite(f"REORG TABLE {job.sql_name(table)} APPLY (PURGE)", before)
    outcome = DONE if won else GAVE_WAY
    job.note(table.name, "purge", outcome, time.monotonic() - started, why, before, job.size(table))
