"""Before the tables: remove old cuts, so that no file is kept for them.

In:  control/cuts.
Out: the rows for kept cuts; none published meanwhile is lost.
"""

from __future__ import annotations

import time
from datetime import timedelta

from spark_jobs.maintenance import DONE, LEFT, Maintenance
from tidegate import tables
from tidegate.lake import control
from tidegate.lake.control.upkeep import rewrite
from tidegate.lake.cuts.kept_cuts import kept_rows


def forget_cuts(job: Maintenance) -> None:
    """Rewrite control/cuts without the rows that no kept cut needs."""
    started = time.monotonic()
    keep = timedelta(hours=job.settings.keep_cuts_hours)
    if job.dry_run:
        rows = control.read(job.lake, tables.CUTS)
        kept = kept_rows(rows, job.now, keep, job.settings.thin_cuts_seconds)
        job.note(tables.CUTS.path, "forget", LEFT, 0.0, f"dry run: would keep {kept.num_rows} of {rows.num_rows} rows")
        return
    counts = rewrite(job.lake, tables.CUTS, lambda rows: kept_rows(rows, job.now, keep, job.settings.thin_cuts_seconds))
    if counts is not None:
        detail = f"kept {counts[1]} of {counts[0]} rows"
        job.add(tables.CUTS.path, "forget", DONE, time.monotonic() - started, detail, (*counts, 0, 0))
