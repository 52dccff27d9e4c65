"""bronze/chunks: chunks are landed before their wave's high watermark is written, and found by their wave's token.

In:  chunks of one source; tokens of waves.
Out: commits; ChunkRefs, the places of chunks' bytes; chunks.

Why each chunk is there once: landings of a source are numbered, and a commit records the number as
the source's transaction version. If the answer to a commit is lost, the next try finds its number
there. The number's high part is the reader's epoch (ControlTables.claim on control/snapshots), so
an overtaken reader can't land any more.

A chunk is a row group of its own, so a worker reads just that.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, Self
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.delta.log import Change
from tidegate.delta.stores.store import room_remedy
from tidegate.delta.table import actions
from tidegate.delta.table.arrow_types import delta_schema
from tidegate.delta.table.live_file import LiveFile
from tidegate.delta.table.state import Action, TableState
from tidegate.errors import CommitConflict, LakeUnavailable, Overtaken, StreamCorrupt
from tidegate.lake.bronze.file import added, created
from tidegate.lake.bronze.log import properties
from tidegate.lake.control import ControlTables
from tidegate.lake.files import LakeFiles
from tidegate.limits import BRONZE_COMMIT_ATTEMPTS_MAX
from tidegate.snapshot.chunks.chunk import Chunk
from tidegate.tables import CHUNKS, SNAPSHOTS

_FILE_SCHEMA: Final = pa.schema([field for field in CHUNKS.schema if field.name not in CHUNKS.partition_by])
_NARROW: Final = [name for name in _FILE_SCHEMA.names if name != "payload"]
_BOUNDED: Final = ("snapshot", "low_token", "wave")
_BOUNDED_CHARS_MAX: Final = 32  # longer texts have no bounds in the log
_EPOCH_BITS: Final = 32


def snapshot_app_id(source: str) -> str:
    """Delta application id of landings in bronze/chunks, and of the reader's epoch in
    control/snapshots.
    """
    return f"tidegate/snapshot/{source}"


def claim_reader(tables: ControlTables, source: str) -> int:
    """The epoch of a starting reader: earlier readers are overtaken."""
    return tables.claim(SNAPSHOTS, snapshot_app_id(source))


@dataclass(frozen=True, slots=True)
class ChunkRef:
    """A chunk without its bytes, and where they lie. path: relative to the lake. row: in its row
    group; 0 in a file of ours.
    """

    chunk: Chunk
    path: str
    row_group: int
    row: int

    def read(self, lake: LakeFiles) -> Chunk:
        """With its bytes, which are checked when its rows are asked for. Raises StreamCorrupt, OSError."""
        with ChunkFiles(lake) as files:
            return files.read(self)


class ChunkFiles:
    """Reads chunks one after the other: neighbours in a file are read with it opened once."""

    def __init__(self, lake: LakeFiles) -> None:
        self._lake, self._path = lake, ""
        self._open: tuple[Any, pq.ParquetFile] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._open is not None:
            self._open[0].close()
        self._open, self._path = None, ""

    def read(self, ref: ChunkRef) -> Chunk:
        """With its bytes, which are checked when its rows are asked for. Raises StreamCorrupt, OSError."""
        try:
            if self._open is None or self._path != ref.path:
                self._close()
                handle = self._lake.open(ref.path)
                self._open, self._path = (handle, pq.ParquetFile(handle)), ref.path
            row_group = self._open[1].read_row_group(ref.row_group, columns=["payload"], use_threads=False)
        except pa.ArrowException as error:
            self._close()
            raise StreamCorrupt(
                f"a file of bronze/chunks can't be read: {error}", where=ref.path, remedy="restore it from a copy"
            ) from error
        return replace(ref.chunk, payload=memoryview(row_group["payload"][ref.row].as_buffer()).cast("B"))


class ChunkWriter:
    """Lands chunks of one source. For many threads; they land one after the other."""

    def __init__(self, lake: LakeFiles, source: str, epoch: int) -> None:
        """epoch: of claim_reader."""
        self._lake = lake
        self._source = source
        self._app_id = snapshot_app_id(source)
        self._landing = epoch << _EPOCH_BITS
        self._lock = threading.Lock()

    def fence(self) -> None:
        """From here on a former reader can't land any more. Raises as append()."""
        self.append(())

    def append(self, chunks: Sequence[Chunk]) -> None:
        """Land chunks in one commit. After LakeUnavailable the caller gives the same chunks again,
        before any others.

        Raises LakeUnavailable, LakeRefused, Overtaken (another reader of this source has started).
        """
        with self._lock:
            number = self._landing + 1
            written: list[Action] = []

            def decide(state: TableState) -> Change | None:
                landed = state.transaction(self._app_id)
                if landed >> _EPOCH_BITS > number >> _EPOCH_BITS:
                    raise self._overtaken(state)
                if landed >= number:  # landed at an earlier try, whose answer was lost
                    return None
                if not written:
                    written.extend(self._files(chunks))
                made = [] if state.created else _new_table()
                return Change([*made, *written], "WRITE", {self._app_id: number})

            try:
                self._lake.log(CHUNKS.path).update(decide, attempts=BRONZE_COMMIT_ATTEMPTS_MAX)
            except (CommitConflict, OSError) as error:
                remedy = room_remedy(error) or "it is tried again"
                raise LakeUnavailable(
                    f"chunks can't be landed: {error}", where=self._lake.uri(CHUNKS.path), remedy=remedy
                ) from error
            self._landing = number

    def _overtaken(self, state: TableState) -> Overtaken:
        return Overtaken(
            f"another snapshot reader of {self._source} has started since this one did",
            where=state.place,
            remedy="leave the source to the other one; run one at a time",
        )

    def _files(self, chunks: Sequence[Chunk]) -> list[Action]:
        by_day: dict[date, list[Chunk]] = {}
        for chunk in chunks:
            by_day.setdefault(chunk.read_at.date(), []).append(chunk)
        return [self._file(day, rows) for day, rows in by_day.items()]

    def _file(self, day: date, chunks: Sequence[Chunk]) -> Action:
        partition = {"source": self._source, "day": day.isoformat()}
        return actions.add(chunk_file(self._lake, partition, chunks), data_change=True)


def chunk_file(lake: LakeFiles, partition: dict[str, str], chunks: Sequence[Chunk]) -> dict[str, Any]:
    """Write chunks of one partition into a new file; its `add` body. Raises LakeUnavailable."""
    folder = "/".join(f"{name}={value}" for name, value in partition.items())
    path = f"{folder}/{uuid.uuid4().hex}.parquet"
    with created(lake, f"{CHUNKS.path}/{path}") as file:
        _write(file, chunks)
        size = int(file.tell())
    return added(path, size, partition, _statistics(chunks))


def chunk_refs(lake: LakeFiles, source: str, tokens: Collection[str]) -> list[ChunkRef]:
    """The chunks of these waves, by wave, table and number. Raises LakeUnavailable, StreamCorrupt."""
    if not tokens:
        return []
    refs: list[ChunkRef] = []
    try:
        for file in lake.log(CHUNKS.path).state().files:
            if file.action["partitionValues"]["source"] == source and _may_hold(file, tokens):
                refs += [ref for ref in refs_in(lake, source, unquote(file.path)) if ref.chunk.low_token in tokens]
    except OSError as error:
        raise LakeUnavailable(f"can't be read: {error}", where=lake.uri(CHUNKS.path)) from error
    return sorted(refs, key=lambda ref: (ref.chunk.wave, ref.chunk.name, ref.chunk.chunk))


def refs_in(lake: LakeFiles, source: str, path: str) -> list[ChunkRef]:
    place = f"{CHUNKS.path}/{path}"
    try:
        with lake.open(place) as handle:
            file = pq.ParquetFile(handle)
            rows = file.read(columns=_NARROW, use_threads=False).to_pylist()
            places = list(_places(file.metadata))
    except pa.ArrowException as error:
        raise StreamCorrupt(
            f"a file of bronze/chunks can't be read: {error}", where=place, remedy="restore it from a copy"
        ) from error
    return [
        ChunkRef(Chunk.from_row(row | {"source": source}), place, *at) for row, at in zip(rows, places, strict=True)
    ]


def _places(metadata: pq.FileMetaData) -> Iterator[tuple[int, int]]:
    """The row group of each row of a file, and its number there."""
    for group in range(metadata.num_row_groups):
        for number in range(metadata.row_group(group).num_rows):
            yield group, number


def chunks_in(lake: LakeFiles, source: str, path: str) -> list[Chunk]:
    """A file's chunks without their bytes. Raises StreamCorrupt, OSError."""
    return [ref.chunk for ref in refs_in(lake, source, path)]


def _write(sink: Any, chunks: Sequence[Chunk]) -> None:
    """Each chunk in a row group; its payload is packed already."""
    with pq.ParquetWriter(
        sink, _FILE_SCHEMA, use_dictionary=False, compression="none", write_statistics=False, write_page_checksum=True
    ) as writer:
        for chunk in chunks:
            row = chunk.to_row()
            columns = [pa.array([row[field.name]], field.type) for field in _FILE_SCHEMA]
            writer.write_table(pa.Table.from_arrays(columns, schema=_FILE_SCHEMA))


def _statistics(chunks: Sequence[Chunk]) -> str:
    cells = {name: [getattr(chunk, name) for chunk in chunks] for name in _BOUNDED}
    short = {name: of for name, of in cells.items() if not any(len(str(cell)) > _BOUNDED_CHARS_MAX for cell in of)}
    return json.dumps(
        {
            "numRecords": len(chunks),
            "minValues": {name: min(of) for name, of in short.items()},
            "maxValues": {name: max(of) for name, of in short.items()},
            "nullCount": dict.fromkeys(short, 0),
        }
    )


def _may_hold(file: LiveFile, tokens: Collection[str]) -> bool:
    bounds = file.bounds("low_token")
    return bounds is None or any(str(bounds[0]) <= token <= str(bounds[1]) for token in tokens)


def _new_table() -> list[Action]:
    about = actions.metadata(
        delta_schema(CHUNKS.schema), properties(0), partition_columns=CHUNKS.partition_by, description=CHUNKS.doc
    )
    return [actions.protocol(()), about]
