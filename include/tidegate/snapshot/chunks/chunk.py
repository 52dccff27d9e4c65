"""A chunk: rows of one table, read by SELECT between two watermarks.

In:  record batches of canonical types, as decode yields a version's columns.
Out: a row of bronze/chunks; changes at the chunk's low watermark, as decode hands changes to merge.

The payload is an Arrow IPC stream (lz4 or zstd) of the columns, under the names that silver has of them without
tables.renames. `shape` says which: apply takes a chunk only under a table version of the same shape.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from tidegate import tables
from tidegate.columnar.decoded import SYSTEM_FIELDS
from tidegate.errors import StreamCorrupt, UnsupportedValue
from tidegate.remedy import REFILL
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import canonical
from tidegate.segments.crc32c import crc32c
from tidegate.snapshot.chunks.spans import Key, Span, key_from_text, key_to_text

# lz4 takes two thirds of zstd's CPU to pack, a fifth to unpack, and up to twice the bytes. On the way to an object
# store bytes cost more than CPU, so only local lakes use it.
_PACKING: Final = {name: pa.ipc.IpcWriteOptions(compression=name) for name in ("lz4", "zstd")}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A row of bronze/chunks; the words of its columns are in tables/snapshot_tables.py."""

    source: str
    snapshot: str
    database: str
    table: str
    wave: int
    chunk: int
    low_token: str
    high_token: str
    key_after: Key | None
    key_upto: Key | None
    rows: int
    version: int
    shape: str
    payload: bytes | memoryview
    payload_bytes: int
    payload_crc32c: int
    null_dates: int
    server_id: int
    server_uuid: str
    read_at: datetime
    deletes: bool = False

    @property
    def name(self) -> tuple[str, str]:
        return self.database, self.table

    @property
    def span(self) -> Span:
        """The range of keys of its reading."""
        return Span(self.key_after, self.key_upto)

    @property
    def where(self) -> str:
        """For errors."""
        return f"{self.source} {self.database}.{self.table} wave {self.wave} chunk {self.chunk}"

    def to_row(self) -> dict[str, Any]:
        """The row, with its day."""
        row = {name: getattr(self, name) for name in tables.CHUNKS.schema.names if name != "day"}
        keys = {"key_after": key_to_text(self.key_after), "key_upto": key_to_text(self.key_upto)}
        return row | keys | {"day": self.read_at.date()}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The inverse; a row without its payload has none."""
        cells = {name: row[name] for name in tables.CHUNKS.schema.names if name not in ("day", "payload")}
        keys = {name: key_from_text(row[name]) for name in ("key_after", "key_upto")}
        return cls(**cells | keys | {"payload": row.get("payload", b""), "read_at": row["read_at"].astimezone(UTC)})


def packer(sink: pa.NativeFile, schema: pa.Schema, *, is_local: bool) -> pa.ipc.RecordBatchStreamWriter:
    """A writer of batches as a chunk's payload. is_local: whether the lake is on a local disk. A reader of chunks
    needn't know.
    """
    return pa.ipc.new_stream(sink, schema, options=_PACKING["lz4" if is_local else "zstd"])


def to_payload(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Buffer:
    """An Arrow IPC stream of these batches; there may be none."""
    sink = pa.BufferOutputStream()
    with packer(sink, schema, is_local=False) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def rows_of(chunk: Chunk, left_out: frozenset[str] = frozenset()) -> pa.Table:
    """The chunk's rows. left_out: columns whose values nobody asks for.

    Raises StreamCorrupt when its bytes differ from the landed ones, UnsupportedValue where a value of
    another column couldn't be read: its rule (tables.columns) has changed since.
    """
    if len(chunk.payload) != chunk.payload_bytes or crc32c(chunk.payload) != chunk.payload_crc32c:
        raise _damaged(chunk, "its payload's CRC-32C or length differs from what was landed")
    try:
        with pa.ipc.open_stream(pa.py_buffer(chunk.payload)) as reader:
            rows = pa.Table.from_batches(_batches(chunk, reader, left_out), schema=reader.schema)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(chunk, f"its payload isn't an Arrow stream: {error}") from error
    if rows.num_rows != chunk.rows or shape_of(rows.schema) != chunk.shape:
        raise _damaged(chunk, "its payload has other rows or columns than it says")
    return rows


def _batches(chunk: Chunk, reader: pa.RecordBatchStreamReader, left_out: frozenset[str]) -> Iterator[pa.RecordBatch]:
    for batch, unread in reader.iter_batches_with_custom_metadata():
        for name, why in (unread or {}).items():
            if name.decode() not in left_out:
                raise UnsupportedValue(
                    f"column {name.decode()}: {why.decode()}; its snapshot left the value out",
                    where=chunk.where,
                    remedy=REFILL.after("repair the value at the source, or leave the column out again"),
                )
        yield batch


def changes_of(
    chunk: Chunk, low_ts: int, left_out: frozenset[str] = frozenset(), aliases: Mapping[str, str] = MappingProxyType({})
) -> list[pa.RecordBatch]:
    """Its rows as changes of a transaction at its low watermark, in decode's form. left_out: as in rows_of(), but
    names in silver. aliases: those of its version.

    low_ts: commit_ts of the low watermark. A key has one row here, so the ordinal is the row.
    Batches are as they were read: making one of them would move every byte once more. Raises
    as rows_of().
    """
    plain = {alias: name for name, alias in aliases.items()}
    rows = rows_of(chunk, frozenset(plain.get(name, name) for name in left_out))
    schema = pa.schema(
        [*SYSTEM_FIELDS, *(field.with_name(aliases.get(field.name, field.name)) for field in rows.schema)]
    )
    op = tables.OP_DELETE if chunk.deletes else tables.OP_UPSERT
    changes, before = list[pa.RecordBatch](), 0
    for batch in rows.to_batches():
        count = batch.num_rows
        system = [
            pa.array(np.full(count, op, np.int8)),
            pa.array(np.full(count, low_ts, np.int64)),
            pa.array(np.zeros(count, np.int64)),
            pa.array(np.arange(before, before + count, dtype=np.int64)),
        ]
        changes.append(pa.RecordBatch.from_arrays([*system, *batch.columns], schema=schema))
        before += count
    return changes


def schema_of(version: TableVersion) -> pa.Schema:
    """The columns of a chunk of this version."""
    return pa.schema([pa.field(column.silver, canonical(column).arrow) for column in version.plain.columns])


def shape_of(schema: pa.Schema) -> str:
    """32 hex digits of names and types."""
    fields = json.dumps([[field.name, str(field.type)] for field in schema], ensure_ascii=False)
    return hashlib.blake2b(fields.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _damaged(chunk: Chunk, what: str) -> StreamCorrupt:
    return StreamCorrupt(what, where=chunk.where, remedy="restore bronze/chunks from a copy")
