"""A reader of snapshots for tests of apply: marks by a plain connection, chunks of what a plain SELECT gives.

In:  a road, a table with an integer key `id` whose columns are integers and texts.
Out: marks at the source, chunks in bronze, events in control/snapshots; as a reader that may die anywhere leaves them.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from tests.kit.road import Road
from tidegate import tables
from tidegate.lake import control
from tidegate.schema.model.columns import TableVersion
from tidegate.segments.crc32c import crc32c
from tidegate.snapshot.chunks.chunk import Chunk, schema_of, shape_of, to_payload
from tidegate.snapshot.chunks.chunk_table import ChunkWriter, claim_reader
from tidegate.snapshot.chunks.spans import WHOLE, Key, ReadSpans, Span, left_of
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent, TableProgress
from tidegate.snapshot.progress.standing import KnownEvents
from tidegate.snapshot.watermark import BEGIN, CREATE, WRITE, Manifest, Mark, MarkKind
from tidegate.table_names import Physical


@dataclass
class Wave:
    """What was read since a low mark. dies: nothing of it is in control/snapshots."""

    token: str
    number: int
    chunks: list[Chunk] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)


class PlainReader:
    """Reads one table in waves; one statement, so one view, per chunk."""

    def __init__(self, road: Road, database: str, table: str, beside: PlainReader | None = None) -> None:
        """beside: another table's, of the same process."""
        self.road, self.name = road, (database, table)
        self.physical = Physical("one", database, table)
        self.snapshot = uuid.uuid4().hex
        self.writer = beside.writer if beside else ChunkWriter(road.lake, "one", _claimed(road))
        self.wave: Wave | None = None
        self.waves = 0
        self.connection = road.server.connect(database)
        self.connection.autocommit(True)
        for statement in CREATE:
            self.ask(statement)
        self.ask(BEGIN, ("road", "one"))
        names = {"mariadb": "@@server_uid", "mysql": "@@server_uuid"}
        self.server_uuid = str(self.ask(f"SELECT {names[road.server.flavour]}")[0][0])
        self.record(EventKind.REQUESTED)
        self.record(EventKind.RANGES, spans=(WHOLE,))

    def ask(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def record(self, kind: EventKind, **cells: Any) -> None:
        event = SnapshotEvent(self.snapshot, "road", "one", kind, datetime.now(UTC), *self.name, **cells)
        control.append(self.road.lake, tables.SNAPSHOTS, [event.to_row()])

    @property
    def told(self) -> TableProgress:
        return KnownEvents.read(self.road.lake).tables[(self.snapshot, *self.physical)]

    @property
    def rows_of_wave(self) -> int:
        return sum(chunk.rows for chunk in self.wave.chunks) if self.wave else 0

    def version(self) -> TableVersion:
        rows = control.read(self.road.lake, tables.SCHEMA_HISTORY).to_pylist()
        mine = [row for row in rows if (row["database"], row["table"]) == self.name]
        return TableVersion.from_row(max(mine, key=lambda row: (row["commit_ts"], row["version"])))

    def mark(self, kind: MarkKind, wave: Wave, told: tuple[Manifest, ...] = ()) -> None:
        text = Mark(self.snapshot, wave.number, kind, wave.token, told).to_text()
        self.ask(WRITE, (text, "road", "one"))

    def low(self) -> None:
        self.waves += 1
        self.wave = Wave(uuid.uuid4().hex, self.waves)
        self.mark(MarkKind.LOW, self.wave)

    def read(self, count: int, columns: TableVersion | None = None) -> bool:
        """A chunk of up to `count` rows from the first span that is left; False when none is."""
        assert self.wave is not None, "low() came before"
        left = left_of(self.told.left, [ReadSpans(tuple(self.wave.spans))])
        if not left:
            return False
        span, version = left[0], columns or self.version()
        names = ", ".join(f"`{column.name}`" for column in version.columns)
        low = f"id > {span.after[0]}" if span.after else "1 = 1"
        high = f"id <= {span.upto[0]}" if span.upto else "1 = 1"
        table = ".".join(f"`{part}`" for part in self.name)
        rows = self.ask(f"SELECT {names} FROM {table} WHERE {low} AND {high} ORDER BY id LIMIT {count}")
        ends: Key | None = span.upto if len(rows) < count else (str(rows[-1][self._key(version)]),)
        self.land(version, rows, Span(span.after, ends))
        return True

    def _key(self, version: TableVersion) -> int:
        return [column.name for column in version.columns].index("id")

    def land(self, version: TableVersion, rows: list[tuple[Any, ...]], span: Span) -> None:
        assert self.wave is not None, "low() came before"
        schema = schema_of(version)
        cells = [pa.array([row[at] for row in rows], kind.type) for at, kind in enumerate(schema)]
        payload = bytes(to_payload([pa.RecordBatch.from_arrays(cells, schema=schema)], schema))
        chunk = Chunk(
            source="one", snapshot=self.snapshot, database=self.name[0], table=self.name[1], wave=self.wave.number,
            chunk=len(self.wave.chunks) + 1, low_token=self.wave.token, high_token=self.wave.token,
            key_after=span.after, key_upto=span.upto, rows=len(rows), version=version.version,
            shape=shape_of(schema), payload=payload, payload_bytes=len(payload), payload_crc32c=crc32c(payload),
            null_dates=0, server_id=1, server_uuid=self.server_uuid, read_at=datetime.now(UTC),
        )  # fmt: skip
        self.writer.append([chunk])
        self.wave.chunks.append(chunk)
        self.wave.spans.append(span)

    def high(self, *, dies: bool = False, crc: int = 0, definition: TableVersion | None = None) -> None:
        """The high mark and its event. crc: what the manifest is wrong by."""
        assert self.wave is not None, "low() came before"
        for chunk in self.wave.chunks:
            crc ^= chunk.payload_crc32c
        wave, self.wave = self.wave, None
        told = {} if definition is None else replace(definition, commit_ts=0).to_row()
        rows = sum(chunk.rows for chunk in wave.chunks)
        if not dies and definition is not None:  # so that no window finds the mark before it
            self.record(
                EventKind.WAVE, wave=wave.number, token=wave.token, spans=tuple(wave.spans), rows=rows, definition=told
            )
        self.mark(MarkKind.HIGH, wave, (Manifest(*self.name, len(wave.chunks), crc),))
        if not dies and definition is None:
            self.record(EventKind.WAVE, wave=wave.number, token=wave.token, spans=tuple(wave.spans), rows=rows)

    def whole_wave(self, count: int = 1000, chunks: int = 4) -> None:
        """A wave of up to that many chunks."""
        self.low()
        for _ in range(chunks):
            if not self.read(count):
                break
        self.high()

    def end(self) -> None:
        """The end mark; apply has answered each wave."""
        assert self.told.is_read, self.told
        self.mark(MarkKind.END, Wave(uuid.uuid4().hex, 0), (Manifest(*self.name),))
        self.record(EventKind.ENDED)

    def close(self) -> None:
        self.connection.close()


def _claimed(road: Road) -> int:
    return claim_reader(control.ControlTables(road.lake), "one")
