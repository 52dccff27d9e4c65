"""Step 5 of maintain: remove old entries of a quiet table's log. In a busy table's log apply
removes them.

In:  the table's log, its delta.logRetentionDuration.
Out: perhaps a checkpoint; commits and checkpoints before it deleted, once it is old itself.

A commit names each new file with the smallest and largest values of its columns. Apply writes a
checkpoint after CHECKPOINT_COMMITS commits, and removes what is older. A table with a commit a
day would keep the values of deleted rows for months. Therefore a log with old commits gets a checkpoint
here, at most one per retention.
"""

from __future__ import annotations

import time

from spark_jobs.maintenance import DONE, Maintenance, SilverTable
from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.cleaning.log_cleanup import clean_up
from tidegate.delta.object_names import checkpoints, commit_version
from tidegate.delta.table.actions import now_ms
from tidegate.delta.table.log_retention import log_ms
from tidegate.lake.silver.known_history import history_name, renew_history


def expire_log(job: Maintenance, table: SilverTable) -> None:
    """If nothing is old, this costs one listing."""
    started = time.monotonic()
    log, state, now = job.log(table), job.files(table), now_ms()
    kept_ms = log_ms(state.configuration)
    if kept_ms is None or job.dry_run:
        return
    renew_history(log, history_name(job.pipeline.pipeline, table.name))
    state = log.known
    entries, old_ms = log.store.names(), now - kept_ms
    commits = [entry.modified_ms for entry in entries if commit_version(entry.name) is not None]
    if not commits or min(commits) >= old_ms:
        return
    made = [file.modified_ms for checkpoint in checkpoints(entries) for file in checkpoint.files]
    if max(made, default=0) < old_ms:
        checkpoint_write.write(log.store, state.version, now_ms=now, files=len(state.files))
    if gone := clean_up(log.store, state.configuration, state.features, now_ms=now):
        job.note(table.name, "expire", DONE, time.monotonic() - started, f"removed {gone} entries of its log")
