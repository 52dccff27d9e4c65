"""Tables of a TiDB without a key: each is read whole at one timestamp, by several connections, in one run or several.

In:  a wave's timestamp, tables with their ranges of _tidb_rowid, the landed part of them.
Out: chunks, landed as they come; per table its ranges, once it is whole; or the trouble.

A TiDB shows any connection the rows as of a timestamp, until garbage collection passes it. Several
connections may read a table's chunks, also after a killed reader: the chunks are of one
moment, and a table without a key needs no more. Each connection reads a range from its beginning,
the chunks of a statement are landed together, and each chunk has its bounds. The landed chunks
show what is left.

A table whose rows have no number (its primary key is made of prefixes) comes by one statement, and
begins anew after a kill.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from tidegate.errors import TidegateError
from tidegate.limits import SNAPSHOT_LAND_BYTES, SNAPSHOT_LOOK_SECONDS, SNAPSHOT_WAVE_SECONDS_DEFAULT
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.pump.at_timestamp import is_collected
from tidegate.snapshot.chunks.chunk import Chunk
from tidegate.snapshot.chunks.spans import ReadSpans, Span, left_of
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.table_reader import ChunkBounds, ChunkReader, WaveOf
from tidegate.snapshot.wave_reading import TableWork, connected, is_of_table

Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class MomentWay:
    """How tables are read: what a chunk may have; enough: whether no further table is begun after
    so many bytes; stopped: asked now and then whether to end.
    """

    bounds: ChunkBounds
    enough: Callable[[int], bool]
    stopped: Callable[[], bool]


class _Table:
    """One table at work. open: ranges not read to their ends."""

    def __init__(self, work: TableWork, landed: Sequence[Chunk]) -> None:
        """landed: of an earlier run, in order of their numbers."""
        self.work = work
        self.left = left_of(work.left, (ReadSpans((chunk.span,)) for chunk in landed))
        self.open = len(self.left)
        self.last = max((chunk.chunk for chunk in landed), default=0)
        self.is_begun = bool(landed)
        self.goes_on = False  # a later run may go on with it
        work.chunks += landed
        self._note()

    def _note(self) -> None:
        if not self.open:
            self.work.reads = {span: span for span in self.work.left}

    def read_one(self) -> None:
        """A range is read to its end."""
        self.open -= 1
        self._note()


class MomentReading:
    """Reads tables of one wave until they are whole."""

    def __init__(
        self,
        info: ConnectionInfo,
        wave: WaveOf,
        work: Sequence[TableWork],
        landed: Iterable[Chunk],
        way: MomentWay,
        land: Callable[[Sequence[Chunk], Collection[Name]], None],
    ) -> None:
        """landed: chunks of the wave that an earlier run has landed. land: takes chunks, and those
        of their tables whose reading a later run may go on with.
        """
        self._info, self._wave, self._way, self._land_chunks = info, wave, way, land
        by_name: dict[Name, list[Chunk]] = {}
        for chunk in landed:
            by_name.setdefault(chunk.name, []).append(replace(chunk, payload=b""))
        self._tables = [_Table(todo, by_name.get(todo.name, ())) for todo in work]
        self._items = deque((table, span) for table in self._tables for span in table.left)
        self._lock = threading.Lock()
        self._waiting: list[Chunk] = []
        self._bytes = self._waiting_bytes = 0
        self._landed_at = time.monotonic()
        self._ends = False

    def run(self, parallel: int) -> bool:
        """Read until all tables are whole, or enough are; False when it was stopped. The read rows
        are landed then, too.

        Raises SourceRefused, SourceUnavailable, and errors of `land`: earlier landings stay.
        """
        workers = min(parallel, len(self._items))
        if workers:
            with ThreadPoolExecutor(workers, "snapshot") as pool:
                self._watch([pool.submit(self._work) for _ in range(workers)])
        with self._lock:
            self._land()
        return not self._ends

    def _watch(self, works: Collection[Future[None]]) -> None:
        left: Collection[Future[None]] = works
        while left:
            done, left = wait(left, SNAPSHOT_LOOK_SECONDS, FIRST_EXCEPTION)
            try:
                for work in done:
                    work.result()
                self._ends = self._ends or bool(left and self._way.stopped())
            except BaseException:
                self._ends = True
                raise

    def _take(self) -> tuple[_Table, Span] | None:
        with self._lock:
            if self._ends or not self._items:
                return None
            table = self._items[0][0]
            if not table.is_begun and self._bytes and self._way.enough(self._bytes):
                return None
            table.is_begun = True
            return self._items.popleft()

    def _work(self) -> None:
        connection: WorkerConnection | None = None
        try:
            while (item := self._take()) is not None:
                try:
                    connection = connection or connected(self._info, self._wave)
                    if not self._read(connection, *item):
                        connection.close()
                        connection = None
                except TidegateError as error:
                    if connection is not None:
                        connection.close()
                        connection = None
                    if not is_of_table(error):
                        raise
                    self._troubled(item[0], error)
        finally:
            if connection is not None:
                connection.close()

    def _troubled(self, table: _Table, error: TidegateError) -> None:
        """When garbage collection has passed the timestamp, nothing more of it can be read."""
        with self._lock:
            for stopped in self._tables if is_collected(error) else [table]:
                if stopped.open and (stopped.is_begun or stopped is table):
                    stopped.work.trouble = stopped.work.trouble or error
            if is_collected(error):
                self._items.clear()

    def _read(self, connection: WorkerConnection, table: _Table, span: Span) -> bool:
        """Read a span. Returns whether the connection can be used further: not if a result wasn't
        read to its end.
        """
        work = table.work
        if work.trouble is not None:  # of another range of its own: none of it counts
            return True
        reader = work.reader(connection.raw, connection.info)
        table.goes_on = bool(reader.plan.key)
        for chunks in self._statements(reader, table, span):
            self._add(table, chunks)
            if self._ends or work.trouble is not None:
                return False
        with self._lock:
            table.read_one()
        return True

    def _statements(self, reader: ChunkReader, table: _Table, span: Span) -> Iterator[list[Chunk]]:
        """Chunks counting together, up to the span's end."""
        if not table.goes_on:
            for chunk in reader.read_whole(self._way.bounds, self._wave):
                yield [chunk]
            return
        rest: Span | None = span
        while rest is not None:
            read = reader.read(rest, table.work.pace, self._way.bounds, self._wave)
            if reader.repeats:  # each of its chunks says that it is of all that the statement reads
                chunks = list(read)
                rest = chunks[-1][1]
                yield [chunk for chunk, _ in chunks]
                continue
            for chunk, rest in read:  # noqa: B007 - what is left after the last one
                yield [chunk]

    def _add(self, table: _Table, chunks: Sequence[Chunk]) -> None:
        with self._lock:
            for chunk in chunks:
                table.last += 1
                numbered = replace(chunk, chunk=table.last)
                self._waiting.append(numbered)
                table.work.chunks.append(replace(numbered, payload=b""))
                self._bytes += chunk.payload_bytes
                self._waiting_bytes += chunk.payload_bytes
            late = time.monotonic() - self._landed_at > SNAPSHOT_WAVE_SECONDS_DEFAULT
            if self._waiting_bytes >= SNAPSHOT_LAND_BYTES or late:
                self._land()

    def _land(self) -> None:
        if self._waiting:
            names = {chunk.name for chunk in self._waiting}
            going = {
                open_table.work.name
                for open_table in self._tables
                if open_table.goes_on and open_table.work.name in names
            }
            self._land_chunks(self._waiting, going)
            self._waiting, self._waiting_bytes = [], 0
        self._landed_at = time.monotonic()
