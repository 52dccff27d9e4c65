"""Decoded changes are netted, and staged in the layout of each table's writer.

In:  changes of tables under their versions, in the order of the log; a DecodePlan.
Out: files of changes for MERGE, rows in silver's folder with key files for the positional writer (staging.py).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_jobs.positional.staging import UpsertStage, own_trouble
from spark_jobs.window.density import ImagesBelow
from spark_jobs.window.shape.decode_plan import DecodePlan
from spark_jobs.window.shape.filtered import filtered
from spark_jobs.window.window import StagedFile
from tidegate import tables
from tidegate.computed.computed_values import computed
from tidegate.errors import Terminal
from tidegate.limits import STAGED_PIECE_BYTES
from tidegate.merge.kept import masked
from tidegate.merge.net_change import net_last_per_key
from tidegate.merge.past import NO_PAST, Past
from tidegate.segments.result import TableChanges
from tidegate.table_names import Physical
from tidegate.upsert.keys.at_hand import KeyFilesAtHand
from tidegate.upsert.row_hash import row_hashes
from tidegate.upsert.target import NotStaged, StagedUpsert

Name = tuple[str, str]
Staged = StagedFile | StagedUpsert | NotStaged
_SYSTEM: Final = (tables.OP, tables.COMMIT_TS, tables.SEQ, tables.ORDINAL)


@dataclass(frozen=True, slots=True)
class InDriver:
    """key_files: takes in memory, by path, what else goes to the staging folder: key files, and changes of tables with
    history. pool: for writing tables' rows.
    """

    key_files: KeyFilesAtHand
    pool: Executor | None = None


@dataclass(slots=True)
class _Waiting:
    """Changes of a table under one version. bytes: of the batches."""

    first: TableChanges
    batches: list[pa.RecordBatch] = field(default_factory=list)
    bytes: int = 0

    def takes(self, changes: TableChanges) -> bool:
        return self.first.version == changes.version and self.first.batch.schema.equals(changes.batch.schema)


class ChangesStage:
    """Decoded changes per table version, netted and written when they grow large.

    A backlog comes in thousands of small segments. Conditions, masks and computed columns take a
    millisecond or more, however few the rows are. Therefore a table's rows wait for others of its version.

    read_upto_ts: of added rows, as StagedFile's. below: what was added of tables below foreign
    keys, before it was netted. An upsert counts as the two images of an update.
    """

    def __init__(self, plan: DecodePlan, here: InDriver | None, bytes_max: int) -> None:
        self._plan = plan
        self._bytes_max = bytes_max
        kept, pool = (here.key_files, here.pool) if here else (None, None)
        self._kept = kept
        self._upserts = UpsertStage(plan.lake, plan.folder, plan.seed, kept, pool)
        self._waiting: dict[Physical, _Waiting] = {}
        self._held: dict[tuple[str, str, str, int], list[pa.RecordBatch]] = {}
        self._bytes = 0
        self.read_upto_ts = 0
        self.below = ImagesBelow()

    def add(self, source: str, changes: TableChanges) -> Iterator[Staged]:
        if changes.batch.num_rows == 0:
            return
        name = (changes.database, changes.table)
        if name in self._plan.below.get(source, ()):
            self.below += _images(changes.batch)
        table, size = Physical(source, *name), changes.batch.nbytes
        if (before := self._waiting.get(table)) is not None and not before.takes(changes):
            yield from self._taken(table)
        waiting = self._waiting.setdefault(table, _Waiting(changes))
        waiting.batches.append(changes.batch)
        waiting.bytes += size
        self._bytes += size
        if waiting.bytes >= STAGED_PIECE_BYTES:
            yield from self._taken(table)
        if self._bytes >= self._bytes_max:
            yield from self.flush()

    def _taken(self, table: Physical) -> Iterator[Staged]:
        """Bring a table's waiting rows into the form that silver takes, in the log's order. Where that fails, the table
        is named by itself: another one's rows may have ended the waiting.
        """
        waiting = self._waiting.pop(table)
        self._bytes -= waiting.bytes
        batches = waiting.batches
        try:
            with own_trouble(table.shown):
                if len(batches) > 1:
                    batches = pa.Table.from_batches(batches).combine_chunks().to_batches()
                for batch in batches:
                    self._shape(table, replace(waiting.first, batch=batch))
        except Terminal as own:
            yield NotStaged(self._plan.names[table.source][table.pair], type(own).__name__, own.line, own.needs)

    def _shape(self, table: Physical, changes: TableChanges) -> None:
        source, name = table.source, table.pair
        if self._key(source, name, changes.version):
            changes = replace(changes, batch=self._past(source, name).staged(changes.batch))
        version = (source, name, changes.version)
        if (condition := self._plan.rows.get(version)) is not None:
            keyed = bool(self._key(source, name, changes.version))
            changes = replace(changes, batch=filtered(condition, changes.batch, keyed=keyed))
        if out := self._plan.left_out.get(version):
            kept_batch = changes.batch.drop_columns(list(out.intersection(changes.batch.schema.names)))
            changes = replace(changes, batch=kept_batch)
        if masks := self._plan.masks.get(version):
            changes = replace(changes, batch=masked(masks, changes.batch))
        if columns := self._plan.computed.get(version):
            changes = replace(changes, batch=computed(columns, changes.batch))
        target = self._plan.targets.get(source, {}).get(name)
        if target is not None:
            self._upserts.add(target, source, changes)
        else:
            owner = (source, changes.database, changes.table, changes.version)
            self._held.setdefault(owner, []).append(changes.batch)
        self._bytes += changes.batch.nbytes

    def flush(self) -> Iterator[Staged]:
        for physical in list(self._waiting):
            yield from self._taken(physical)
        for (source, database, table, version), batches in self._held.items():
            merged = pa.Table.from_batches(batches).combine_chunks()
            key = self._key(source, (database, table), version)
            if self._is_versioned(source, (database, table)):
                # Its writer finds out which of several changes of a row in a transaction is the last one.
                yield self._write((source, database, table, version), merged)
                continue
            for batch in merged.to_batches():
                if not key:
                    net = self._hashed(batch, Physical(source, database, table))
                else:
                    net = net_last_per_key(batch, self._past(source, (database, table)).net_key(key))
                yield self._write((source, database, table, version), pa.Table.from_batches([net]))
        yield from self._upserts.flush()
        self._held.clear()
        self._bytes = 0

    def _key(self, source: str, name: Name, version: int) -> tuple[str, ...]:
        return next(v.silver_key for v in self._plan.versions[source][name] if v.version == version)

    def _past(self, source: str, name: Name) -> Past:
        return self._plan.pasts.get(source, {}).get(name, NO_PAST)

    def _hashed(self, batch: pa.RecordBatch, physical: Physical) -> pa.RecordBatch:
        """Changes of a table without a key, each with the hash of its row, which includes the shard of a
        routed table.
        """
        columns = {name: batch.column(name) for name in batch.schema.names if name not in _SYSTEM}
        if physical.pair in self._plan.routed.get(physical.source, ()):
            shard = zip(tables.SHARDS, physical, strict=True)
            columns |= {name: pa.repeat(pa.scalar(text, pa.string()), batch.num_rows) for name, text in shard}
        return batch.append_column(tables.ROW_HASH, row_hashes(columns))

    def _is_versioned(self, source: str, name: tuple[str, str]) -> bool:
        return name in self._plan.versioned.get(source, ())

    def _write(self, owner: tuple[str, str, str, int], changes: pa.Table) -> StagedFile:
        path = f"{self._plan.folder}/{uuid.uuid4().hex}.parquet"
        stamps = pc.min_max(changes.column(tables.COMMIT_TS))
        source, database, table, _ = owner
        kept = self._kept if self._is_versioned(source, (database, table)) else None
        if kept is None or not kept.keep_changes(path, changes):
            self._plan.lake.make_folder(self._plan.folder)
            pq.write_table(
                changes,
                self._plan.lake.local(path),
                filesystem=self._plan.lake.filesystem,
                compression="snappy",
                use_dictionary=False,
            )
        low, high = stamps["min"].as_py(), stamps["max"].as_py()
        return StagedFile(*owner, path, changes.num_rows, changes.nbytes, low, high, self.read_upto_ts)


def _images(batch: pa.RecordBatch) -> ImagesBelow:
    upserts = pc.sum(pc.equal(batch.column(tables.OP), tables.OP_UPSERT)).as_py() or 0
    count = batch.num_rows + upserts
    return ImagesBelow(count, batch.nbytes * count // batch.num_rows)
