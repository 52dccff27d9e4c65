"""Stage decoded changes for the positional writer: rows in silver's folder, and narrow key files in the staging folder.

In:  decoded changes of tables with a key, per physical table, in log order per source.
Out: StagedUpserts: per table, source and phase Parquet files in silver's own layout, ready to be adopted by the commit,
     and a key file with one record per change that is the last of its key here (tidegate/upsert/stage.py). Where the
     same process commits, few rows stay in the key file (tidegate/upsert/few_rows.py).

A worker (or the driver, for a small window) holds what it decoded, lays it out with silver's columns, keeps the last
change per key, and writes. No file straddles two phases, so a phase never has to filter what was staged for another.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa

from tidegate import tables
from tidegate.binlog.rows.decode import TableChanges
from tidegate.delta.stores.store import REFUSED
from tidegate.errors import LakeRefused, Terminal, Transient, unexpected
from tidegate.lake.files import LakeFiles
from tidegate.merge.net_change import last_per_hash
from tidegate.table_names import Physical
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.keys.file import write_keys
from tidegate.upsert.keys.hash import SEED, Seed, key_hashes
from tidegate.upsert.stage import Target, in_files, staged
from tidegate.upsert.target import NotStaged, StagedUpsert, StagePhase, UpsertTarget


@dataclass(slots=True)
class UpsertStage:
    """The rows that a task decoded for the positional writer, until flush() writes it.

    seed: of the window's key hashes. kept: where key files go when the same process resolves them, as many as it may
    hold; None: to the staging folder. pool: in which tables are written side by side, as each waits for the disk twice.
    """

    lake: LakeFiles
    folder: str
    seed: Seed = SEED
    kept: KeyFilesAtHand | None = None
    pool: Executor | None = None
    _held: dict[tuple[str, str], list[TableChanges]] = field(default_factory=dict)  # by table's name and source
    _targets: dict[str, UpsertTarget] = field(default_factory=dict)

    def add(self, target: UpsertTarget, source: str, changes: TableChanges) -> None:
        self._targets[target.name] = target
        self._held.setdefault((target.name, source), []).append(changes)

    def flush(self) -> Iterator[StagedUpsert | NotStaged]:
        """Write what is held, table by table. A table whose rows can't be laid out doesn't stop the others."""
        held, self._held = self._held, {}
        side_by_side = map if self.pool is None or len(held) == 1 else self.pool.map
        for outcomes in side_by_side(self._table, held.keys(), held.values()):
            yield from outcomes

    def _table(self, of: tuple[str, str], parts: Sequence[TableChanges]) -> list[StagedUpsert | NotStaged]:
        name, source = of
        try:
            with own_trouble(self._targets[name].path):
                return list(self._stage(self._targets[name], source, parts))
        except Terminal as own:
            return [NotStaged(name, type(own).__name__, own.line, own.needs)]

    def _stage(self, target: UpsertTarget, source: str, parts: Sequence[TableChanges]) -> Iterator[StagedUpsert]:
        for phase in target.phases:
            laid = [
                laid_out(inside, phase.layout, Physical(source, changes.database, changes.table))
                for changes in parts
                if (inside := within(changes.batch, phase)).num_rows
            ]
            if laid:
                yield self._write(target, phase, source, pa.concat_tables(laid))

    def _write(self, target: UpsertTarget, phase: StagePhase, source: str, changes: pa.Table) -> StagedUpsert:
        last = last_per_hash(key_hashes([changes.column(name) for name in phase.layout.key], self.seed))
        kept = last if len(last) < changes.num_rows else None
        to = Target(self.lake, target.path, phase.layout, self.seed)
        keys = staged(to, changes, source, kept, few_in_memory=self.kept is not None)
        path = f"{self.folder}/{uuid.uuid4().hex}.keys"
        if self.kept is None or not self.kept.keep(path, keys):
            keys = in_files(to, keys)
            self.lake.make_folder(self.folder)
            write_keys(self.lake, path, keys)
        files = tuple(f"{target.path}/{unquote(add['path'])}" for add in keys.adds)
        return StagedUpsert(target.name, phase.upto_ts, path, keys.changes, files)


@contextmanager
def own_trouble(path: str) -> Iterator[None]:
    """Around the making of files for one table. An error that every try would meet is raised as a Terminal. path: of
    the table.
    """
    try:
        yield
    except (Terminal, Transient, MemoryError):
        raise
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        remedy = "check its owner and rights, then `tidegate release`"
        raise LakeRefused(f"no file can be made: {error.strerror or error}", where=path, remedy=remedy) from error
    except Exception as error:
        raise unexpected(error) from error


def laid_out(batch: pa.RecordBatch, layout: FileLayout, physical: Physical) -> pa.Table:
    """Silver's columns, whatever the physical table has, then op and what orders changes."""
    rows = batch.num_rows
    shard = dict(zip(tables.SHARDS, physical, strict=True))
    names = set(batch.schema.names)
    columns = {}
    for column in layout.schema:
        if column.name in names:
            cells = batch.column(column.name)  # a shard's type may be narrower than the layout's; see merge/widening.py
            columns[column.name] = cells if cells.type == column.type else cells.cast(column.type)
        elif column.name in shard:
            columns[column.name] = pa.repeat(pa.scalar(shard[column.name], pa.string()), rows)
        else:
            columns[column.name] = pa.nulls(rows, column.type)
    return pa.table(columns | {name: batch.column(name) for name in (tables.OP, tables.SEQ, tables.ORDINAL)})


def within(batch: pa.RecordBatch, phase: StagePhase) -> pa.RecordBatch:
    """The phase's share of a batch; nearly always all of it or nothing."""
    stamps = batch.column(tables.COMMIT_TS).to_numpy()
    inside = (stamps > phase.after_ts) & (stamps <= phase.upto_ts)
    if inside.all():
        return batch
    return batch.filter(pa.array(inside)) if inside.any() else batch.slice(0, 0)
