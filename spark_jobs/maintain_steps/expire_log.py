"""Step 5 of maintain: remove old entries of a quiet table's log. In a busy table's log apply
removes them.

In:  the table's log, its delta.logRetentionDuration.
Out: perhaps a checkpoint; commits and checkpoints before it deleted, once it is old itself.

A commit names each new file with the smallest and largest values of its columns. Apply writes a
checkpoint after CHECKPOINT_COMMITS commits, and removes what is older. A table with a commit a
day would keep the values of deleted rows for months. Therefore a log with old commits gets a checkpoint
here, at most one per retention. A table that is gone gets a commit before it: the last one, which removed
its files, would stay for ever.
"""

from __future__ import annotations

import time
from typing import Final

from spark_jobs.maintenance import DONE, Maintenance, SilverTable
from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.cleaning.log_cleanup import clean_up
from tidegate.delta.exchange import exchange
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import checkpoints, commit_version
from tidegate.delta.table.actions import now_ms
from tidegate.delta.table.log_retention import log_ms
from tidegate.lake.silver.known_history import history_name, renew_history

_FILES: Final = frozenset({"add", "remove", "cdc"})
_TOUCH: Final = "TOUCH"  # as retain_versions calls it


def expire_log(job: Maintenance, table: SilverTable) -> None:
    """If nothing is old, this costs one listing."""
    started = time.monotonic()
    log, now = job.log(table), now_ms()
    if table.gone and _has_no_values(log):
        return
    kept_ms = log_ms(job.files(table).configuration)
    if kept_ms is None or job.dry_run:
        return
    renew_history(log, history_name(job.pipeline.pipeline, table.name))
    state, old_ms = log.known, now - kept_ms
    commits, made = _times(log)
    if min(commits, default=now) >= old_ms:
        return
    if gone := clean_up(log.store, state.configuration, state.features, now_ms=now):
        job.note(table.name, "expire", DONE, time.monotonic() - started, f"removed {gone} entries of its log")
    if max(made, default=0) >= old_ms or (table.gone and _has_no_values(log)):
        return
    if table.gone and max(commits) < old_ms:  # retain_versions touches the others
        state = exchange(log, [], [], operation=_TOUCH)
    checkpoint_write.write(log.store, state.version, now_ms=now, files=len(state.files))


def _times(log: DeltaLog) -> tuple[list[int], list[int]]:
    """When its commits were made, and the files of its checkpoints: Unix milliseconds."""
    entries = log.store.names()
    commits = [entry.modified_ms for entry in entries if commit_version(entry.name) is not None]
    return commits, [file.modified_ms for checkpoint in checkpoints(entries) for file in checkpoint.files]


def _has_no_values(log: DeltaLog) -> bool:
    """Whether a log without live files is as short as it gets: a checkpoint, and a commit that names no file."""
    entries = log.store.names()
    versions = [version for entry in entries if (version := commit_version(entry.name)) is not None]
    if not versions:
        return True
    if len(versions) > 1 or versions[0] not in {checkpoint.version for checkpoint in checkpoints(entries)}:
        return False
    return not any(_FILES & action.keys() for action in log.actions(versions[0]) or ())
