"""Step 1 of maintain: a table's kept versions can be read, by every reader, for as long as their cuts are kept.

In:  the table's properties; the newest version that control/cuts names for it.
Out: delta.deletedFileRetentionDuration and delta.logRetentionDuration; perhaps a new row of control/cuts.

VACUUM keeps files live within deletedFileRetentionDuration. It looks at no argument (Delta 4.4 ignores RETAIN), Spark
refuses to read older versions, and the log is cut off after logRetentionDuration. A table that changes once a month is
named by today's cut with a version of last month: cuts are no use then to a reader of Spark as soon as the table
changes. A version that is a day old is therefore touched, by a commit without data, and the newest cut is told the new
version: it holds the same rows. The run tells it of many tables at once.
"""

from __future__ import annotations

import re
import time
from typing import Final

from spark_jobs.maintenance import DONE, GAVE_WAY, LEFT, Maintenance, SilverTable, giving_way
from tidegate.delta.exchange import exchange
from tidegate.delta.properties import set_properties
from tidegate.lake.control.upkeep import commit_times
from tidegate.lake.silver.sizes import size_cells
from tidegate.lake.standing.held import behind
from tidegate.limits import ANCHOR_HOURS

# The oldest that a version may be when a cut names it: a day between touches, and a day between runs.
SLACK_HOURS: Final = 2 * ANCHOR_HOURS
_RETENTION: Final = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
_TOUCH: Final = "TOUCH"  # its name in the table's history
_FILES: Final = ("add", "remove")
_UNIT_HOURS: Final = {"hour": 1, "day": 24, "week": 168}
_INTERVAL: Final = re.compile(r"(?:interval )?(\d+) (hour|day|week)s?")


def retain_versions(job: Maintenance, table: SilverTable) -> None:
    """Set the properties, then name a fresh version for the newest cut; of a dropped table nothing is left to read."""
    _set_retention(job, table)
    if not job.dry_run and not (table.gone and not job.files(table).files):
        _anchor(job, table)


def retention_hours(keep_cuts_hours: int) -> int:
    """How long a removed file stays: a cut's whole life, and the age its version may have had at birth."""
    return keep_cuts_hours + SLACK_HOURS


def _set_retention(job: Maintenance, table: SilverTable) -> None:
    started = time.monotonic()
    wanted = f"interval {retention_hours(job.settings.keep_cuts_hours)} hours"
    properties = job.files(table).configuration
    # Longer than ours was set by a person, for a reason. In hours is how we say it, and may be set anew.
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
    """Touch the table and tell the newest cut, unless the version that it names is young."""
    started = time.monotonic()
    named = table.versions[-1]
    committed = commit_times(job.lake, table.path, [named]).get(named)
    if committed is None or job.now.timestamp() - committed < ANCHOR_HOURS * 3600:
        return
    row = table.newest
    if row is None or row["delta_version"] != named or not _same_rows(job, table, named):
        return
    exchange(job.log(table), [], [], operation=_TOUCH)
    # Before a look at what apply has written: what it publishes for the same cut after that look counts.
    at = behind(row["published_at"])
    newest = _same_rows(job, table, named)
    if newest is None:
        return  # apply has written more meanwhile: the cut that it is about to publish names that
    job.name_version({**row, "delta_version": newest, "published_at": at, **size_cells(job.files(table))})
    table.versions.append(newest)
    job.note(table.name, "retain", DONE, time.monotonic() - started, f"version {named} is version {newest} now")


def _same_rows(job: Maintenance, table: SilverTable, version: int) -> int | None:
    """The newest version, when it shows the rows and columns of `version`; None when it doesn't, or nobody can say."""
    newest = job.files(table)
    if any(_changes_rows(job, table, between) for between in range(version + 1, newest.version + 1)):
        return None
    before = job.log(table).state_at(version)
    return newest.version if before is not None and before.schema == newest.schema else None


def _changes_rows(job: Maintenance, table: SilverTable, version: int) -> bool:
    """Whether a commit changed rows; True when its log file is gone and nobody can say."""
    actions = job.log(table).actions(version)
    if actions is None:
        return True
    files = [body for action in actions for kind, body in action.items() if kind in _FILES]
    return any(body.get("dataChange", True) for body in files)
