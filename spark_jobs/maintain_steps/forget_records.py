"""After the tables: remove old records of finished work.

In:  control/ledger, latency, maintenance, actions, table_states, prewrites, snapshots, verification and usage;
     maintain.keep_records_days, but of usage sums and bounds of its own.
Out: each without its old rows; of table_states each table's last event stays, and those by which a changelog tells
     what it lacks; of prewrites those with their answer in bronze, and those without one; of snapshots the list of
     tidegate/snapshot/progress/worth_keeping.py; of verification each table's newest result.

The ledger and latency may grow by several rows a second. Only whole files of these two go, by the statistics in the
Delta log. Old rows stay while their file also has younger ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.maintenance import DONE, GAVE_WAY, Maintenance
from tidegate import tables
from tidegate.changelog.share import still_counting
from tidegate.commit_ts import compose, physical_ms
from tidegate.errors import CommitConflict
from tidegate.lake.bronze.prewrites import begins_of, worth_keeping
from tidegate.lake.control import last_of
from tidegate.lake.control.upkeep import drop_files, rewrite
from tidegate.lake.figures.status import cut_ts
from tidegate.lake.figures.usage import summed
from tidegate.lake.figures.verified import VERIFIED_ORDER
from tidegate.lake.standing.held import from_row
from tidegate.snapshot.progress.worth_keeping import worth_keeping as snapshots_kept
from tidegate.tables.actions_table import ACTIONS
from tidegate.tables.snapshot_tables import VERIFICATION
from tidegate.tables.usage_table import USAGE

_EVENT: Final = ["pipeline", "table", "recorded_at"]
_VERIFIED: Final = ["source", "database", "table", "silver"]


def forget_records(job: Maintenance) -> None:
    """Remove records by the time of the work. The ledger's age is in the source's time: its present
    is the newest cut.
    """
    if job.dry_run:
        return
    _forget(job, USAGE, lambda: rewrite(job.lake, USAGE, partial(summed, now=job.now.timestamp())))
    days = job.settings.keep_records_days
    if days is None:
        return
    keep = timedelta(days=days)
    oldest = job.now - keep
    oldest_us = int(oldest.timestamp() * 1e6)
    newest_ms = physical_ms(cut_ts(job.lake))
    oldest_ts = compose(max(0, newest_ms - keep // timedelta(milliseconds=1)))
    _forget(job, tables.LEDGER, lambda: drop_files(job.lake, tables.LEDGER, "cut_ts", oldest_ts))
    _forget(job, tables.LATENCY, lambda: drop_files(job.lake, tables.LATENCY, "visible_us", oldest_us))
    at = pa.scalar(oldest, pa.timestamp("us", tz="UTC"))
    for table, column in ((tables.MAINTENANCE, "at"), (ACTIONS, "recorded_at")):
        _forget(job, table, partial(rewrite, job.lake, table, partial(_young, column, at)))
    begins = begins_of(job.lake)
    _forget(
        job, tables.PREWRITES, lambda: rewrite(job.lake, tables.PREWRITES, lambda rows: worth_keeping(rows, begins))
    )
    _forget(
        job, tables.SNAPSHOTS, lambda: rewrite(job.lake, tables.SNAPSHOTS, lambda rows: snapshots_kept(rows, oldest))
    )
    _forget(job, tables.TABLE_STATES, lambda: rewrite(job.lake, tables.TABLE_STATES, lambda rows: _counting(rows, at)))
    _forget(job, VERIFICATION, lambda: rewrite(job.lake, VERIFICATION, lambda rows: _newest(rows, at)))


def _young(column: str, oldest: pa.Scalar, rows: pa.Table) -> pa.Table:
    return rows.filter(pc.greater_equal(rows[column], oldest))


def _counting(rows: pa.Table, oldest: pa.Scalar) -> pa.Table:
    young = rows.filter(pc.greater_equal(rows["recorded_at"], oldest))
    old = rows.filter(pc.less(rows["recorded_at"], oldest))
    of_table: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows.sort_by("recorded_at").to_pylist():
        of_table.setdefault((row["pipeline"], row["table"]), []).append(row)
    kept = list[dict[str, Any]]()
    for events in of_table.values():
        counting = still_counting(list(map(from_row, events)))
        kept += map(events.__getitem__, sorted(counting))
    counted = pa.Table.from_pylist(kept, schema=rows.schema).select(_EVENT)
    return pa.concat_tables([old.join(counted, keys=_EVENT, join_type="left semi"), young])


def _newest(rows: pa.Table, oldest: pa.Scalar) -> pa.Table:
    """The newest result of each table stays, however old it is. Its rows of ranges go: their ends are keys, perhaps of
    a person who was deleted since.
    """
    young = rows.filter(pc.greater_equal(rows["recorded_at"], oldest))
    old = rows.filter(pc.less(rows["recorded_at"], oldest))
    last = last_of(rows.filter(pc.equal(rows["chunk"], 0)), _VERIFIED, VERIFIED_ORDER)
    of = [*_VERIFIED, "verification", "chunk"]
    return pa.concat_tables([old.join(last.select(of), keys=of, join_type="left semi"), young])


def _forget(job: Maintenance, table: tables.Table, act: Callable[[], tuple[int, int] | None]) -> None:
    started = time.monotonic()
    try:
        counts = act()
    except CommitConflict as error:
        job.note(table.path, "forget", GAVE_WAY, time.monotonic() - started, error.what)
        return
    if counts is not None:
        detail = f"kept {counts[1]} of {counts[0]} rows"
        job.add(table.path, "forget", DONE, time.monotonic() - started, detail, (*counts, 0, 0))
