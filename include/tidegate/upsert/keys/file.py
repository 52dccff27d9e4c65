"""Key files: a narrow record for each change of a staged file (Arrow IPC in the staging folder).

In:  changes of one source: hash of the key, order, where its row lies.
Out: the same again, in the process that resolves the phase. Payload and rows stay where they were
     written.

A file also carries the `add` actions of its rows' data files, so nothing else need travel.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import LakeRefused
from tidegate.lake.files import LakeFiles
from tidegate.upsert.keys.hash import Hashes, Seed

Int64s = npt.NDArray[np.int64]

DELETED: Final = -1  # row of a change that leaves no row behind
LEADS_MAX: Final = 4  # leading key columns that files are ruled out by; as many as Delta clusters by
KEYS: Final = pa.schema(
    [
        pa.field("hash", pa.binary(16), nullable=False),  # hash.key_hashes
        pa.field("commit_ts", pa.int64(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),  # index into the actions
        pa.field("row", pa.int64(), nullable=False),  # position in that data file, or DELETED
    ]
)  # and lead_0, lead_1 ...: hash.leads of the leading key columns
_META: Final = b"tidegate.keys"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Changes of one staged file, n of them, in any order.

    hashes: uint64[n, 2]. commit_ts, seq, ordinal: int64[n]; with source their order. file: int32[n], row: int64[n].
    leads: int64[columns, n] of the leading key columns. key_schema: the key's columns as silver has them.
    adds: actions of the data files. rows: those that no file has yet, in place of a data file; in memory alone.
    """

    source: str
    key_schema: pa.Schema
    seed: Seed
    hashes: Hashes
    commit_ts: Int64s
    seq: Int64s
    ordinal: Int64s
    file: npt.NDArray[np.int32]
    row: Int64s
    leads: Int64s
    adds: tuple[Mapping[str, Any], ...]
    rows: pa.Table | None = None

    @property
    def changes(self) -> int:
        return len(self.hashes)


def write_keys(lake: LakeFiles, path: str, keys: KeyFile) -> None:
    """Write a key file; path: relative to the lake."""
    assert keys.rows is None, "rows in memory aren't where another process resolves"
    numbers = [keys.commit_ts, keys.seq, keys.ordinal, keys.file, keys.row, *keys.leads]
    hashed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), keys.changes, [None, pa.py_buffer(np.ascontiguousarray(keys.hashes))]
    )
    fields = [*KEYS, *(pa.field(f"lead_{i}", pa.int64(), nullable=False) for i in range(len(keys.leads)))]
    about = {"version": _VERSION, "source": keys.source, "seed": keys.seed, "adds": [dict(add) for add in keys.adds]}
    metadata = {_META: json.dumps(about).encode(), b"key": keys.key_schema.serialize().to_pybytes()}
    schema = pa.schema(fields, metadata=metadata)
    batch = pa.RecordBatch.from_arrays([hashed, *(pa.array(values) for values in numbers)], schema=schema)
    whole = pa.BufferOutputStream()
    with pa.ipc.new_file(whole, schema) as writer:
        writer.write_batch(batch)
    lake.write(path, [whole.getvalue()])


def read_keys(lake: LakeFiles, path: str) -> KeyFile:
    """Raises LakeRefused when the file isn't a whole key file of this version."""
    try:
        with lake.open(path) as source:
            table = pa.ipc.open_file(source).read_all()
        metadata = table.schema.metadata or {}
        about = json.loads(metadata[_META])
        key_schema = pa.ipc.read_schema(pa.py_buffer(metadata[b"key"]))
    except FileNotFoundError:
        raise LakeRefused(
            "a key file is gone", where=path, remedy="start apply again: it makes such files anew from bronze"
        ) from None
    except (pa.ArrowInvalid, KeyError, ValueError) as error:
        raise LakeRefused(
            f"not a key file: {error}", where=path, remedy="start apply again: it makes such files anew from bronze"
        ) from None
    if about["version"] != _VERSION:
        raise LakeRefused(
            f"key file of version {about['version']}",
            where=path,
            remedy="start apply again: it makes such files anew from bronze",
        )
    batch = table.combine_chunks()
    hashed = np.frombuffer(_buffer(batch.column("hash"), 1), np.uint64).reshape(-1, 2)
    numbers = {name: _numbers(batch.column(name)) for name in ("commit_ts", "seq", "ordinal", "file", "row")}
    names = [name for name in batch.column_names if name.startswith("lead_")]
    leads = np.array([_numbers(batch.column(name)) for name in names], np.int64).reshape(len(names), batch.num_rows)
    seed = (int(about["seed"][0]), int(about["seed"][1]))
    return KeyFile(
        source=about["source"],
        key_schema=key_schema,
        seed=seed,
        hashes=hashed,
        leads=leads,
        adds=tuple(about["adds"]),
        **numbers,
    )


def _buffer(column: pa.ChunkedArray, index: int) -> memoryview:
    if not column.num_chunks:
        return memoryview(b"")
    array = column.chunk(0)
    assert column.num_chunks == 1, "combined before"
    assert array.offset == 0, "read whole"
    return memoryview(array.buffers()[index])[: 16 * len(array)]


def _numbers(column: pa.ChunkedArray) -> Any:
    return column.chunk(0).to_numpy() if column.num_chunks else column.to_numpy()
