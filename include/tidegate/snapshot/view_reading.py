"""Tables without a key, read whole from one view at exactly one place of the log.

In:  the server, a wave's low mark, tables without a key.
Out: the mark; the view's place in the log; per table its chunks, landed as they come.

MariaDB tells of a view where in its log it lies (`binlog_snapshot_position`; such a view is opened
between two commits of transactional engines), so nothing is locked. It may lack one XA COMMIT
before its place; this is looked at (mysql/facts/branches_beside.py).

MySQL doesn't tell, so the view is opened at the low mark. The tables are locked for reading, so
every transaction with writes to them is committed and visible (their metadata locks last as long).
The mark is written, the view is opened, and the lock is released. The lock lasts for these few
statements, whatever the size of the tables. If the reader has to wait for the lock longer than
SNAPSHOT_LOCK_SECONDS, it gives up, because new writers queue behind it.

A TiDB is read at a timestamp, by several connections (moment_reading.py).

Rows are streamed by one statement per table, so neither side holds more than a chunk of them. A DDL
waiting for such a statement goes first: the wave is given up, and the tables are read anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import pymysql
from pymysql.constants import ER

from tidegate.errors import SourceRefused, TidegateError
from tidegate.failpoint import failpoint
from tidegate.limits import (
    SNAPSHOT_LAND_BYTES,
    SNAPSHOT_LOCK_SECONDS,
    SNAPSHOT_LOOK_SECONDS,
    SNAPSHOT_SEND_SECONDS,
    SNAPSHOT_VIEW_ATTEMPTS_MAX,
)
from tidegate.mysql.connecting.connection import ConnectionInfo, connect, named
from tidegate.mysql.facts.branches_beside import BranchesBeside
from tidegate.mysql.facts.server_facts import check_is
from tidegate.mysql.sql_text.catalog import Ask, rows_of
from tidegate.mysql.sql_text.sql import quote_name
from tidegate.position import Position
from tidegate.snapshot.chunks.chunk import Chunk
from tidegate.snapshot.chunks.spans import WHOLE
from tidegate.snapshot.marks.marks import Marks, MarkWriter
from tidegate.snapshot.reading.connection import WorkerConnection
from tidegate.snapshot.reading.table_reader import ChunkBounds, WaveOf
from tidegate.snapshot.watermark import Mark
from tidegate.snapshot.wave_reading import TableWork, is_of_table
from tidegate.tables import WATERMARK_DATABASE, WATERMARK_TABLE

Name = tuple[str, str]

# Engines that keep earlier states of rows, so that a view has one.
_WITH_VIEWS: Final = frozenset({"INNODB", "ROCKSDB"})
_BUSY: Final = frozenset({ER.LOCK_WAIT_TIMEOUT, ER.QUERY_INTERRUPTED, ER.LOCK_DEADLOCK})
_NO_LOCKS: Final = frozenset({ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.ACCESS_DENIED_ERROR})
_BEGIN: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
_PLACE: Final = "SHOW STATUS LIKE 'binlog_snapshot_%'"
_STATE_WAITS: Final = "Waiting for table metadata lock"


class TablesBusy(Exception):  # noqa: N818 - nothing went wrong
    """Transactions that wrote to the tables are open, a DDL waits for the reading, the log went on
    in another file, or XA transactions are committed all the time: it is tried again later.
    """


class ViewRefused(SourceRefused):
    """No view of these tables is to be had, of this server or by this account. Other tables aren't asked."""


def without_views(ask: Ask, names: Iterable[Name]) -> dict[Name, str]:
    """The engines of those tables that no view can show at one moment."""
    select = "SELECT table_schema, table_name, engine FROM information_schema.tables"
    shown = rows_of(ask, select, names, where="engine IS NOT NULL")
    engines = {(str(database), str(table)): str(engine) for database, table, engine in shown}
    return {name: engine for name, engine in engines.items() if engine.upper() not in _WITH_VIEWS}


@dataclass(frozen=True, slots=True)
class Way:
    """How tables are read: the bounds of a chunk; land: takes chunks, several times; enough:
    whether so many bytes are; look: is called now and then with the present table, and ends the
    reading by its error.
    """

    bounds: ChunkBounds
    land: Callable[[Sequence[Chunk]], None]
    enough: Callable[[int], bool]
    look: Callable[[Name], None]


class ExactView:
    """A connection whose transaction sees some tables as they were at one place. Closing it ends
    the view.

    at: the place, `file:offset`; "" when it is the mark's.
    """

    def __init__(self, asked: WorkerConnection, marks: Marks, mark: Mark, names: Sequence[Name]) -> None:
        """asked: another connection, which watches over the lock. marks: whose names the mark is
        written under.

        Raises TablesBusy, ViewRefused, SourceRefused, SourceUnavailable.
        """
        self.connection = asked.another()
        self.at = ""
        try:
            self.connection.ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self.connection.ask(f"SET SESSION net_write_timeout = {SNAPSHOT_SEND_SECONDS}")
            if self.connection.is_mariadb:
                self.at = str(self._marked(asked, marks, mark))
            else:
                self._locked(asked, marks, mark, names)
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def _marked(self, asked: WorkerConnection, marks: Marks, mark: Mark) -> Position:
        """The view's place in the log. The server reports the beginning of a new file before it
        commits the last transactions of the old one. The mark is committed, so everything before it
        is. If no new file has begun since then, the place is exact, except for XA COMMITs.
        """
        before = self._placed()
        end = marks.write(mark)  # where no mark is logged, the server told it when nothing of an old file was left
        for _ in range(SNAPSHOT_VIEW_ATTEMPTS_MAX):
            try:
                beside = BranchesBeside.now(asked.raw)
                at = self._placed()
                if at.file != (end or before).file:
                    raise TablesBusy("the log moved to another file as the view was opened")
                if beside.are_seen(asked.raw, at):
                    return at
            except (pymysql.err.MySQLError, OSError) as error:
                raise named(error, asked.info) from error
        raise TablesBusy(f"XA transactions were committed each of {SNAPSHOT_VIEW_ATTEMPTS_MAX} times it was opened")

    def _placed(self) -> Position:
        """Open a view, in place of the one before; where it lies."""
        self.connection.ask(_BEGIN)
        variables = {str(name).lower(): value for name, value in self.connection.ask(_PLACE)}
        file, offset = variables.get("binlog_snapshot_file"), variables.get("binlog_snapshot_position")
        if not file or not offset:
            raise ViewRefused(
                "the server doesn't say where in its log a view lies (binlog_snapshot_file is empty)",
                where=self.connection.info.where,
                remedy="set log_bin there; or give these tables a primary key, or leave them out",
            )
        return Position.of(str(file), int(offset))

    def _locked(self, asked: WorkerConnection, marks: Marks, mark: Mark, names: Sequence[Name]) -> None:
        places = [f"{quote_name(*name)} READ" for name in names]
        if isinstance(marks, MarkWriter):
            places.append(f"{quote_name(WATERMARK_DATABASE, WATERMARK_TABLE)} WRITE")
        lock = f"LOCK TABLES {', '.join(places)}"
        with connect(asked.info) as locking:  # when it is closed its locks are gone, whatever went wrong
            try:
                with locking.cursor() as cursor:
                    check_is(asked.server, cursor, asked.info)
                    cursor.execute("SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
                    with _gives_up(asked, locking):
                        cursor.execute(lock)
                    # The log's end: nothing of these tables is after it, and what is before it is committed.
                    end = marks.over(locking).write(mark)
                    self.at = "" if end is None else str(end)
                    self.connection.ask(_BEGIN)
                    cursor.execute("UNLOCK TABLES")
            except (pymysql.err.MySQLError, OSError) as error:
                raise _meant(error, asked.info) from error

    def read(self, work: Sequence[TableWork], wave: WaveOf, way: Way) -> None:
        """Each table, until way.enough(bytes) says that no further one is begun. Chunks are landed
        as they come, and kept in `work` without their bytes.

        A table's own trouble is noted, and no table after it is read. Raises what ResultStream and
        `way` raise.
        """
        size = 0
        for table_work in work:
            if size and way.enough(size):
                return
            try:
                self._read(table_work, wave, way)
            except TidegateError as error:
                if not is_of_table(error):
                    raise
                table_work.trouble = error
                return  # the connection stands in the middle of a result
            size += sum(chunk.payload_bytes for chunk in table_work.chunks)

    def _read(self, work: TableWork, wave: WaveOf, way: Way) -> None:
        waiting: list[Chunk] = []
        looked = time.monotonic()

        def landed() -> None:
            way.land(waiting)
            work.chunks += [replace(chunk, payload=b"") for chunk in waiting]
            waiting.clear()
            failpoint("snapshot_after_landing")

        connection = self.connection
        reader = work.reader(connection.raw, connection.info)
        for chunk in reader.read_whole(way.bounds, wave):
            waiting.append(replace(chunk, chunk=len(work.chunks) + len(waiting) + 1))
            if sum(unlanded.payload_bytes for unlanded in waiting) >= SNAPSHOT_LAND_BYTES:
                landed()
            if time.monotonic() - looked > SNAPSHOT_LOOK_SECONDS:
                way.look(work.name)
                looked = time.monotonic()
        landed()
        work.reads[WHOLE] = WHOLE


def check_nobody_waits(asked: WorkerConnection, name: Name) -> None:
    """Raises TablesBusy if a DDL of the table waits, since all later statements wait behind it.
    Only the PROCESS privilege shows other accounts' statements.
    """
    shown = asked.ask("SHOW FULL PROCESSLIST")
    if any(str(row[6] or "").startswith(_STATE_WAITS) and name[1] in str(row[7] or "") for row in shown):
        raise TablesBusy(f"a DDL waits for the reading of {'.'.join(name)} to end")


class _gives_up:  # noqa: N801 - reads as a statement
    """Kills the statement of a connection if it takes longer than SNAPSHOT_LOCK_SECONDS."""

    def __init__(self, asked: WorkerConnection, connection: Any) -> None:
        self._asked, self._thread_id = asked, int(connection.thread_id())
        self._timer = threading.Timer(SNAPSHOT_LOCK_SECONDS, self._kill)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()

    def _kill(self) -> None:
        try:
            self._asked.ask(f"KILL QUERY {self._thread_id}")
        except TidegateError:  # then lock_wait_timeout ends it
            return


def _meant(error: BaseException, info: ConnectionInfo) -> BaseException:
    code = error.args[0] if error.args else 0
    if code in _BUSY:
        return TablesBusy("transactions that wrote to them are open")
    if code in _NO_LOCKS:
        return ViewRefused(
            f"tables without a key are locked for some milliseconds, and the account may not: {error.args[-1]}",
            where=info.where,
            remedy=f"run there: GRANT LOCK TABLES, SELECT ON *.* TO '{info.user}', or leave these tables out",
        )
    return named(error, info)
