"""Step 2 of maintain: few files, sorted by key, by Delta's own OPTIMIZE (on a private log).

In:  a silver table whose unclustered or small files hold more than a share of its bytes.
Out: one commit without data changes; or none, when another writer changed those files every time.

OPTIMIZE of a clustered table rewrites all that isn't in a large cube already, so it runs when there is something
to win: at a share of 0.2 each byte is rewritten about five times over the table's growth, not once a day.
"""

from __future__ import annotations

import time

from spark_jobs.maintenance import DONE, GAVE_WAY, LEFT, Maintenance, SilverTable, Size


def cluster_files(job: Maintenance, table: SilverTable) -> None:
    """OPTIMIZE, when the share of bytes that it would put in order is large enough."""
    started = time.monotonic()
    before = job.size(table)
    why = _reason(job, table, before)
    if why is None:
        return
    if job.dry_run:
        job.note(table.name, "cluster", LEFT, 0.0, f"dry run: would cluster, {why}", before)
        return
    won = job.rewrite(table, "OPTIMIZE {}".format, before)
    outcome = DONE if won else GAVE_WAY
    job.note(table.name, "cluster", outcome, time.monotonic() - started, why, before, job.size(table))


def _reason(job: Maintenance, table: SilverTable, size: Size) -> str | None:
    """Why the table is worth an OPTIMIZE, in one phrase; None when it isn't."""
    if size.files < 2:
        return None
    most = job.settings.cluster_share * size.bytes
    clustered = bool(job.files(table).clustering_columns)
    if clustered and size.unclustered_bytes > most:
        return f"{size.unclustered_bytes} of {size.bytes} bytes in unclustered files"
    if not clustered and size.small > 1 and size.small_bytes > most:
        return f"{size.small_bytes} of {size.bytes} bytes in small files"
    return None
