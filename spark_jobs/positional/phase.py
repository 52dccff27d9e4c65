"""A table's phase by position, of changes staged as for MERGE: few enough for the driver to hold.

In:  a reader of the phase's changes, and their effect on silver as it is.
Out: one Delta commit with data and applied_ts; tried again on the next state while other commits come first.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.positional.staging import laid_out, within
from spark_jobs.positional.writer import CONFLICT_WAIT, check_fit, upserted
from spark_jobs.window.application import Application
from spark_jobs.window.made import GivenBack, TableToWrite
from spark_jobs.window.standing import silver_guard
from spark_jobs.window.window import StagedFile
from tidegate import tables
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.limits import COMMIT_ATTEMPTS_MAX
from tidegate.table_names import Physical
from tidegate.upsert.actions import Actions, replaced
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.files.abandoned import delete_added
from tidegate.upsert.files.rewrite import write_ordered
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.keys.probe_file import Hits
from tidegate.upsert.target import StagePhase

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Replacement:
    """dying: places of silver's rows that go. rows: new rows in the phase's layout; each table gets files of its own.
    joined: small files that are removed, since `rows` has their live rows.
    """

    dying: Sequence[Hits]
    rows: Sequence[pa.Table]
    joined: Sequence[LiveFile] = ()


def write_phase(
    app: Application,
    work: TableToWrite,
    upto_ts: int,
    read: Callable[[StagePhase], _T],
    replacement: Callable[[_T, StagePhase, TableState], Replacement],
    *,
    bytes_max: int,
) -> None:
    """Write a phase if anything is staged for it. read: reads its changes; called once. bytes_max: of these in memory.
    Raises the errors of write_upserts' outcomes; GivenBack for larger changes.
    """
    target = work.plan.target
    assert target is not None, "chosen by choose_writers"
    phase = next((phase for phase in target.phases if phase.upto_ts == upto_ts), None)
    touched = [file for file in work.staged.files if phase is not None and _touches(file, phase)]
    if phase is None or not touched:
        return
    app_id = tables.app_id(app.pipeline.pipeline, work.name)
    changes: _T | None = None
    for attempt in range(1, COMMIT_ATTEMPTS_MAX + 1):
        snapshot = app.lake.log(target.path).state()
        applied = snapshot.transaction(app_id)
        if applied >= phase.upto_ts:
            return
        silver_guard.check(app, work.name, snapshot)
        work.check_follows(phase.after_ts, applied)
        check_fit(snapshot, phase.layout)
        if changes is None:
            _check_memory(touched, bytes_max)
            changes = read(phase)
        try:
            _commit(app, target.path, (app_id, phase), replacement(changes, phase, snapshot), snapshot)
        except CommitConflict:
            if attempt == COMMIT_ATTEMPTS_MAX:
                raise
            time.sleep(CONFLICT_WAIT * attempt * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
        else:
            return
    raise AssertionError("the loop returns or raises")


def _check_memory(files: Sequence[StagedFile], bytes_max: int) -> None:
    """The writer was chosen by bytes of binlog, of which nobody knew how many were this table's."""
    needed, rows = sum(file.bytes for file in files), sum(file.rows for file in files)
    if needed > bytes_max:
        why = f"its {rows:,} changes need {-(-needed >> 20)} MiB of the driver, more than {bytes_max >> 20}"
        raise GivenBack(why, window_only=True)


def _touches(file: StagedFile, phase: StagePhase) -> bool:
    return file.max_commit_ts > phase.after_ts and file.min_commit_ts <= phase.upto_ts


def _commit(
    app: Application, path: str, place: tuple[str, StagePhase], made: Replacement, snapshot: TableState
) -> None:
    app_id, phase = place
    with VectorWriter(app.lake, path, named=False) as vectors:
        actions = replaced(made.dying, vectors)
    actions.extend(Actions(removes=list(made.joined)))
    for table in made.rows:
        actions.extend(Actions(adds=list(write_ordered(app.lake, path, [table], phase.layout, named=False))))
    own_files = [add for add in actions.adds if "deletionVector" not in add]
    app.lake.settle_names(path, (unquote(add["path"]) for add in own_files))
    failpoint("apply_before_commit")
    try:
        app.lake.log(path).commit(snapshot, upserted(actions, (app_id, phase.upto_ts)))
    except CommitConflict:
        delete_added(app.lake, path, own_files)
        raise
    failpoint("apply_after_commit")


def staged_rows(
    lake: LakeFiles, staged: Sequence[StagedFile], phase: StagePhase, at_hand: KeyFilesAtHand | None = None
) -> Iterator[tuple[StagedFile, pa.Table]]:
    """A phase's changes in silver's columns, as laid_out gives them, with the file of each table. at_hand: has some of
    the files in memory.
    """
    for file in staged:
        if not _touches(file, phase):
            continue
        read = at_hand.changes(file.path) if at_hand is not None else None
        if read is None:
            with lake.open(file.path) as handle:
                read = pq.read_table(handle, use_threads=False).combine_chunks()
        for batch in read.to_batches():
            inside = within(batch, phase)
            yield file, laid_out(inside, phase.layout, Physical(file.source, file.database, file.table))
