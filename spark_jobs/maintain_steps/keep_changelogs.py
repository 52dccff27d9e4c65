"""After the tables: remove old changes from changelogs, and pack their files.

In:  changelog/<database>/<table>; maintain.keep_changelog_days.
Out: commits beside apply's appends; what was removed hours ago is deleted. The last row of each group in
     control/subscriptions stays.

Only whole files go, by the statistics in the Delta log. Old changes stay while their file also has younger ones. The
last of the old files stays, too. A reader that has read up to there knows that nothing after it is gone, however
long the table was quiet. Age is measured in the source's time: its present is the newest cut.
"""

from __future__ import annotations

import time
from datetime import timedelta

from spark_jobs.maintenance import DONE, GAVE_WAY, Maintenance
from tidegate.changelog.changelog_table import changelogs
from tidegate.changelog.packing import pack_in_order
from tidegate.commit_ts import compose, physical_ms
from tidegate.errors import CommitConflict
from tidegate.lake.control import last_of
from tidegate.lake.control.upkeep import compact, drop_files, rewrite
from tidegate.lake.figures.status import cut_ts
from tidegate.limits import CONTROL_PACKED_FILES_MIN
from tidegate.tables.form import Table
from tidegate.tables.subscriptions_table import SUBSCRIPTIONS


def keep_changelogs(job: Maintenance) -> None:
    """Forget, then pack, each changelog that the lake has."""
    if job.dry_run:
        return
    rewrite(job.lake, SUBSCRIPTIONS, lambda rows: last_of(rows, SUBSCRIPTIONS.key[:2], SUBSCRIPTIONS.key[2:]))
    for table in changelogs(job.lake):
        job.check()
        started = time.monotonic()
        try:
            _keep(job, table)
        except CommitConflict as error:
            job.note(table.path, "compact", GAVE_WAY, time.monotonic() - started, error.what)
        except Exception as error:  # noqa: BLE001 - a file that can't be read is Arrow's; the others are kept
            job.trouble(table.path, "keep_changelogs", error)


def _keep(job: Maintenance, table: Table) -> None:
    started, days = time.monotonic(), job.settings.keep_changelog_days
    if days is not None:
        oldest_ms = physical_ms(cut_ts(job.lake)) - timedelta(days=days) // timedelta(milliseconds=1)
        gone = _forget(job, table, compose(max(0, oldest_ms)))
        if gone is not None:
            detail = f"kept {gone[1]} of {gone[0]} changes"
            job.add(table.path, "forget", DONE, time.monotonic() - started, detail, (*gone, 0, 0))
    sizes = compact(job.lake, table, files_min=CONTROL_PACKED_FILES_MIN, packs=pack_in_order)
    if sizes is not None and sizes[0] != sizes[1]:
        before, after = sizes
        counted = (before.files, after.files, before.bytes, after.bytes)
        job.add(table.path, "compact", DONE, time.monotonic() - started, "compacted", counted)


def _forget(job: Maintenance, table: Table, oldest_ts: int) -> tuple[int, int] | None:
    """Number of rows before and after; None if nothing goes."""
    files = job.lake.log(table.path).state().files
    bounds = [bound for file in files if (bound := file.bounds("commit_ts")) is not None]
    below = max((high for _, high in bounds if high < oldest_ts), default=None)
    if below is None or len(bounds) < len(files):
        return None
    # The files that stay must begin after those that go: a reader concludes from the first commit_ts that nothing after
    # it is gone. A file packed from both sides of a large one overlaps, so the bound moves down to its beginning.
    while (begin := min(low for low, high in bounds if high >= below)) < below:
        below = begin
    return drop_files(job.lake, table, "commit_ts", below)
