"""Step 1 of maintain: every reader can read a table's versions for as long as their cuts are kept.

In:  the table's properties; the newest version that control/cuts names for it.
Out: delta.deletedFileRetentionDuration and delta.logRetentionDuration; perhaps a new row of control/cuts.

VACUUM keeps files that were live within deletedFileRetentionDuration (Delta 4.4 ignores its argument RETAIN). Spark
refuses to read older versions, and the log is cut off after logRetentionDuration. If a table changes once a month,
today's cut names a version of last month. As soon as the table changes, Spark can't read that version any more.
Therefore a version that is a day old is touched: a commit without data makes a new version with the same rows, and a
new row of control/cuts names it. One commit has these rows of many tables.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, Final

from spark_jobs.maintenance import DONE, GAVE_WAY, LEFT, Maintenance, SilverTable, giving_way
from tidegate.delta.exchange import exchange
from tidegate.delta.properties import set_properties
from tidegate.lake.control.upkeep import commit_times
from tidegate.lake.silver.as_published import compared, said_by
from tidegate.lake.silver.sizes import size_cells
from tidegate.lake.standing.held import behind
from tidegate.limits import ANCHOR_HOURS
from tidegate.tables import app_id

# The oldest that a version may be when a cut names it: a day between touches, and a day between runs.
SLACK_HOURS: Final = 2 * ANCHOR_HOURS
_RETENTION: Final = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
_TOUCH: Final = "TOUCH"  # its name in the table's history
_FILES: Final = ("add", "remove")
_UNIT_HOURS: Final = {"hour": 1, "day": 24, "week": 168}
_INTERVAL: Final = re.compile(r"(?:interval )?(\d+) (hour|day|week)s?")


def retain_versions(job: Maintenance, table: SilverTable) -> None:
    """Set the properties, then name a fresh version for the newest cut. A dropped table needs
    neither: nobody reads it.
    """
    _set_retention(job, table)
    if not job.dry_run and not (table.gone and not job.files(table).files):
        _anchor(job, table)


def retention_hours(keep_cuts_hours: int) -> int:
    """Hours for which a removed file stays: the life of a cut, plus the age of its version when the
    cut was published.
    """
    return keep_cuts_hours + SLACK_HOURS


def _set_retention(job: Maintenance, table: SilverTable) -> None:
    started = time.monotonic()
    wanted = f"interval {retention_hours(job.settings.keep_cuts_hours)} hours"
    properties = job.files(table).configuration
    # A person may have set a longer time, for a reason. A value in hours is ours, and may be changed.
    changed = {name: wanted for name in _RETENTION if _differs(properties.get(name), wanted)}
    if not changed:
        return
    text = ", ".join(f"'{name}' = '{value}'" for name, value in changed.items())
    if job.dry_run:
        job.note(table.name, "retain", LEFT, 0.0, f"dry run: would set {text}")
        return
    won = giving_way(lambda: set_properties(job.log(table), changed))
    job.note(table.name, "retain", DONE if won else GAVE_WAY, time.monotonic() - started, text)


def _differs(present: str | None, wanted: str) -> bool:
    if present is None or present == wanted:
        return present is None
    interval = _INTERVAL.fullmatch(present.strip().lower())
    if interval is None:
        return False
    hours = int(interval[1]) * _UNIT_HOURS[interval[2]]
    return interval[2] == "hour" or hours < int(wanted.split()[1])


def _anchor(job: Maintenance, table: SilverTable) -> None:
    """Touch the table, and name the new version for the newest cut; nothing if its present version
    is young.
    """
    started = time.monotonic()
    named = table.versions[-1]
    committed = commit_times(job.lake, table.path, [named]).get(named)
    if committed is None or job.now.timestamp() - committed < ANCHOR_HOURS * 3600:
        return
    row = table.newest
    if row is None or row["delta_version"] != named or not _same_rows(job, table, row):
        return
    exchange(job.log(table), [], [], operation=_TOUCH)
    # Take the time before the look at silver: a row that apply publishes for the same cut after the look must win.
    at = behind(row["published_at"])
    newest = _same_rows(job, table, row)
    if newest is None:
        return  # apply has written more meanwhile, and its next cut names that
    job.name_version({**row, "delta_version": newest, "published_at": at, **size_cells(job.files(table))})
    table.versions.append(newest)
    job.note(table.name, "retain", DONE, time.monotonic() - started, f"version {named} is version {newest} now")


def _same_rows(job: Maintenance, table: SilverTable, row: Mapping[str, Any]) -> int | None:
    """The newest version, if it has the same rows and columns as a row of control/cuts names; None
    if it hasn't, or if the log can't tell. Others' rewrites may lose rows and say dataChange: false:
    apply holds the table for them.
    """
    log, version = job.log(table), row["delta_version"]
    newest = job.files(table)
    if any(_changes_rows(job, table, between) for between in range(version + 1, newest.version + 1)):
        return None
    if compared(job.lake, log, app_id(job.pipeline.pipeline, table.name), said_by(row)).unlike is not None:
        return None
    before = log.state_at(version)
    return newest.version if before is not None and before.schema == newest.schema else None


def _changes_rows(job: Maintenance, table: SilverTable, version: int) -> bool:
    """Whether a commit changed rows; True if its log file is gone, since it may have."""
    actions = job.log(table).actions(version)
    if actions is None:
        return True
    files = [body for action in actions for kind, body in action.items() if kind in _FILES]
    return any(body.get("dataChange", True) for body in files)
