"""Tables without a key, written by position: which occurrences of a row come, and which go.

In:  a phase's staged changes with their row hashes (decode_changes), few enough for the driver.
Out: one Delta commit, data and applied_ts together.

A row's key is (row hash, occurrence): equal rows are numbered from 1 without gaps. The phase's net count per hash says
how many come or go; silver says how many there are. Silver's rows with a changed hash are found by probing that one
column; those whose number is above the new count die, and what is missing up to it is written. silver_sql.net_rows is
the same in SQL. In both it is an error if the log deletes a row that silver doesn't have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_jobs.positional.phase import Replacement, staged_rows, write_phase
from spark_jobs.positional.probe import Probe, key_table, probe_all
from spark_jobs.window.application import Application
from spark_jobs.window.made import TableToWrite
from spark_jobs.window.window import StagedFile
from tidegate import limits, tables
from tidegate.delta.table.state import TableState
from tidegate.errors import LakeRefused
from tidegate.lake.files import LakeFiles
from tidegate.remedy import REFILL
from tidegate.upsert.keys.candidates import candidates
from tidegate.upsert.keys.file import Int64s
from tidegate.upsert.keys.probe_file import Hits
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
    path = tables.silver_path(work.entry.database, work.entry.table)

    def replacement(net: _Net, _: StagePhase, snapshot: TableState) -> Replacement:
        return _replacement(app, path, net, snapshot)

    def read(phase: StagePhase) -> _Net:
        return _net(app.lake, work.staged.files, phase)

    write_phase(app, work, upto_ts, read, replacement, bytes_max=limits.HASHED_ROWS_DECODED_BYTES_MAX)


def _replacement(app: Application, path: str, net: _Net, snapshot: TableState) -> Replacement:
    held = _held(app, path, net, snapshot)
    before = np.zeros(len(net.net), np.int64)
    np.maximum.at(before, held.code, held.occurrence)
    after = before + net.net
    if (after < 0).any():
        raise LakeRefused("the binlog deletes a row that silver does not hold", where=path, remedy=REFILL)
    return Replacement(_dying(held, after), [_new_rows(net, before, after)])


def _net(lake: LakeFiles, staged: Sequence[StagedFile], phase: StagePhase) -> _Net:
    """The net change per row hash of the phase's staged changes."""
    changes = pa.concat_tables([rows for _, rows in staged_rows(lake, staged, phase)]).combine_chunks()
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
    table = key_table(pa.table({tables.ROW_HASH: net.hashes}), app.key_seed)
    probe = Probe(path, table, candidates(snapshot.files, table))
    probe_all(app, [probe])
    if probe.error is not None:
        raise probe.error
    parts: list[tuple[Any, ...]] = [(np.zeros(0, np.int64),) * 4]
    for index, hits in enumerate(probe.hits):
        names = [tables.ROW_HASH, tables.OCCURRENCE]
        with app.lake.open(f"{path}/{hits.file.local_path}") as handle:
            rows = pq.read_table(handle, columns=names, use_threads=False).take(pa.array(hits.fresh))
        if rows.column(tables.OCCURRENCE).null_count:  # another writer's work
            what = f"silver has rows without {tables.OCCURRENCE} that the binlog changes"
            raise LakeRefused(what, where=path, remedy=REFILL)
        code = pc.index_in(rows.column(tables.ROW_HASH), net.hashes).to_numpy().astype(np.int64)
        occurrence = rows.column(tables.OCCURRENCE).to_numpy()
        parts.append((np.full(len(code), index, np.int64), hits.fresh, code, occurrence))
    return _Held(probe.hits, *(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _dying(held: _Held, after: Int64s) -> list[Hits]:
    """Places of the rows whose occurrence is above the new count of their hash."""
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
