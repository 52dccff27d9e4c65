"""Write staged upserts into silver by position, many tables at once: resolve, probe, commit.

In:  Upserts: a table's rows phase with what decode staged for it (spark_jobs/positional/staging.py).
Out: one Delta commit each, data and applied_ts together: the version it made, or the error that stopped it.

Resolve finds the last change per key, probe finds the live rows with these keys. Both read narrow columns only. Few
keys are probed in the driver, many in ONE Spark job over all tables (spark_jobs/positional/probe.py). A commit is based
on exactly the snapshot that was probed. If another writer changed the table meanwhile, its new state is probed again. A
phase that silver has recorded already isn't written twice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from spark_jobs.positional.probe import Probe, probe_all
from spark_jobs.positional.staging import own_trouble
from spark_jobs.window.application import Application
from spark_jobs.window.made import GivenBack, TableToWrite
from spark_jobs.window.standing import silver_guard
from tidegate import limits, tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import moved
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict, LakeRefused
from tidegate.failpoint import failpoint
from tidegate.upsert import few_rows
from tidegate.upsert.actions import Actions, adopted, replaced, rows_of
from tidegate.upsert.cost import KEY_RECORD_BYTES
from tidegate.upsert.deletions.deletion_vector import VectorWriter
from tidegate.upsert.few_rows import Together, choose
from tidegate.upsert.files.abandoned import delete_added
from tidegate.upsert.files.data_file import write
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.files.rewrite import live_rows
from tidegate.upsert.fitness import why_not
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.keys.candidates import candidates
from tidegate.upsert.keys.file import read_keys
from tidegate.upsert.keys.resolve import NewFile, Resolved, resolve
from tidegate.upsert.target import StagedUpsert, StagePhase, misfit

OPERATION = "UPSERT"
# Seconds to wait after a conflict, times the number of the try. Jitter keeps two writers from meeting again.
CONFLICT_WAIT = 0.2

Outcome = int | BaseException


@dataclass(slots=True)
class Upsert:
    """One table's rows phase on its way into silver.

    path: of the table, relative to the lake. files: the new files of the commit. adopted: a commit may name them.
    """

    work: TableToWrite
    phase: StagePhase
    path: str
    app_id: str
    staged: list[StagedUpsert]
    snapshot: TableState | None = None
    resolved: Resolved | None = None
    probe: Probe | None = None
    files: list[NewFile] | None = None
    adopted: bool = False

    @property
    def changes(self) -> int:
        """Number of key records. A change that isn't the last one of its key in its task has none."""
        return sum(staged.changes for staged in self.staged)


def upsert_of(app: Application, work: TableToWrite, upto_ts: int) -> Upsert | None:
    """The upsert of a table's phase; None when nothing was staged for it."""
    staged = [upsert for upsert in work.staged.upserts if upsert.upto_ts == upto_ts]
    if not staged:
        return None
    target = work.plan.target
    assert target is not None, "staged upserts have a target"
    phase = next(phase for phase in target.phases if phase.upto_ts == upto_ts)
    return Upsert(work, phase, target.path, tables.app_id(app.pipeline.pipeline, work.name), staged)


def write_upserts(app: Application, keys: KeyFilesAtHand, upserts: Sequence[Upsert]) -> dict[str, Outcome]:
    """Write each of them. The result is by the table's name; a table that fails doesn't stop the others."""
    outcome: dict[str, Outcome] = {}
    if not upserts:
        return outcome
    waiting = _within_memory(upserts, outcome)
    rewriting = BoundedSemaphore(app.pipeline.apply.parallel_tables)
    for attempt in range(1, limits.COMMIT_ATTEMPTS_MAX + 1):
        prepared = _each(app, lambda upsert: _prepare(app, keys, upsert), waiting)
        outcome |= {name: failure for name, failure in prepared.items() if failure is not None}
        ready = [upsert for upsert in waiting if prepared[upsert.work.name] is None]
        probe_all(app, [upsert.probe for upsert in ready if upsert.probe is not None])
        outcome |= _each(app, lambda upsert: _commit(app, upsert, rewriting), ready)
        waiting = [upsert for upsert in ready if isinstance(outcome[upsert.work.name], CommitConflict)]
        if not waiting:
            break
        time.sleep(CONFLICT_WAIT * attempt * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
    for upsert in upserts:
        _settle(upsert, outcome[upsert.work.name])
    return outcome


def _within_memory(upserts: Sequence[Upsert], outcome: dict[str, Outcome]) -> list[Upsert]:
    """The upserts whose keys fit into the driver's memory together, small ones first. The others
    are given back.

    Writers were chosen by bytes of binlog. The number of changes is known only now.
    """
    kept, room = [], limits.UPSERT_KEYS_BYTES_MAX
    for upsert in sorted(upserts, key=lambda upsert: upsert.changes):
        needed = upsert.changes * KEY_RECORD_BYTES
        if needed <= room:
            room -= needed
            kept.append(upsert)
            continue
        why = f"keys of {upsert.changes:,} changes need {-(-needed >> 20)} MiB of the driver"
        outcome[upsert.work.name] = GivenBack(why, window_only=True)
    return kept


def _each(app: Application, step: Callable[[Upsert], int | None], among: Sequence[Upsert]) -> dict[str, Any]:
    """Run a step for each, side by side: what it gave, or its exception."""
    running = {upsert.work.name: app.pool.submit(step, upsert) for upsert in among}
    return {name: future.exception() or future.result() for name, future in running.items()}


def _prepare(app: Application, keys: KeyFilesAtHand, upsert: Upsert) -> int | None:
    """Read silver's newest state, and find the files to probe. Returns silver's version if it has the phase already,
    else None.
    """
    upsert.snapshot = snapshot = app.lake.log(upsert.path).state()
    applied = snapshot.transaction(upsert.app_id)
    if applied >= upsert.phase.upto_ts:
        return snapshot.version
    silver_guard.check(app, upsert.work.name, snapshot)
    upsert.work.check_follows(upsert.phase.after_ts, applied)
    check_fit(snapshot, upsert.phase.layout)
    if upsert.resolved is None:
        files = [keys.take(staged.keys) or read_keys(app.lake, staged.keys) for staged in upsert.staged]
        upsert.resolved = resolve(files)
    upsert.probe = Probe(upsert.path, upsert.resolved.table, candidates(snapshot.files, upsert.resolved.table))
    return None


def check_fit(snapshot: TableState, layout: FileLayout) -> None:
    """Raise GivenBack unless silver can take rows of this layout by position."""
    reason = why_not(snapshot) or misfit(snapshot, layout)
    if reason is not None:
        raise GivenBack(reason)


def _commit(app: Application, upsert: Upsert, rewriting: BoundedSemaphore) -> int:
    """Commit the whole phase on the snapshot that was probed. Returns the new version.

    rewriting: held by those that hold rows in memory.
    """
    snapshot, resolved, probe = upsert.snapshot, upsert.resolved, upsert.probe
    assert snapshot is not None, "prepared"
    assert resolved is not None, "prepared"
    assert probe is not None, "prepared"
    with _of_live_files(app, upsert.path, snapshot):
        if probe.error is not None:
            raise probe.error
        actions, own = _made(app, upsert, resolved, _together(upsert, resolved, snapshot, probe), rewriting)
    # Files and their names must be on disk before the commit that names them. The files were synced when they were
    # written, here or by decode. Their folders are synced now, once for all of them. So after a power cut a commit has
    # all its files.
    assert upsert.files is not None, "made"
    new = (*(file.add for file in upsert.files), *own)
    app.lake.settle_names(upsert.path, (unquote(add["path"]) for add in new))
    failpoint("apply_before_commit")
    upsert.adopted = True  # from here on a commit may name them
    try:
        done = app.lake.log(upsert.path).commit(snapshot, upserted(actions, (upsert.app_id, upsert.phase.upto_ts)))
    except CommitConflict:
        upsert.adopted = False
        delete_added(app.lake, upsert.path, own)
        raise
    failpoint("apply_after_commit")
    return done.version


def _made(
    app: Application, upsert: Upsert, resolved: Resolved, together: Together, rewriting: BoundedSemaphore
) -> tuple[Actions, Sequence[Mapping[str, Any]]]:
    """The actions of the phase, and those of files that were written for this commit alone."""
    layout = upsert.phase.layout
    with own_trouble(upsert.path):
        rows, together = few_rows.read(app.lake, upsert.path, resolved.few, together, layout)
        with VectorWriter(app.lake, upsert.path, named=False) as vectors:
            actions = replaced(together.others, vectors)
            actions.extend(adopted(_new_files(app, upsert, resolved, rewriting), vectors))
        own = few_rows.write(app.lake, upsert.path, rows, layout)
    actions.extend(Actions(together.files, list(own), together.rows_removed, sum(map(len, resolved.few))))
    return actions, own


@contextmanager
def _of_live_files(app: Application, path: str, snapshot: TableState) -> Iterator[None]:
    """Around reading a snapshot's files. An unreadable file is no fault of the table if it isn't live any more: then it
    is a conflict.
    """
    try:
        yield
    except LakeRefused as error:
        if app.lake.log(path).state().version == snapshot.version:
            raise
        raise CommitConflict("other files are live by now", where=path) from error


def upserted(actions: Actions, transaction: tuple[str, int]) -> Change:
    """The one commit of a phase: its rows and applied_ts."""
    actions_of_files = moved(actions.removes, actions.adds, data_change=True)
    return Change(actions_of_files, OPERATION, dict([transaction]))


def _together(upsert: Upsert, resolved: Resolved, snapshot: TableState, probe: Probe) -> Together:
    """The small files to be written together with the phase's few rows. None if the phase has files of its own anyway.

    A phase with only new rows must only add a file: a Delta stream that reads silver fails at a commit that removes
    rows.
    """
    small = bool(resolved.few) or any(hit.file.size <= few_rows.SMALL_FILE_BYTES for hit in probe.hits)
    if resolved.files or upsert.phase.layout.partition_columns or not (small and probe.hits):
        return Together((), tuple(probe.hits))
    return choose(resolved.few, snapshot.files, probe.hits)


def _new_files(app: Application, upsert: Upsert, resolved: Resolved, rewriting: BoundedSemaphore) -> list[NewFile]:
    """The staged files. A file whose rows are mostly dead is written again without them, once."""
    if upsert.files is None:
        files = list[NewFile]()  # the upsert's only when it is whole: another try takes it as it is
        for file in resolved.files:
            live = rows_of(file.add) - len(file.losers)
            if live and len(file.losers) > live:
                with rewriting:
                    pieces = live_rows(app.lake, upsert.path, LiveFile(file.add), upsert.phase.layout, file.losers)
                    adds = write(app.lake, upsert.path, pa.concat_tables(pieces), upsert.phase.layout)
                files += [NewFile(add, np.zeros(0, np.int64)) for add in adds]
            else:
                files.append(file)
        upsert.files = files
    return upsert.files


def _settle(upsert: Upsert, outcome: Outcome) -> None:
    """Take the files that a commit may name out of the lists. Files that stay listed are deleted."""
    if upsert.adopted or not isinstance(outcome, int | CommitConflict | GivenBack):
        staged = upsert.work.staged.upserts  # else certainly in no commit; after any other error only VACUUM may tell
        staged[:] = [staged_file for staged_file in staged if staged_file.upto_ts != upsert.phase.upto_ts]
