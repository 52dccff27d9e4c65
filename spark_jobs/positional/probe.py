"""Find the live rows of silver that have a key of the window: in the driver, or, for much work on a cluster, in ONE
Spark job over all tables.

In:  Probes: a table's candidate files and the table of keys to look for.
Out: per file the positions of live rows whose key is in the table: Probe.hits.

Only key columns are read, and none of a file whose index the driver has. In a job a task takes files of about the same
number of rows, of whichever tables; tables of keys are saved to the staging folder once, and every task maps them from
there.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spark_jobs.window.application import Application
from tidegate.delta.table.live_file import LiveFile
from tidegate.errors import TidegateError, unexpected
from tidegate.lake.files import LakeFiles
from tidegate.limits import PROBE_DRIVER_ROWS_MAX, PROBE_TASK_ROWS
from tidegate.upsert.deletions import roaring
from tidegate.upsert.keys.file import DELETED, KeyFile
from tidegate.upsert.keys.hash import Seed, key_hashes, leads
from tidegate.upsert.keys.probe_file import Hits, probe_file
from tidegate.upsert.keys.probe_table import KeyTable
from tidegate.upsert.keys.resolve import resolve

# Assumed rows per byte of a file without statistics.
_ROW_BYTES = 32
_OUT = "number int, found binary"


@dataclass(slots=True)
class Probe:
    """path: of the table, relative to the lake. hits: one for each file with such a row, in no order.

    error: why a file could not be read; it concerns this table only.
    """

    path: str
    table: KeyTable
    files: Sequence[LiveFile]
    hits: list[Hits] = field(default_factory=list)
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """Files of one table that one task probes. keys: path of the saved KeyTable. numbers: of the files in the job."""

    path: str
    keys: str
    numbers: tuple[int, ...]
    files: tuple[LiveFile, ...]


@dataclass(frozen=True, slots=True)
class _Packed:
    """Hits on their way to the driver: bitmaps, at most 8 KiB for 65,536 rows."""

    fresh: bytes
    dead: bytes
    rows: int

    def hits(self, file: LiveFile) -> Hits:
        return Hits(file, roaring.decode(self.fresh), roaring.decode(self.dead), self.rows)


def key_table(keys: pa.Table, seed: Seed) -> KeyTable:
    """The table of distinct keys to look for. Raises UnsupportedValue for a NULL in a key."""
    count = keys.num_rows
    zeros = np.zeros(count, np.int64)
    file = KeyFile(
        source="",
        key_schema=keys.schema,
        seed=seed,
        hashes=key_hashes(keys.columns, seed),
        commit_ts=zeros,
        seq=zeros,
        ordinal=zeros,
        file=np.zeros(count, np.int32),
        row=np.full(count, DELETED, np.int64),
        leads=np.vstack([leads(column) for column in keys.columns]),
        adds=(),
    )
    return resolve([file]).table


def probe_all(app: Application, probes: Sequence[Probe]) -> None:
    """Fill each probe's hits, or its error."""
    near, far = _shared_out(app, probes)
    if far:
        _in_workers(app, far)
        for probe, part in zip(probes, far, strict=True):
            probe.error = part.error

    def probed(item: tuple[Probe, LiveFile]) -> None:
        probe, file = item
        try:
            hits = probe_file(app.lake, probe.path, file, probe.table, app.earlier)
        except Exception as error:  # noqa: BLE001 - it is this table's alone
            probe.error = error
            return
        if len(hits.fresh):
            probe.hits.append(hits)

    if len(near) < 2:
        for item in near:
            probed(item)
        return
    list(app.pool.map(probed, near))


def _shared_out(app: Application, probes: Sequence[Probe]) -> tuple[list[tuple[Probe, LiveFile]], list[Probe]]:
    """The files that the driver probes, and the rest of each probe for Spark's workers.

    Spark on one machine has the driver's cores, and reads the same bytes after starting a job and Python workers.
    """
    near = [(probe, file) for probe in probes for file in probe.files]
    # The check for a session comes last: a small window must not wait for Spark.
    if sum(_rows(file) for _, file in near) <= PROBE_DRIVER_ROWS_MAX or app.background.is_local():
        return near, []
    indexes = app.earlier.indexes
    unknown = [
        [file for file in probe.files if indexes.of(probe.path, file, probe.table, _rows(file)) is None]
        for probe in probes
    ]
    if sum(_rows(file) for files in unknown for file in files) <= PROBE_DRIVER_ROWS_MAX:
        return near, []
    for probe, files in zip(probes, unknown, strict=True):
        for file in files:
            indexes.looked_through(probe.path, file, probe.table, _rows(file))
    theirs = [{file.path for file in files} for files in unknown]
    near = [(probe, f) for probe, paths in zip(probes, theirs, strict=True) for f in probe.files if f.path not in paths]
    far = [Probe(probe.path, probe.table, files, probe.hits) for probe, files in zip(probes, unknown, strict=True)]
    return near, far


def _rows(file: LiveFile) -> int:
    return file.rows if file.rows is not None else file.size // _ROW_BYTES


def _in_workers(app: Application, probes: Sequence[Probe]) -> None:
    lake, places = app.lake, [(probe, at) for probe in probes for at in range(len(probe.files))]
    packed = [pickle.dumps(parts) for parts in _tasks(lake, probes)]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for part in pickle.loads(packed[number]):  # noqa: S301  (our own driver's bytes)
                    yield from _probed(lake, part)

    # One task per bundle: a range of n numbers in n partitions has one in each.
    for row in app.spark.range(0, len(packed), 1, len(packed)).mapInArrow(run, _OUT).collect():
        probe, at = places[row.number]
        hits = pickle.loads(row.found)  # noqa: S301
        if isinstance(hits, Exception):
            probe.error = hits
        else:
            probe.hits.append(hits.hits(probe.files[at]))


def _probed(lake: LakeFiles, part: _Part) -> Iterator[pa.RecordBatch]:
    table = KeyTable.open(lake, part.keys)
    for number, file in zip(part.numbers, part.files, strict=True):
        packed: _Packed | Exception
        try:
            hits = probe_file(lake, part.path, file, table)
        except (TidegateError, OSError) as error:
            packed = error
        except Exception as error:  # noqa: BLE001 - it is this table's alone
            packed = unexpected(error)
        else:
            if not len(hits.fresh):
                continue
            packed = _Packed(roaring.encode(hits.fresh), roaring.encode(hits.dead), hits.rows)
        columns = [pa.array([number], pa.int32()), pa.array([pickle.dumps(packed)], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, names=["number", "found"])


def _tasks(lake: LakeFiles, probes: Sequence[Probe]) -> list[list[_Part]]:
    """All files in order, in tasks of about PROBE_TASK_ROWS; a file is never split."""
    folder = f"staging/probe-{uuid.uuid4().hex[:12]}"
    lake.make_folder(folder)
    tasks: list[list[_Part]] = [[]]
    room, first = PROBE_TASK_ROWS, 0
    for index, probe in enumerate(probes):
        keys = f"{folder}/{index}.table"
        if probe.files:
            probe.table.save(lake, keys)
        run: list[int] = []
        for at, file in enumerate(probe.files):
            run.append(at)
            room -= _rows(file)
            if room <= 0 or at == len(probe.files) - 1:
                tasks[-1].append(
                    _Part(probe.path, keys, tuple(first + i for i in run), tuple(probe.files[i] for i in run))
                )
                run = []
            if room <= 0:
                tasks.append([])
                room = PROBE_TASK_ROWS
        first += len(probe.files)
    return [parts for parts in tasks if parts]
