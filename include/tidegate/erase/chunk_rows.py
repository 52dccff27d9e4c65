"""Erase a person's rows from bronze/chunks, where snapshots have landed them.

In:  chunks of the table.
Out: a commit per file with rows of theirs. A chunk keeps its CRC-32C, which its wave's high watermark names in the log:
     four bytes after its Arrow stream, which no reader of it looks at, make it so.

A chunk's range of keys stays: its bounds are keys of rows, by which a snapshot divided the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from tidegate.delta.log import Change
from tidegate.delta.table.actions import moved
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import TableState, file_key
from tidegate.erase.subject import Subject
from tidegate.errors import CommitConflict, LakeRefused
from tidegate.failpoint import failpoint
from tidegate.lake.files import LakeFiles
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.crc32c import crc32c
from tidegate.snapshot.chunks.chunk import Chunk, rows_of, schema_of, shape_of, to_payload
from tidegate.snapshot.chunks.chunk_table import ChunkFiles, chunk_file, refs_in
from tidegate.table_names import Physical
from tidegate.tables import CHUNKS

_POLYNOMIAL: Final = 0x82F63B78  # of CRC-32C, reflected
_ONES: Final = 0xFFFFFFFF


@dataclass(slots=True)
class ChunkRows:
    """rows: that were erased. written: paths of new files, within the table."""

    lake: LakeFiles
    table: Physical
    versions: Sequence[TableVersion]
    subject: Subject
    files: int = 0
    rows: int = 0
    written: list[str] = field(default_factory=list)

    def look(self) -> None:
        """Learn the subject's keys. Raises LakeRefused, StreamCorrupt."""
        for file in self._files():
            for chunk in self._chunks(file):
                if self._is_ours(chunk):
                    version = self._version(chunk)
                    for batch in rows_of(chunk).to_batches():
                        self.subject.look_at(batch, version)

    def erase(self) -> None:
        """Raises CommitConflict where another commit took a file."""
        for file in self._files():
            chunks = list(self._chunks(file))
            made = [self._without(chunk) if self._is_ours(chunk) else chunk for chunk in chunks]
            if all(new is old for new, old in zip(made, chunks, strict=True)):
                continue
            add = chunk_file(self.lake, dict(file.action["partitionValues"]), made)
            failpoint("erase_before_chunks_commit")
            self._commit(file, add)
            self.written.append(unquote(add["path"]))
            self.files += 1

    def _files(self) -> list[LiveFile]:
        state = self.lake.log(CHUNKS.path).state()
        files = state.files if state.created else ()
        return [file for file in files if file.action["partitionValues"]["source"] == self.table.source]

    def _chunks(self, file: LiveFile) -> Iterator[Chunk]:
        with ChunkFiles(self.lake) as files:
            for ref in refs_in(self.lake, self.table.source, unquote(file.path)):
                chunk = files.read(ref)
                yield replace(chunk, payload=bytes(chunk.payload))

    def _is_ours(self, chunk: Chunk) -> bool:
        return chunk.name == self.table.pair

    def _version(self, chunk: Chunk) -> TableVersion:
        for version in reversed(self.versions):
            if shape_of(schema_of(version)) == chunk.shape:
                return version
        raise LakeRefused("its columns are those of no version of the table", where=chunk.where)

    def _without(self, chunk: Chunk) -> Chunk:
        rows, version = rows_of(chunk), self._version(chunk)
        kept, lost = list[pa.RecordBatch](), 0
        for batch in rows.to_batches():
            goes = self.subject.has_key(batch, version)
            lost += int(np.count_nonzero(goes))
            kept.append(batch.filter(pa.array(~goes)))
        if not lost:
            return chunk
        self.rows += lost
        stream = to_payload(kept, rows.schema).to_pybytes()
        payload = stream + forging(stream, chunk.payload_crc32c)
        return replace(chunk, rows=chunk.rows - lost, payload=payload, payload_bytes=len(payload))

    def _commit(self, file: LiveFile, add: dict[str, Any]) -> None:
        log = self.lake.log(CHUNKS.path)

        def decide(read: TableState) -> Change:
            if file_key(file.action) not in read.live:
                raise CommitConflict("another commit took files of it out", where=log.place)
            return Change(moved([file], [add], data_change=False), "OPTIMIZE")

        log.update(decide)


def forging(data: bytes, wanted: int) -> bytes:
    """Four bytes after data that make its CRC-32C this."""
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    by_top = {value >> 24: index for index, value in enumerate(table)}
    state = wanted ^ _ONES
    for _ in range(4):
        index = by_top[state >> 24]
        state = ((state ^ table[index]) << 8 | index) & _ONES
    return (state ^ crc32c(data) ^ _ONES).to_bytes(4, "little")
