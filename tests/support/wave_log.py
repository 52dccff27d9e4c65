"""A table that held rows before its log was followed, and waves of a snapshot whose marks aren't in the log.

In:  a Log of events; tables with one column, `id INT`.
Out: chunks in bronze, and in control/snapshots what a reader says of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from tests.support.event_log import Log
from tidegate import tables
from tidegate.lake import control
from tidegate.schema.model.columns import Column, Index, IndexKind, TableVersion, VersionStatus
from tidegate.segments.crc32c import crc32c
from tidegate.snapshot.chunks.chunk import Chunk, schema_of, shape_of, to_payload
from tidegate.snapshot.chunks.chunk_table import ChunkWriter
from tidegate.snapshot.chunks.spans import WHOLE, Span
from tidegate.snapshot.progress.events import EventKind, SnapshotEvent
from tidegate.snapshot.progress.standing import KnownEvents
from tidegate.snapshot.watermark import Manifest, Mark, MarkKind


def baseline(log: Log, database: str, table: str, *, key: bool = True, source: str = "one") -> TableVersion:
    """The table is there as capture starts, with rows."""
    made = TableVersion(
        source, database, table, 1, 1, "b.000001", 4, "baseline", "", (Column(1, "id", "int", nullable=not key),),
        (1,) if key else (), "utf8mb4", indexes=(Index("PRIMARY", IndexKind.PRIMARY, (1,)),) if key else (),
        status=VersionStatus.NEEDS_SNAPSHOT,
    )  # fmt: skip
    control.append(log.lake, tables.SCHEMA_HISTORY, [made.to_row()])
    return made


@dataclass
class Waves:
    """A snapshot of one table, as its reader tells it."""

    log: Log
    version: TableVersion
    snapshot: str = "s1"
    server_uuid: str = ""
    writer: ChunkWriter = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        self.writer = ChunkWriter(self.log.lake, "one", 1 + sum(map(ord, self.snapshot)))
        self.say(EventKind.REQUESTED)
        self.say(EventKind.RANGES, spans=(WHOLE,))

    def say(self, kind: EventKind, **cells: Any) -> None:
        name = (self.version.database, self.version.table)
        event = SnapshotEvent(self.snapshot, "road", "one", kind, datetime.now(UTC), *name, **cells)
        control.append(self.log.lake, tables.SNAPSHOTS, [event.to_row()])

    def read(
        self,
        ids: Sequence[int],
        low_ts: int,
        high_ts: int,
        span: Span = WHOLE,
        *,
        dies: bool = False,
        marked_at: str | None = None,
    ) -> str:
        """A wave of one chunk; its token. dies: its reader, before it said what it has read. marked_at: another server
        than the rows are from.
        """
        self.number += 1
        token = f"{self.snapshot}{self.number:030x}"
        chunk = replace(
            _chunk(self.version, self.snapshot, self.number, token, ids, span), server_uuid=self.server_uuid
        )
        self.writer.append([chunk])
        at = "" if self.version.key else "b.000001:4"
        uuid = self.server_uuid if marked_at is None else marked_at
        self._mark(
            Mark(self.snapshot, self.number, MarkKind.HIGH, token, (Manifest.of(chunk.name, [chunk]),), at),
            (low_ts, high_ts),
            uuid,
        )
        if not dies:
            self.say(EventKind.WAVE, wave=self.number, token=token, spans=(span,), rows=len(ids))
        return token

    def end(self, high_ts: int) -> None:
        name = (self.version.database, self.version.table)
        mark = Mark(self.snapshot, self.number, MarkKind.END, f"{self.snapshot}end", (Manifest(*name),))
        self._mark(mark, (None, high_ts), self.server_uuid)
        self.say(EventKind.ENDED)

    def _mark(self, mark: Mark, between: tuple[int | None, int], server_uuid: str) -> None:
        event = SnapshotEvent(
            self.snapshot, "road", "one", EventKind.MARKED, datetime.now(UTC), wave=self.number, token=mark.token,
            low_ts=between[0], high_ts=between[1], options={"mark": mark.to_text(), "server_uuid": server_uuid},
        )  # fmt: skip
        control.append(self.log.lake, tables.SNAPSHOTS, [event.to_row()])

    def answers(self) -> dict[str, str]:
        """Token of a wave -> what apply said of it."""
        events = [SnapshotEvent.from_row(row) for row in control.read(self.log.lake, tables.SNAPSHOTS).to_pylist()]
        kinds = (EventKind.APPLIED, EventKind.REFUSED)
        return {one.token: str(one.event) for one in events if one.snapshot == self.snapshot and one.event in kinds}

    @property
    def state(self) -> str:
        name = (self.version.database, self.version.table)
        return str(KnownEvents.read(self.log.lake).tables[self.snapshot, "one", *name].state)


@dataclass
class ManyWaves:
    """A snapshot of several tables with keys, all of which are read in each of its waves."""

    log: Log
    versions: Sequence[TableVersion]
    number: int = 0

    def __post_init__(self) -> None:
        self.writer = ChunkWriter(self.log.lake, "one", 1)
        self.say(EventKind.REQUESTED)
        self.say(EventKind.RANGES, spans=(WHOLE,))

    def say(self, kind: EventKind, **cells: Any) -> None:
        events = [
            SnapshotEvent("m1", "road", "one", kind, datetime.now(UTC), one.database, one.table, **cells)
            for one in self.versions
        ]
        control.append(self.log.lake, tables.SNAPSHOTS, [event.to_row() for event in events])

    def read(self, ids: Sequence[int], low_ts: int, high_ts: int) -> str:
        """A wave with a chunk of each table; its token."""
        self.number += 1
        token = f"m1{self.number:030x}"
        chunks = [_chunk(one, "m1", self.number, token, ids) for one in self.versions]
        self.writer.append(chunks)
        manifests = tuple(Manifest.of(chunk.name, [chunk]) for chunk in chunks)
        text = Mark("m1", self.number, MarkKind.HIGH, token, manifests, "").to_text()
        event = SnapshotEvent(
            "m1", "road", "one", EventKind.MARKED, datetime.now(UTC), wave=self.number, token=token,
            low_ts=low_ts, high_ts=high_ts, options={"mark": text, "server_uuid": ""},
        )  # fmt: skip
        control.append(self.log.lake, tables.SNAPSHOTS, [event.to_row()])
        self.say(EventKind.WAVE, wave=self.number, token=token, spans=(WHOLE,), rows=len(ids))
        return token


def _chunk(
    version: TableVersion, snapshot: str, wave: int, token: str, ids: Sequence[int], span: Span = WHOLE
) -> Chunk:
    schema = schema_of(version)
    rows = pa.RecordBatch.from_arrays([pa.array(ids, schema[0].type)], schema=schema)
    payload = bytes(to_payload([rows], schema))
    return Chunk(
        source="one", snapshot=snapshot, database=version.database, table=version.table, wave=wave, chunk=1,
        low_token=token, high_token=token, key_after=span.after, key_upto=span.upto, rows=len(ids), version=1,
        shape=shape_of(schema), payload=payload, payload_bytes=len(payload), payload_crc32c=crc32c(payload),
        null_dates=0, server_id=1, server_uuid="", read_at=datetime.now(UTC),
    )  # fmt: skip
