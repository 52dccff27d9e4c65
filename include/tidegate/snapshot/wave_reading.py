"""The reads of one wave, by several connections at once.

In:  tables with what is left of them, bounds of a wave, where chunks are landed.
Out: per table its chunks, landed, and their spans; or the trouble, and then none of it counts.

An error of a table's statement is that table's trouble. A connection that breaks, or another server
behind the same address, ends the wave: nothing of it is marked.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pymysql
from pymysql.constants import ER

from tidegate.errors import (
    CommitOverwritten,
    DeltaUnsupported,
    LakeRefused,
    Terminal,
    TidegateError,
)
from tidegate.limits import SNAPSHOT_LAND_BYTES
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.pump.at_timestamp import is_collected
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.types import ZeroDates
from tidegate.snapshot.chunks.chunk import Chunk
from tidegate.snapshot.chunks.spans import Span
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.table_reader import ChunkBounds, ChunkReader, Pace, WaveOf

_TABLESPACE_DISCARDED: Final = 1814
_NO_SUCH_TABLE_IN_ENGINE: Final = 1932
# Errors of a statement that another wave, or the table's owner, may mend: the table is gone, or was changed.
_OF_THE_TABLE: Final = frozenset(
    {
        *(_TABLESPACE_DISCARDED, _NO_SUCH_TABLE_IN_ENGINE, ER.NOT_KEYFILE, ER.CRASHED_ON_USAGE, ER.CRASHED_ON_REPAIR),
        *(ER.NO_SUCH_TABLE, ER.BAD_FIELD_ERROR, ER.BAD_TABLE_ERROR, ER.PARSE_ERROR, ER.TABLE_DEF_CHANGED),
        *(ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR, ER.KEY_DOES_NOT_EXITS, ER.LOCK_WAIT_TIMEOUT),
    }
)
_OF_THE_LAKE: Final = (CommitOverwritten, DeltaUnsupported, LakeRefused)
Land = Callable[[Sequence[Chunk]], None]


@dataclass(slots=True)
class TableWork:
    """One table of a wave. left: idle spans to read. chunks: without the payloads of the landed ones. trouble: none of
    its chunks counts. left_out: as of a ReadPlan.
    """

    version: TableVersion
    left: list[Span]
    pace: Pace
    zero_dates: ZeroDates = ZeroDates.NULL
    left_out: frozenset[str] = frozenset()
    chunks: list[Chunk] = field(default_factory=list)
    reads: dict[Span, Span] = field(default_factory=dict)  # by the span that was left; each is one reader's at a time
    trouble: TidegateError | None = None

    @property
    def name(self) -> tuple[str, str]:
        return self.version.database, self.version.table

    def reader(self, connection: Any, info: ConnectionInfo) -> ChunkReader:
        """Reads it over a connection. Raises UnsupportedValue."""
        return ChunkReader(connection, info, self.version, zero_dates=self.zero_dates, left_out=self.left_out)

    @property
    def read(self) -> tuple[Span, ...]:
        """The read spans, each from the beginning of a former one."""
        return tuple(self.reads.values())


class WaveReading:
    """Reads what is left of tables until the wave has enough."""

    def __init__(
        self, info: ConnectionInfo, wave: WaveOf, work: Sequence[TableWork], bounds: ChunkBounds, land: Land
    ) -> None:
        self._info, self._wave, self._bounds, self._land = info, wave, bounds, land
        self._items = deque((todo, span, span) for todo in work for span in todo.left)
        self._lock = threading.Lock()
        self._waiting: list[Chunk] = []  # to be landed
        self._waiting_bytes = 0
        self._bytes = 0
        self._failed = False

    def run(self, parallel: int, bytes_max: int, deadline: float) -> None:
        """Read until all is read and landed, or the wave has bytes_max bytes, or time.monotonic() is past the deadline.

        At least one statement is run. Raises SourceRefused, SourceUnavailable, and the errors of landing: then the wave
        doesn't count.
        """
        workers = min(parallel, len(self._items))
        if not workers:
            return
        with ThreadPoolExecutor(workers, "snapshot") as pool:
            for done in [pool.submit(self._work, bytes_max, deadline) for _ in range(workers)]:
                done.result()
        if self._waiting:
            self._land(self._waiting)

    def _take(self, bytes_max: int, deadline: float) -> tuple[TableWork, Span, Span] | None:
        with self._lock:
            over = self._bytes >= bytes_max or time.monotonic() > deadline
            if self._failed or not self._items or (over and self._bytes):
                return None
            return self._items.popleft()

    def _work(self, bytes_max: int, deadline: float) -> None:
        connection: WorkerConnection | None = None
        reader: ChunkReader | None = None
        try:
            while (item := self._take(bytes_max, deadline)) is not None:
                if connection is None:
                    connection, reader = connected(self._info, self._wave), None
                work = item[0]
                if work.trouble is not None:
                    continue
                try:
                    if reader is None or not reader.reads(work.version):
                        reader = work.reader(connection.raw, self._info)
                    self._read(reader, *item)
                except TidegateError as error:
                    connection.close()
                    connection = None
                    if not is_of_table(error):
                        raise
                    work.trouble = error
        except BaseException:
            self._failed = True
            raise
        finally:
            if connection is not None:
                connection.close()

    def _read(self, reader: ChunkReader, work: TableWork, of: Span, span: Span) -> None:
        """One statement. of: the former span, with `span` as its rest."""
        rest: Span | None = span
        for chunk, left in reader.read(span, work.pace, self._bounds, self._wave):
            full = self._add(work, of, chunk)
            if full:  # the others read on meanwhile
                self._land(full)
            rest = left
        if rest is not None:
            with self._lock:
                self._items.append((work, of, rest))

    def _add(self, work: TableWork, of: Span, chunk: Chunk) -> list[Chunk]:
        """The waiting chunks, when they are enough to be landed."""
        with self._lock:
            numbered = replace(chunk, chunk=len(work.chunks) + 1)
            work.chunks.append(replace(numbered, payload=b""))
            work.reads[of] = Span(of.after, chunk.key_upto)
            self._bytes += chunk.payload_bytes
            self._waiting.append(numbered)
            self._waiting_bytes += chunk.payload_bytes
            if self._waiting_bytes < SNAPSHOT_LAND_BYTES:
                return []
            full, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return full


def connected(info: ConnectionInfo, wave: WaveOf) -> WorkerConnection:
    """A connection that reads for a wave: of its server, at its timestamp. Raises SourceRefused, SourceUnavailable."""
    connection = WorkerConnection(info)
    try:
        connection.check_is((wave.server_id, wave.server_uuid))
        connection.see(wave.at_ts)
    except BaseException:
        connection.close()
        raise
    return connection


def is_of_table(error: TidegateError) -> bool:
    """Whether an error concerns only the statement's table. An error of landing doesn't: other tables' chunks are
    landed with it.
    """
    if isinstance(error, _OF_THE_LAKE):
        return False
    cause = error.__cause__
    code = cause.args[0] if isinstance(cause, pymysql.err.MySQLError) and cause.args else 0
    return code in _OF_THE_TABLE or is_collected(error) or (isinstance(error, Terminal) and cause is None)
