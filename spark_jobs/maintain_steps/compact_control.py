"""After the tables: control tables in few files, with a checkpoint and a short log.

In:  the tables under control/ of tables/.
Out: commits beside apply's appends; what was removed hours ago is deleted.
"""

from __future__ import annotations

import time

from spark_jobs.maintenance import DONE, Maintenance
from tidegate import tables
from tidegate.lake.control.upkeep import compact
from tidegate.limits import CONTROL_PACKED_FILES_MIN


def compact_control(job: Maintenance) -> None:
    """Compact the control tables with many files, and write a checkpoint of each."""
    for table in tables.ALL:
        if not table.path.startswith("control/") or job.dry_run:
            continue
        started = time.monotonic()
        sizes_of_both = compact(job.lake, table, files_min=CONTROL_PACKED_FILES_MIN)
        if sizes_of_both is not None and sizes_of_both[0] != sizes_of_both[1]:
            before, after = sizes_of_both
            sizes = (before.files, after.files, before.bytes, after.bytes)
            job.add(table.path, "compact", DONE, time.monotonic() - started, "compacted", sizes)
