"""Stage changes: write their rows as files in silver's own folder, ready for a commit, and a key file about them.

In:  decoded changes of one physical table with the system columns op, commit_ts, seq, ordinal
     (binlog/rows/decode.py).
Out: data files, a key file. Nothing is visible before a commit adopts it; run again, it writes
     others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate import tables
from tidegate.errors import UnsupportedValue
from tidegate.lake.files import LakeFiles
from tidegate.upsert.actions import rows_of
from tidegate.upsert.few_rows import are_few
from tidegate.upsert.files import data_file
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.keys.file import DELETED, LEADS_MAX, KeyFile, write_keys
from tidegate.upsert.keys.hash import SEED, Seed, key_hashes, leads

_ORDER = (tables.OP, tables.SEQ, tables.ORDINAL)  # not in silver


@dataclass(frozen=True, slots=True)
class Target:
    """Where changes are staged for. table_path: silver's folder, relative to the lake. seed: one per phase."""

    lake: LakeFiles
    table_path: str
    layout: FileLayout
    seed: Seed = SEED


def stage(target: Target, changes: pa.Table, source: str, key_path: str) -> KeyFile:
    """Write data files and the key file at key_path (relative to the lake); gives what the key file holds.

    changes: silver's columns, commit_ts among them, plus tables.OP, SEQ and ORDINAL; rows of deletes need only
    their key. Fewer changes per key cost less, but may be any.
    """
    keys = staged(target, changes, source)
    write_keys(target.lake, key_path, keys)
    return keys


def staged(
    target: Target,
    changes: pa.Table,
    source: str,
    last: npt.NDArray[np.int64] | None = None,
    *,
    few_in_memory: bool = False,
) -> KeyFile:
    """stage() without the key file: for what is resolved in the same process.

    The files' names aren't on disk yet: the commit sees to that. last: which of the changes count, ascending; None:
    all. few_in_memory: the commit writes few rows, together with those of small files. Wide columns are moved once,
    into their final order.
    """
    layout = target.layout
    wide = changes.drop_columns(list(_ORDER))
    narrow = {*layout.partition_columns, *layout.key, tables.COMMIT_TS, *_ORDER}
    changes = changes.select([name for name in changes.column_names if name in narrow])
    if last is not None:
        changes = changes.take(pa.array(last))
    if any(changes.column(name).null_count for name in layout.key):
        raise UnsupportedValue(
            "a key holds NULL", where=target.table_path, remedy="set apply.writer: merge in the pipeline file"
        )
    for name in set(layout.key) & set(layout.partition_columns):
        if pc.any(pc.equal(changes.column(name).cast(pa.string()), "")).as_py():
            raise UnsupportedValue("an empty text in a key can't be a partition", where=target.table_path)
    deletes = pc.equal(changes.column(tables.OP), tables.OP_DELETE).to_numpy(zero_copy_only=False)
    kept = np.flatnonzero(~deletes)
    sorted_by = changes.select(sorted({*layout.partition_columns, *layout.key}))
    order = data_file.order(sorted_by.take(pa.array(kept)) if deletes.any() else sorted_by, layout)
    if order is not None:
        kept = kept[order]
    moves = order is not None or last is not None or deletes.any()
    rows = data_file.gathered(wide, kept if last is None else last[kept]) if moves else wide
    rows = layout.fit(rows)
    few = few_in_memory and are_few(rows, layout)
    adds = [] if few else data_file.write(target.lake, target.table_path, rows, layout, named=False)
    counts = [rows.num_rows] if few else [rows_of(add) for add in adds]
    file, row = np.zeros(len(deletes), np.int32), np.full(len(deletes), DELETED, np.int64)
    file[kept] = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    row[kept] = np.concatenate([np.zeros(0, np.int64), *(np.arange(count) for count in counts)])
    columns = [changes.column(field.name).cast(field.type) for field in layout.key_schema]
    return KeyFile(
        source=source,
        key_schema=layout.key_schema,
        seed=target.seed,
        hashes=key_hashes(columns, target.seed),
        commit_ts=changes.column(tables.COMMIT_TS).to_numpy(),
        seq=changes.column(tables.SEQ).to_numpy(),
        ordinal=changes.column(tables.ORDINAL).to_numpy(),
        file=file,
        row=row,
        leads=np.array([leads(column) for column in columns[:LEADS_MAX]], np.int64),
        adds=tuple(adds),
        # The decoded window isn't kept for the sake of a few of its rows.
        rows=(rows if moves else rows.take(pa.array(np.arange(rows.num_rows)))) if few else None,
    )


def in_files(target: Target, keys: KeyFile) -> KeyFile:
    """The same, with the rows that were in memory in a data file."""
    if keys.rows is None:
        return keys
    adds = data_file.write(target.lake, target.table_path, keys.rows, target.layout, named=False)
    assert len(adds) == 1, "few rows are of one partition"
    return replace(keys, adds=tuple(adds), rows=None)
