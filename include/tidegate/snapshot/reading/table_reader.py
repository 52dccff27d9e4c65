"""Chunks of one table's key ranges, read over one connection.

In:  a table version as the server has it, a range of keys, bounds in rows and bytes.
Out: Chunks, each from where the one before ended; the rest of the range.

A statement asks for as many rows as fit into a chunk, by the size of earlier rows. If they are
larger, its result is cut into several chunks. Small chunks cost little, and a statement's rows
never have to fit into memory twice.

A TiDB's table without a key is read in the order of _tidb_rowid. In a partitioned table two rows
may have the same number, because EXCHANGE PARTITION brings rows with their numbers. Therefore a first
query finds the number at which a statement ends. The statement then reads all rows up to it,
however many have that number.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pymysql

from tidegate.mysql.connecting.connection import ConnectionInfo, named
from tidegate.mysql.sql_text.sql import key_order, quote_name
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import ZeroDates
from tidegate.segments.crc32c import crc32c
from tidegate.snapshot.chunks.chunk import Chunk, packer, shape_of
from tidegate.snapshot.chunks.key_columns import compared_key
from tidegate.snapshot.chunks.spans import WHOLE, Key, Span
from tidegate.snapshot.reading.result.literals import span_condition
from tidegate.snapshot.reading.result.plan import ReadPlan, make_read_plan
from tidegate.snapshot.reading.result.stream import ResultStream
from tidegate.snapshot.watermark import Manifest, Mark, MarkKind
from tidegate.tidb.tables.definitions import info_of

_FIRST_ROWS: Final = 1000  # before it is known how long rows are


@dataclass(frozen=True, slots=True)
class WaveOf:
    """The common facts of the chunks of a wave. at_ts: the timestamp of all its reading; 0 where
    there is none. is_local: whether their lake is.
    """

    source: str
    snapshot: str
    wave: int
    token: str
    server_id: int
    server_uuid: str
    at_ts: int = 0
    is_local: bool = False

    def chunk(
        self,
        version: TableVersion,
        span: Span,
        rows: int,
        shape: str,
        payload: pa.Buffer,
    ) -> Chunk:
        """One of its chunks, not numbered yet. rows: how many payload has; shape: of its columns."""
        return Chunk(
            source=self.source,
            snapshot=self.snapshot,
            database=version.database,
            table=version.table,
            wave=self.wave,
            chunk=0,
            low_token=self.token,
            high_token=self.token,
            key_after=span.after,
            key_upto=span.upto,
            rows=rows,
            version=0,
            shape=shape,
            payload=memoryview(payload).cast("B"),
            payload_bytes=payload.size,
            payload_crc32c=crc32c(memoryview(payload)),
            null_dates=0,
            server_id=self.server_id,
            server_uuid=self.server_uuid,
            read_at=datetime.now(UTC),
        )

    def mark(self, kind: MarkKind, tables: tuple[Manifest, ...] = (), at: str = "", *, exact: bool = False) -> Mark:
        """One of its two marks."""
        return Mark(self.snapshot, self.wave, kind, self.token, tables, at, exact)


@dataclass(frozen=True, slots=True)
class ChunkBounds:
    """How much a chunk may have, and how long a statement should take."""

    rows: int
    bytes: int
    seconds: float


@dataclass(slots=True)
class Pace:
    """The counts of a table's rows so far."""

    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def note(self, rows: int, size: int, seconds: float) -> None:
        self.rows, self.bytes, self.seconds = self.rows + rows, self.bytes + size, self.seconds + seconds

    def limit(self, bounds: ChunkBounds) -> int:
        """Rows to ask for."""
        if not self.rows:
            return min(_FIRST_ROWS, bounds.rows)
        by_bytes = bounds.bytes * self.rows // max(self.bytes, 1)
        by_time = int(bounds.seconds * self.rows / max(self.seconds, 1e-6))
        return max(1, min(bounds.rows, by_bytes, by_time, 16 * self.rows))


class _Building:
    """A chunk in the making: batches are packed as they come. ends: key of its last row. is_last: of its statement."""

    def __init__(self, schema: pa.Schema, wave: WaveOf) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = packer(self._sink, schema, is_local=wave.is_local)
        self.rows = self.null_dates = 0
        self.ends: Key | None = None
        self.is_last = False

    @property
    def bytes(self) -> int:
        return int(self._sink.tell())

    def add(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch, custom_metadata=batch.schema.metadata)
        self.rows += batch.num_rows

    def payload(self) -> pa.Buffer:
        self._writer.close()
        return self._sink.getvalue()


class ChunkReader:
    """Reads one table over one connection. repeats: several rows may have one place in its order."""

    def __init__(
        self,
        connection: Any,
        info: ConnectionInfo,
        version: TableVersion,
        where: str = "",
        zero_dates: ZeroDates = ZeroDates.NULL,
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        """where: a condition for rows in SQL; "" for none. left_out: as of a ReadPlan. Raises
        UnsupportedValue.
        """
        self._connection = connection
        self._info = info
        self._where = where
        self._of = version
        self.plan: ReadPlan = make_read_plan(version, zero_dates, left_out)
        self._stream = ResultStream(connection, info, self.plan)  # for all statements: its memory serves again
        self._shape = shape_of(self.plan.schema)
        self._key = self.plan.key
        self._compared = compared_key(version) or self._key
        described = info_of(version)
        self.repeats = bool(self._key) and not version.key and described is not None and bool(described.partition)
        self._hint = f" FORCE INDEX ({quote_name(version.key_index)})" if version.key_index else ""

    def reads(self, version: TableVersion) -> bool:
        """Whether it is one of this table, and goes on with its memory."""
        return self._of is version

    def statement(self, span: Span, limit: int) -> str:
        """The SELECT of a span's first rows."""
        return f"{self._rows(self.plan.select_list, span)} ORDER BY {key_order(self._key)} LIMIT {limit}"

    def _rows(self, shown: str, span: Span) -> str:
        conditions = [condition for condition in (span_condition(self._compared, span), self._where) if condition]
        where = " WHERE " + " AND ".join(f"({condition})" for condition in conditions) if conditions else ""
        version = self.plan.version
        place = quote_name(version.database, version.table)
        return f"SELECT {shown} FROM {place}{self._hint}{where}"

    def read(self, span: Span, pace: Pace, bounds: ChunkBounds, wave: WaveOf) -> Iterator[tuple[Chunk, Span | None]]:
        """(chunk without its number, what is left of the span then or None), from one statement.

        The last chunk reaches to the span's end when the statement found fewer rows than it asked
        for. After an exception the connection must be closed. Raises as ResultStream.
        """
        limit = pace.limit(bounds)
        if self.repeats:
            yield from self._read_closed(span, pace, bounds, wave)
            return
        started, rows, after = time.monotonic(), 0, span.after
        for made in self._pieces(self.statement(span, limit), bounds, wave):
            rows += made.rows
            upto: Key | None = made.ends
            left: Span | None = Span(made.ends, span.upto)
            if made.is_last:
                pace.note(rows, self._stream.bytes, time.monotonic() - started)
                if rows < limit:
                    upto, left = span.upto, None
                elif made.ends == span.upto:
                    left = None
            yield self._chunk(made, Span(after, upto), wave), left
            after = made.ends

    def _read_closed(
        self, span: Span, pace: Pace, bounds: ChunkBounds, wave: WaveOf
    ) -> Iterator[tuple[Chunk, Span | None]]:
        """As read(), of rows whose numbers may repeat: each chunk of the statement says that it is of all it read."""
        limit, started = pace.limit(bounds), time.monotonic()
        number = f"CAST({quote_name(*self._key)} AS CHAR)"
        with self._connection.cursor() as cursor:
            try:
                order = f"ORDER BY {key_order(self._key)} LIMIT 1 OFFSET {limit - 1}"
                cursor.execute(f"{self._rows(number, span)} {order}")
                last = cursor.fetchall()
            except (pymysql.err.MySQLError, OSError) as error:
                raise named(error, self._info) from error
        upto = (str(int(last[0][0])),) if last else span.upto
        own_span, left = Span(span.after, upto), None if upto == span.upto else Span(upto, span.upto)
        rows = 0
        for made in self._pieces(self._rows(self.plan.select_list, own_span), bounds, wave):
            rows += made.rows
            if made.is_last:
                pace.note(rows, self._stream.bytes, time.monotonic() - started)
            yield self._chunk(made, own_span, wave), left

    def read_whole(self, bounds: ChunkBounds, wave: WaveOf) -> Iterator[Chunk]:
        """Chunks of all rows in no order, without their numbers, from one statement; each is of the
        WHOLE span.

        As read() otherwise.
        """
        version = self.plan.version
        where = f" WHERE {self._where}" if self._where else ""
        sql = f"SELECT {self.plan.select_list} FROM {quote_name(version.database, version.table)}{where}"
        for made in self._pieces(sql, bounds, wave):
            yield self._chunk(made, WHOLE, wave)

    def _pieces(self, sql: str, bounds: ChunkBounds, wave: WaveOf) -> Iterator[_Building]:
        """A statement's rows as they fill chunks; at least one, perhaps without rows."""
        stream, building, dates = self._stream, _Building(self.plan.schema, wave), 0
        for batch in stream.batches(sql):
            size = building.bytes + batch.nbytes
            full = size > bounds.bytes and building.bytes > bounds.bytes // 2
            if building.rows and (full or building.rows + batch.num_rows > bounds.rows):
                building.null_dates = stream.null_dates_before - dates
                yield building
                building, dates = _Building(self.plan.schema, wave), stream.null_dates_before
            building.add(batch)
            building.ends = stream.last_key
        building.null_dates, building.is_last = stream.null_dates - dates, True
        yield building

    def _chunk(self, building: _Building, span: Span, wave: WaveOf) -> Chunk:
        chunk = wave.chunk(self.plan.version, span, building.rows, self._shape, building.payload())
        return replace(chunk, null_dates=building.null_dates)
