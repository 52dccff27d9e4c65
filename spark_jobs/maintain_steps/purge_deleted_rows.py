"""Step 3 of maintain: rewrite files without the rows that deletion vectors hide.

In:  a silver table of whose rows more than a share is deleted, or with deleted rows in files that
     are older than maintain.purge_days.
Out: a commit per file, without a change of data. If another writer changes the file first, it stays for the next run.

One file at a time: apply may commit every second, so a rewrite of the whole table would lose each race. Tables that the
positional writer can't write go by Delta's own REORG. It leaves the files of one cube as they are.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from spark_jobs.maintenance import DONE, GAVE_WAY, LEFT, Maintenance, SilverTable, Size, giving_way
from tidegate.delta.exchange import exchange
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import rewrite
from tidegate.upsert.fitness import why_not
from tidegate.upsert.worth_rewriting import dead_share

# Files with a smaller share of dead rows are left as they are: a rewrite would gain too little.
_WORTH_SHARE: Final = 0.05


def purge_deleted_rows(job: Maintenance, table: SilverTable) -> None:
    """Rewrite the files that hold many dead rows, when the table as a whole does, and those due by their age."""
    started = time.monotonic()
    before = job.size(table)
    many = before.dead > job.settings.purge_share * before.rows
    paths = _holding(job, table, many=many)
    if not paths:
        return
    why = f"{before.dead} of {before.rows} rows deleted"
    if not many:
        why += f", in {len(paths)} files that are older than {job.settings.purge_days} days"
    if job.dry_run:
        job.note(table.name, "purge", LEFT, 0.0, f"dry run: would purge, {why}", before)
        return
    if why_not(job.files(table)):
        won = job.rewrite(table, "REORG TABLE {} APPLY (PURGE)".format, before)
    else:
        won = _purge_files(job, table, paths)
    after: Size = job.size(table)
    job.note(table.name, "purge", DONE if won else GAVE_WAY, time.monotonic() - started, why, before, after)


def _holding(job: Maintenance, table: SilverTable, *, many: bool) -> list[str]:
    """Paths of the files to rewrite. many: a large share of the whole table's rows is deleted."""
    days = job.settings.purge_days
    due_ms = 0.0 if days is None else (job.now - timedelta(days=days)).timestamp() * 1000
    return [
        file.path
        for file in job.files(table).files
        if file.deletion_vector is not None and (file.written_ms < due_ms or (many and dead_share(file) > _WORTH_SHARE))
    ]


def _purge_files(job: Maintenance, table: SilverTable, paths: list[str]) -> bool:
    """False when another writer was quicker at one of them."""
    key = job.files(table).clustering_columns
    won = [giving_way(partial(_purge_file, job, table, path, key)) for path in paths]
    return all(won)


def _purge_file(job: Maintenance, table: SilverTable, path: str, key: tuple[str, ...]) -> None:
    snapshot: TableState = job.files(table)
    file = next((file for file in snapshot.files if file.path == path), None)
    if file is None or file.deletion_vector is None:
        return  # somebody has done it
    adds = rewrite(job.lake, table.path, [file], FileLayout.of(snapshot, key))
    adds = [{**add, **_place(file)} for add in adds]
    try:
        exchange(job.log(table), [file], adds, operation="PURGE")
    except CommitConflict:
        for add in adds:
            with suppress(OSError):  # VACUUM takes what stays
                job.lake.filesystem.delete_file(job.lake.local(f"{table.path}/{unquote(add['path'])}"))
        raise


def _place(file: LiveFile) -> dict[str, Any]:
    """The tags by which a file counts as clustered. The new file has some of its rows in the same
    order, so it keeps them.
    """
    return {name: file.action[name] for name in ("tags", "clusteringProvider") if file.action.get(name)}
