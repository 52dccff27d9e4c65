"""Step 2 of maintain: few files, in the order of the clustering columns, by Delta's own OPTIMIZE (on a private log).

The columns are the key's, or those of tables.clustering in the pipeline file; a changed rule orders every file anew.

In:  a silver table whose unclustered or small files hold more than a share of its bytes.
Out: one commit without data changes; or none, when another writer changed those files every time.

OPTIMIZE of a clustered table rewrites all files outside of a large cube. Therefore it runs only above a share: with 0.2
each byte is rewritten about five times while the table grows, and not once a day.
"""

from __future__ import annotations

import json
import time
from typing import Final

from spark_jobs.maintenance import DONE, GAVE_WAY, LEFT, Maintenance, SilverTable, Size
from tidegate.delta.table.state import TableState
from tidegate.lake.silver.silver_tables import cluster_by, clustering_asked

# In this tag Delta notes by which columns a file is ordered (ZCubeInfo).
_ORDER_TAG: Final = "ZCUBE_ZORDER_BY"


def cluster_files(job: Maintenance, table: SilverTable) -> None:
    """Run OPTIMIZE if it would order a large enough share of the bytes, or if the files are ordered
    by other columns than they should be.
    """
    started = time.monotonic()
    before, state = job.size(table), job.files(table)
    names = job.pipeline.tables.clustering_of(*table.pair)
    by = clustering_asked(state, names) or state.clustering_columns
    anew = bool(state.files) and (by != state.clustering_columns or _in_other_order(state))
    why = f"every file by {', '.join(by)}" if anew else _reason(job, state, before)
    if why is None:
        return
    if job.dry_run:
        job.note(table.name, "cluster", LEFT, 0.0, f"dry run: would cluster, {why}", before)
        return
    if by != state.clustering_columns:
        cluster_by(job.log(table), names)
    won = job.rewrite(table, ("OPTIMIZE {} FULL" if anew else "OPTIMIZE {}").format, before)
    outcome = DONE if won else GAVE_WAY
    job.note(table.name, "cluster", outcome, time.monotonic() - started, why, before, job.size(table))


def _in_other_order(state: TableState) -> bool:
    """Whether a file was clustered by other columns than the table's. Plain OPTIMIZE would leave such a file as it is.

    A killed run leaves such files, and so does a person's ALTER TABLE ... CLUSTER BY.
    """
    if not state.clustering_columns or "columnMapping" in state.features:
        return False
    own = json.dumps(list(state.clustering_columns), separators=(",", ":"), ensure_ascii=False)
    return any((file.action.get("tags") or {}).get(_ORDER_TAG, own) != own for file in state.files)


def _reason(job: Maintenance, state: TableState, size: Size) -> str | None:
    """Why the table is worth an OPTIMIZE, in one phrase; None when it isn't."""
    if size.files < 2:
        return None
    most = job.settings.cluster_share * size.bytes
    clustered = bool(state.clustering_columns)
    if clustered and size.unclustered_bytes > most:
        return f"{size.unclustered_bytes} of {size.bytes} bytes in unclustered files"
    if not clustered and size.small > 1 and size.small_bytes > most:
        return f"{size.small_bytes} of {size.bytes} bytes in small files"
    return None
