"""Tables without a key by position: which occurrences of a row come, and which go.

In:  a phase's staged changes with their row hashes (decode_changes), few enough for the driver.
Out: one Delta commit, data and applied_ts together.

A row's key is (row hash, occurrence): equal rows are numbered from 1 without gaps. The phase's net count per hash says
how many come or go; silver says how many there are. Silver's rows with a changed hash are found by probing that one
column; those whose number is above the new count die, and what is missing up to it is written. It is what
silver_sql.net_rows says in SQL, and as there a row that the log deletes and silver doesn't hold is an error.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_jobs.positional.probe import Probe, probe_all
from spark_jobs.positional.staging import laid_out, within
from spark_jobs.positional.writer import CONFLICT_WAIT, check_fit, upserted
from spark_jobs.window.abandoned import delete_files
from spark_jobs.window.application import Application
from spark_jobs.window.made import TableToWrite
from spark_jobs.window.window import StagedFile
from tidegate import tables
from tidegate.delta.state import TableState
from tidegate.errors import CommitConflict, LakeRefused
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.limits import COMMIT_ATTEMPTS_MAX
from tidegate.remedy import REFILL
from tidegate.table_names import Physical
from tidegate.upsert.actions import Actions, replaced
from tidegate.upsert.candidates import candidates
from tidegate.upsert.data_file import order, write
from tidegate.upsert.deletion_vector import VectorWriter
from tidegate.upsert.keys.file import DELETED, Int64s, KeyFile
from tidegate.upsert.keys.hash import Seed, key_hashes, leads
from tidegate.upsert.keys.table import KeyTable
from tidegate.upsert.probe_file import Hits
from tidegate.upsert.resolve import resolve
from tidegate.upsert.target import StagePhase


@dataclass(frozen=True, slots=True)
class _Net:
    """n row hashes whose count changes. rows: one row of each, silver's columns. net, latest: int64[n]."""

    hashes: pa.Array
    rows: pa.Table
    net: Int64s
    latest: Int64s


@dataclass(frozen=True, slots=True)
class _Held:
    """Live rows of silver with a changed hash. code: index into _Net. file: index into hits. The place of each."""

    hits: list[Hits]
    file: npt.NDArray[np.int64]
    position: Int64s
    code: npt.NDArray[np.int64]
    occurrence: Int64s


def write_counted(app: Application, work: TableToWrite, upto_ts: int) -> None:
    """Write a phase of a table without a key, if anything is staged for it. Raises as write_upserts' outcomes."""
    target = work.plan.target
    assert target is not None, "chosen by choose_writers"
    phase = next((phase for phase in target.phases if phase.upto_ts == upto_ts), None)
    if phase is not None and any(_touches(file, phase) for file in work.staged.files):
        _write(app, work, target.path, phase)


def _touches(file: StagedFile, phase: StagePhase) -> bool:
    return file.max_commit_ts > phase.after_ts and file.min_commit_ts <= phase.upto_ts


def _write(app: Application, work: TableToWrite, path: str, phase: StagePhase) -> None:
    app_id = tables.app_id(app.pipeline.pipeline, work.name)
    net: _Net | None = None
    for attempt in range(1, COMMIT_ATTEMPTS_MAX + 1):
        snapshot = app.lake.log(path).state()
        applied = snapshot.transaction(app_id)
        if applied >= phase.upto_ts:
            return
        work.entry.check_follows(phase.after_ts, applied)
        check_fit(snapshot, phase.layout)
        net = net or _net(app.lake, work.staged.files, phase)
        try:
            _commit(app, path, (app_id, phase), net, snapshot)
        except CommitConflict:
            if attempt == COMMIT_ATTEMPTS_MAX:
                raise
            time.sleep(CONFLICT_WAIT * attempt * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
        else:
            return
    raise AssertionError("the loop returns or raises")


def _commit(app: Application, path: str, place: tuple[str, StagePhase], net: _Net, snapshot: TableState) -> None:
    app_id, phase = place
    held = _held(app, path, net, snapshot)
    before = np.zeros(len(net.net), np.int64)
    np.maximum.at(before, held.code, held.occurrence)
    after = before + net.net
    if (after < 0).any():
        raise LakeRefused("the binlog deletes a row that silver does not hold", where=path, remedy=REFILL)
    rows = _new_rows(net, before, after)
    with VectorWriter(app.lake, path) as vectors:
        actions = replaced(_dying(held, after), vectors)
    indices = order(rows, phase.layout)
    rows = rows if indices is None else rows.take(pa.array(indices))
    adds = write(app.lake, path, rows, phase.layout)
    actions.extend(Actions(adds=list(adds)))
    failpoint("apply_before_commit")
    try:
        app.lake.log(path).commit(snapshot, upserted(actions, (app_id, phase.upto_ts)))
    except CommitConflict:
        delete_files(app.lake, (f"{path}/{unquote(add['path'])}" for add in adds))
        raise
    failpoint("apply_after_commit")


def _net(lake: LakeFiles, staged: Sequence[StagedFile], phase: StagePhase) -> _Net:
    """The net change per row hash of the phase's staged changes."""
    parts = []
    for file in staged:
        if not _touches(file, phase):
            continue
        with lake.open(file.path) as handle:
            read = pq.read_table(handle, use_threads=False).combine_chunks()
        for batch in read.to_batches():
            inside = within(batch, phase)
            parts.append(laid_out(inside, phase.layout, Physical(file.source, file.database, file.table)))
    changes = pa.concat_tables(parts).combine_chunks()
    coded = changes.column(tables.ROW_HASH).combine_chunks().dictionary_encode()
    codes, count = coded.indices.to_numpy(), len(coded.dictionary)
    signs = np.where(changes.column(tables.OP).to_numpy() == tables.OP_DELETE, -1, 1)
    net = np.zeros(count, np.int64)
    np.add.at(net, codes, signs)
    latest, example = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.maximum.at(latest, codes, changes.column(tables.COMMIT_TS).to_numpy())
    example[codes] = np.arange(len(codes))
    changed = np.flatnonzero(net)
    rows = changes.select(phase.layout.schema.names).take(pa.array(example[changed]))
    return _Net(coded.dictionary.take(pa.array(changed)), rows, net[changed], latest[changed])


def _held(app: Application, path: str, net: _Net, snapshot: TableState) -> _Held:
    """Silver's live rows with a changed hash."""
    table = _key_table(net.hashes, app.key_seed)
    probe = Probe(path, table, candidates(snapshot.files, table))
    probe_all(app, [probe])
    if probe.error is not None:
        raise probe.error
    parts: list[tuple[Any, ...]] = [(np.zeros(0, np.int64),) * 4]
    for index, hits in enumerate(probe.hits):
        names = [tables.ROW_HASH, tables.OCCURRENCE]
        with app.lake.open(f"{path}/{hits.file.local_path}") as handle:
            rows = pq.read_table(handle, columns=names, use_threads=False).take(pa.array(hits.fresh))
        code = pc.index_in(rows.column(tables.ROW_HASH), net.hashes).to_numpy().astype(np.int64)
        occurrence = rows.column(tables.OCCURRENCE).to_numpy()
        parts.append((np.full(len(code), index, np.int64), hits.fresh, code, occurrence))
    return _Held(probe.hits, *(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _key_table(hashes: pa.Array, seed: Seed) -> KeyTable:
    count = len(hashes)
    zeros = np.zeros(count, np.int64)
    keys = KeyFile(
        source="",
        key_schema=pa.schema([(tables.ROW_HASH, pa.string())]),
        seed=seed,
        hashes=key_hashes([hashes], seed),
        commit_ts=zeros,
        seq=zeros,
        ordinal=zeros,
        file=np.zeros(count, np.int32),
        row=np.full(count, DELETED, np.int64),
        leads=leads(hashes).reshape(1, -1),
        adds=(),
    )
    return resolve([keys]).table


def _dying(held: _Held, after: Int64s) -> list[Hits]:
    """Rows whose number is above the new count of their hash."""
    gone = held.occurrence > after[held.code]
    return [
        replace(hits, fresh=np.sort(held.position[gone & (held.file == index)])) for index, hits in enumerate(held.hits)
    ]


def _new_rows(net: _Net, before: Int64s, after: Int64s) -> pa.Table:
    """Occurrences before + 1 to after of each row."""
    more = np.maximum(after - before, 0)
    which = np.repeat(np.arange(len(more)), more)
    starts = np.cumsum(more) - more
    number = np.arange(len(which)) - starts[which] + before[which] + 1
    rows = net.rows.take(pa.array(which))
    for name, values in ((tables.OCCURRENCE, number), (tables.COMMIT_TS, net.latest[which])):
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(values, pa.int64()))
    return rows
