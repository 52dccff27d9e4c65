"""Step 4 of maintain: files that no kept version needs are removed, by Delta's own VACUUM.

In:  the versions that kept cuts name, and when each was replaced.
Out: fewer files; nothing is touched when the table's retention doesn't cover a kept version.

VACUUM removes files that have been dead for delta.deletedFileRetentionDuration, and files of that age that no commit
names. The files of a kept version died when the next version was committed, or later. One condition is enough: the
next version is younger than the retention. retain_versions makes it so, and this step checks it.

Private logs (spark_jobs/merge/private/log.py) of killed processes go first. VACUUM doesn't see them. Afterwards it
finds their data files, if no version of the table names these.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from urllib.parse import unquote

from spark_jobs.maintenance import DONE, LEFT, Maintenance, SilverTable
from spark_jobs.merge.private.folders import remove_leftovers
from tidegate.delta.cleaning.vacuum import newest_at
from tidegate.delta.table.log_retention import tombstones_ms
from tidegate.delta.table.state import TableState
from tidegate.lake.control.upkeep import commit_times
from tidegate.limits import VACUUM_CLOCK_SECONDS
from tidegate.upsert.deletions.deletion_vector import stored_path


def vacuum_files(job: Maintenance, table: SilverTable) -> None:
    """VACUUM, or a list of what it would remove."""
    started = time.monotonic()
    if left := remove_leftovers(job.lake, table.path, dry_run=job.dry_run):
        what = f"{'dry run: would remove' if job.dry_run else 'removed'} private logs {', '.join(left)}"
        job.note(table.name, "vacuum", LEFT if job.dry_run else DONE, time.monotonic() - started, what)
    if (why := why_not(job, table)) is not None:
        job.note(table.name, "vacuum", LEFT, time.monotonic() - started, why)
        return
    if job.dry_run:
        gone = job.spark.sql(f"VACUUM {job.sql_name(table)} DRY RUN").collect()
        names = ", ".join(sorted(row[0].rsplit("/", 1)[-1] for row in gone)) or "nothing"
        job.note(table.name, "vacuum", LEFT, time.monotonic() - started, f"dry run: would remove {names}")
        return
    # One listing says whether VACUUM, which takes a few Spark jobs, has anything to do.
    written_at = job.written(table)
    if not _may_go(job, table, written_at):
        return
    job.spark.sql(f"VACUUM {job.sql_name(table)}").collect()
    if gone_now := len(written_at.keys() - job.written(table).keys()):
        job.note(table.name, "vacuum", DONE, time.monotonic() - started, f"removed {gone_now} files")


def _may_go(job: Maintenance, table: SilverTable, written_at: Mapping[str, float]) -> bool:
    """Whether an old enough file belongs neither to the newest version nor to the one at the retention's beginning."""
    state = job.files(table)
    oldest = _kept_since(state)
    left = {path for path, at in written_at.items() if at < oldest} - _paths(job, table, state)
    if not left:
        return False
    then = newest_at(job.log(table), int(oldest * 1000))
    return then is None or bool(left - _paths(job, table, then))


def _paths(job: Maintenance, table: SilverTable, state: TableState) -> set[str]:
    """The data files of a version and their deletion vectors, within the table's folder."""
    paths = {unquote(file.path) for file in state.files}
    for vector in (file.deletion_vector for file in state.files):
        if vector is not None and vector.storage_type != "i":
            with contextlib.suppress(ValueError):  # of a shallow clone: it lies elsewhere
                paths.add(stored_path(job.lake, table.path, vector).removeprefix(f"{table.path}/"))
    return paths


def why_not(job: Maintenance, table: SilverTable) -> str | None:
    """Why a VACUUM would take files of a kept cut, in one phrase; None if it wouldn't."""
    state = job.files(table)
    oldest = _kept_since(state) + VACUUM_CLOCK_SECONDS
    older = [version for version in table.versions if version < state.version]
    replaced = commit_times(job.lake, table.path, [version + 1 for version in older])
    for version in older:
        at = replaced.get(version + 1)
        if at is None:
            return f"kept cuts need version {version}, and the log no longer says when it was replaced"
        if at < oldest:
            return f"kept cuts need version {version}, which was replaced before what VACUUM would keep"
    return None


def _kept_since(state: TableState) -> float:
    """Unix seconds: VACUUM keeps files that were live then or later."""
    return time.time() - tombstones_ms(state.configuration) / 1000
